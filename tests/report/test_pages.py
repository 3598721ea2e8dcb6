"""Pages: the short form, the full one, Markdown; names stay text wherever they stand."""

from __future__ import annotations

import itertools
from dataclasses import replace

from seq2seq_attn.evaluation.translations import LineCounts
from seq2seq_attn.report.pages import markdown_page, terminal_page, terminal_summary
from tests.report.conftest import score_systems
from tests.report.test_arms import grouped  # noqa: F401
from tests.report.test_tables import make_page

HOSTILE = "<script>alert(1)</script>|a](javascript:b) `c`\nd"


def test_the_short_form_of_one_run_fits_a_screen(one_system):
    text = terminal_summary(make_page(one_system))
    assert len(text.splitlines()) <= 25
    for part in ("BLEU by length, made-up", "What it shows.", "a caution", "[low, high]: 95 %", "BLEU: nrefs:1"):
        assert part in text
    for part in ("chrF2", "a note", "a difference is clear"):
        assert part not in text


def test_counts_are_told_only_where_they_are_not_zero(two_systems):
    counted = replace(two_systems, counts=[LineCounts(0, 0), LineCounts(12, 3)])
    for make in (terminal_summary, terminal_page, markdown_page):
        text = make(make_page(counted))
        assert "none, made-up: the length limit cut 12 of 150 translations; --max-length-ratio raises it" in text
        assert "none, made-up: 3 source tokens are unknown to this run" in text
        assert "additive, made-up" not in text
        assert "the length limit" not in make(make_page(two_systems))


def test_names_are_no_markup_in_markdown():
    scores = replace(score_systems([HOSTILE, "none"]), name=HOSTILE, counts=[LineCounts(1, 1)] * 2)
    page = replace(make_page(scores), conclusion=HOSTILE, notes=[HOSTILE], cautions=[HOSTILE], provenance=HOSTILE)
    text = markdown_page(page, [f"{HOSTILE.replace('/', '')}.png"])
    assert "<script" not in text
    assert "](javascript" not in text
    lines = text.splitlines()
    headers = [line for line, rule in itertools.pairwise(lines) if rule.startswith("| :--")]
    rules = [line for line in lines if line.startswith("| :--")]
    assert [line.replace("\\|", "").count("|") for line in headers] == [line.count("|") for line in rules]
    assert not [line for line in lines if line == "d" or line.startswith("d]")]
