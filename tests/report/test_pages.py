"""Pages: the short form, the full one, Markdown; names stay text wherever they stand."""

from dataclasses import replace

import pytest

from seq2seq_attn.evaluation.translations import LineCounts
from seq2seq_attn.metrics.table import METRICS
from tests.report.conftest import report_of, score_systems

HOSTILE = "<script>alert(1)</script>|a](javascript:b) `c`\nd"


def test_the_short_form_of_one_run_fits_a_screen(one_system):
    report = report_of(one_system, search={"beam_size": 3, "length_penalty": 0.0}, lowercases=True)
    text = report.summary
    assert len(text.splitlines()) <= 25
    for shown in ("BLEU by length, made-up", report.conclusion[:40], "lower-cases", "BLEU: nrefs:"):
        assert shown in text
    for detail in ("chrF2", "beam size 3"):
        assert detail not in text
        assert detail in report.markdown()


@pytest.mark.parametrize("form", ["summary", "text", "markdown"])
def test_counts_are_shown_only_where_they_are_not_zero(two_systems, form):
    report = report_of(replace(two_systems, counts=[LineCounts(0, 0), LineCounts(12, 3)]))
    text = report.markdown() if form == "markdown" else getattr(report, form)
    cut, unknown = (line for line in text.splitlines() if "none, made-up: " in line)
    assert "12 of 150" in cut
    assert " 3 " in unknown
    assert "additive, made-up" not in text


def test_names_are_no_markup_in_markdown():
    scores = replace(score_systems([HOSTILE, "none"]), name=HOSTILE, counts=[LineCounts(1, 1)] * 2)
    text = report_of(scores, lowercases=True).markdown([f"{HOSTILE.replace('/', '')}.png"])
    assert "<script" not in text
    assert "](javascript" not in text
    header = ""
    for line in text.splitlines():
        assert line != "d"
        assert not line.startswith("d]")
        if line.startswith("| :--"):
            assert header.replace("\\|", "").count("|") == line.count("|")
        header = line


def test_a_file_of_translations_is_not_called_the_fixed_vector(two_systems):
    descriptions = [{"name": "additive", "has_attention": True}, {"name": "none"}]
    report = replace(report_of(two_systems), descriptions=descriptions)
    assert "fixed" not in report.conclusion


def test_every_measure_is_explained(two_systems):
    report = report_of(two_systems)
    for name in two_systems.signatures:
        assert METRICS[name].about in report.text
        assert METRICS[name].about in report.markdown()
