"""Tables: alignment; what they show of one, two and three runs, of arms, and of their attention."""

from dataclasses import replace

import numpy as np
import pytest

from seq2seq_attn.evaluation.names import named_arms
from seq2seq_attn.metrics.attention import AttentionStatistics, GoldPair
from seq2seq_attn.report.tables import (
    Table,
    attention_table,
    comparison_table,
    gold_table,
    length_table,
    score_table,
    seeds_table,
)
from tests.report.conftest import report_of, score_systems


def test_columns_are_aligned():
    table = Table(["word", "n"], [["a", "1"], ["日本", "12,345"]])
    assert table.to_text() == "word       n\n----  ------\na          1\n日本  12,345"
    assert table.to_markdown() == "| word | n |\n| :-- | --: |\n| a | 1 |\n| 日本 | 12,345 |"
    assert "a\\|b" in Table(["a|b"], []).to_markdown()


def test_one_run_has_no_comparison(one_system):
    assert score_table(one_system).header == ["measure", "additive"]
    assert length_table(one_system, "bleu").header == ["reference tokens", "n of 150", "additive"]


def test_a_single_bucket_is_the_whole_set():
    whole = score_systems(["additive"], edges="quantiles:1")
    [row] = length_table(whole, "bleu").rows
    assert row[:2] == ["all", "150"]


def test_two_runs_side_by_side(two_systems):
    table = length_table(two_systems, "bleu")
    columns = ["additive", "none", "difference", "p", "kept"]
    assert table.header == ["reference tokens", "n of 150", *columns]
    assert [row[0] for row in table.rows] == ["up to 5", "6-11*", "12-18", "19 and more*", "all"]
    for row in table.rows:
        assert (row[-2] == "-") == row[0].endswith("*")  # thin: no p-value
    baseline, system = two_systems.whole.scores["bleu"]
    _, num_pairs, _, score, difference, _, share = table.rows[-1]
    assert num_pairs == "150"
    assert score == system.interval.to_text()
    assert difference == f"{system.interval.value - baseline.interval.value:+.1f}"
    assert share == system.retention.to_text(2)


def test_three_runs_are_compared_in_a_table_of_their_own(three_systems):
    header = length_table(three_systems, "bleu").header
    assert header == ["reference tokens", "n of 150", "additive", "none", "initial"]
    table = comparison_table(three_systems, "bleu")
    assert len(table.header) == len(table.rows[0]) == 3
    difference = three_systems.whole.scores["bleu"][2].bootstrap.difference
    assert table.rows[-1][2].startswith(f"{difference:+.1f}  ")
    assert "BLEU by length, against additive" in report_of(three_systems).text


def test_seeds_have_means_deviations_and_extremes(grouped):
    first, second, third = seeds_table(grouped).rows[:3]
    assert first[:3] == ["BLEU", "additive", "2"]
    score = grouped.whole.scores["bleu"][1]
    mean = f"{score.interval.value:.1f}"
    extremes = f"{min(score.values):.1f} to {max(score.values):.1f}"
    assert second == ["", "none", "3", mean, f"{score.deviation:.2f}", extremes]
    assert third[:3] == ["", "initial", "1"]
    assert third[4] == "-"


def test_arms_show_their_deviation(grouped):
    score = grouped.whole.scores["bleu"][1]
    row = length_table(grouped, "bleu").rows[-1]
    assert row[3].startswith(f"{score.interval.value:.1f} ± {score.deviation:.1f} [")
    assert "±" not in row[4]
    assert score_table(grouped).rows[0][1:] == row[2:]
    assert "±" not in length_table(grouped.ungrouped(), "bleu").to_text()


def make_statistics(seed):
    draw = np.random.default_rng(seed)
    overlap_N4 = draw.integers(1, 9, size=(150, 4))
    links = [(0, 0), (2, 1), (3, 2)]
    gold = [GoldPair(draw.dirichlet([0.3] * 4, size=3), links, links) for _ in range(150)]
    return AttentionStatistics(overlap_N4, draw.random((150, 5)) + 1, gold)


ANALYZED = [make_statistics(1), make_statistics(2)]
ANALYZED.append(AttentionStatistics(ANALYZED[0].overlap_N4, np.zeros((150, 5))))


@pytest.fixture
def analyzed(three_systems):
    """The third run has no attention."""
    whole, *buckets = map(with_attention, [three_systems.whole, *three_systems.buckets])
    return replace(three_systems, whole=whole, buckets=buckets)


def with_attention(row):
    return replace(row, attention=[run.subset(row.bucket.indices).score() for run in ANALYZED])


def percent(value):
    return f"{100 * value:.1f} %"


def test_attention_has_a_row_for_each_bucket_and_run(analyzed):
    table = attention_table(replace(analyzed, unit="words"))
    fields = ["entropy", "dropped", "repeated", "missing", "excess"]
    assert table.header == ["words", "run", *fields]
    labels = [row[0] for row in table.rows[::3]]
    assert labels == ["up to 5", "6-11*", "12-18", "19 and more*", "all"]
    score = analyzed.buckets[2].attention[1]
    assert table.rows[7][1:4] == ["none", f"{score.entropy:.2f}", percent(score.dropped)]
    assert table.rows[8][1:5] == ["initial", "-", "-", "-"]
    assert table.rows[8][5].endswith(" %")


def test_gold_links_have_a_row_for_each_shift_of_the_runs_that_have_attention(analyzed):
    rows = gold_table(analyzed).rows
    assert [row[0] for row in rows] == ["additive", "", "", "none", "", ""]
    assert [row[1] for row in rows] == ["-1", "0", "+1"] * 2
    score = analyzed.whole.attention[1].gold[1]
    rates = (score.error_rate, score.precision, score.recall, score.mass)
    assert rows[5][2:] == [percent(rate) for rate in rates]


def test_an_arm_shows_the_mean_of_its_seeds(analyzed):
    seeds = replace(analyzed, arms=named_arms(["x", "x", "y"]))
    first, second, _ = analyzed.whole.attention
    entropy = f"{(first.entropy + second.entropy) / 2:.2f}"
    assert attention_table(seeds).rows[-2][1:3] == ["x", entropy]
    rows = gold_table(seeds).rows
    assert len(rows) == 3
    mean = (first.gold[0].error_rate + second.gold[0].error_rate) / 2
    assert rows[1][:3] == ["", "0", percent(mean)]


def test_attention_without_links_has_no_mass():
    unlinked = replace(ANALYZED[0], gold=[GoldPair(np.eye(2), (), ())])
    assert unlinked.score().to_dict()["gold"][1]["mass"] is None  # JSON has no NaN
