"""Tables: alignment, what they show for one, two and three runs."""

from __future__ import annotations

from seq2seq_attn.report.pages import Page, terminal_page
from seq2seq_attn.report.tables import (
    Table,
    comparison_table,
    length_table,
    score_table,
)
from tests.report.conftest import QUICK, score_systems


def make_page(*sets):
    return Page(
        sets, "What it shows.", "source tokens", "spacy.blank:de:3.8", QUICK, ["a note"], ["a caution"], "commit 123"
    )


def test_a_thin_bucket_has_no_p_value():
    scores = score_systems(["additive", "none"], edges=(19,), none=0.6)
    rows = {row[0]: row for row in length_table(scores).rows}
    assert [key for key in rows if key.endswith("*")]
    for label, row in rows.items():
        assert (row[-2] == "-") is label.endswith("*")


def test_columns_are_aligned():
    table = Table(["word", "n"], [["a", "1"], ["longer", "12,345"]])
    assert table.to_text() == "word         n\n------  ------\na            1\nlonger  12,345"
    assert table.to_markdown() == "| word | n |\n| :-- | --: |\n| a | 1 |\n| longer | 12,345 |"
    assert "a\\|b" in Table(["a|b"], []).to_markdown()


def test_one_run_has_no_comparison(one_system):
    assert list(score_table(one_system).header) == ["measure", "additive"]
    assert list(length_table(one_system).header) == ["source tokens", "n", "additive"]


def test_a_single_bucket_is_the_whole_set():
    whole = score_systems(["additive"], edges=())
    assert [row[:2] for row in length_table(whole).rows] == [["all", "150"]]


def test_two_runs_side_by_side(two_systems):
    table = length_table(two_systems, unit="reference tokens")
    assert list(table.header) == ["reference tokens", "n", "additive", "none", "difference", "p", "kept"]
    assert [row[0] for row in table.rows] == ["up to 5", "6-11*", "12-18", "19 and more*", "all"]
    assert table.rows[-1][1] == "150"
    baseline, system = two_systems.scores["bleu"]
    interval, kept = system.interval, system.retention
    assert table.rows[-1][3] == f"{interval.value:.1f} [{interval.low:.1f}, {interval.high:.1f}]"
    assert table.rows[-1][4] == f"{interval.value - baseline.interval.value:+.1f}"
    assert table.rows[-1][6] == f"{kept.value:.2f} [{kept.low:.2f}, {kept.high:.2f}]"


def test_three_runs_are_compared_in_a_table_of_their_own(three_systems):
    assert list(length_table(three_systems).header) == ["source tokens", "n", "additive", "none", "initial"]
    table = comparison_table(three_systems)
    assert len(table.header) == len(table.rows[0]) == 3
    assert table.rows[-1][2].startswith(f"{three_systems.scores['bleu'][2].bootstrap.difference:+.1f}  ")
    page = terminal_page(make_page(three_systems))
    assert "BLEU by length, against additive" in page
