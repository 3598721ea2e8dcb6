"""Pages: the short form, the full one, Markdown; names stay text wherever they stand."""

import itertools
from dataclasses import replace

from seq2seq_attn.evaluation.translations import LineCounts
from tests.report.conftest import report_of, score_systems

HOSTILE = "<script>alert(1)</script>|a](javascript:b) `c`\nd"


def test_the_short_form_of_one_run_fits_a_screen(one_system):
    report = report_of(one_system, search={"beam_size": 3, "length_penalty": 0.0}, lowercases=True)
    text = report.summary
    assert len(text.splitlines()) <= 25
    for part in ("BLEU by length, made-up", report.conclusion[:40], "lower-cases", "BLEU: nrefs:1"):
        assert part in text
    for part in ("chrF2", "beam size 3"):
        assert part not in text
        assert part in report.markdown()


def test_counts_are_shown_only_where_they_are_not_zero(two_systems):
    counted = report_of(replace(two_systems, counts=[LineCounts(0, 0), LineCounts(12, 3)]))
    for text in (counted.summary, counted.text, counted.markdown()):
        lines = [line for line in text.splitlines() if "none, made-up: " in line]
        cut, unknown = lines
        assert "12 of 150" in cut
        assert " 3 " in unknown
        assert "additive, made-up" not in text


def test_names_are_no_markup_in_markdown():
    scores = replace(score_systems([HOSTILE, "none"]), name=HOSTILE, counts=[LineCounts(1, 1)] * 2)
    text = report_of(scores, lowercases=True).markdown([f"{HOSTILE.replace('/', '')}.png"])
    assert "<script" not in text
    assert "](javascript" not in text
    lines = text.splitlines()
    headers = [line for line, rule in itertools.pairwise(lines) if rule.startswith("| :--")]
    rules = [line for line in lines if line.startswith("| :--")]
    for header, rule in zip(headers, rules, strict=True):
        assert header.replace("\\|", "").count("|") == rule.count("|")
    assert not [line for line in lines if line == "d" or line.startswith("d]")]
