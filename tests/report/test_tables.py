"""Tables: alignment; what they show of one, two and three runs, of arms, and of their attention."""

import json
import statistics
from dataclasses import replace

import numpy as np
import pytest

from seq2seq_attn.evaluation.names import named_arms
from seq2seq_attn.metrics.attention import AttentionStatistics, score_shifts
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
    assert list(score_table(one_system).header) == ["measure", "additive"]
    assert list(length_table(one_system, "bleu").header) == ["reference tokens", "n", "additive"]
    whole = score_systems(["additive"], edges="quantiles:1")  # a single bucket is the whole set
    assert [row[:2] for row in length_table(whole, "bleu").rows] == [["all", "150"]]


def test_two_runs_side_by_side(two_systems):
    table = length_table(two_systems, "bleu")
    assert list(table.header[:2]) == ["reference tokens", "n"]
    assert list(table.header[2:]) == ["additive", "none", "difference", "p", "kept"]
    assert [row[0] for row in table.rows] == ["up to 5", "6-11*", "12-18", "19 and more*", "all"]
    assert all((row[-2] == "-") is row[0].endswith("*") for row in table.rows)  # thin: no p-value
    baseline, system = two_systems.whole.scores["bleu"]
    interval, kept = system.interval, system.retention
    _, num_pairs, _, score, difference, _, share = table.rows[-1]
    assert num_pairs == "150"
    assert score == f"{interval.value:.1f} [{interval.low:.1f}, {interval.high:.1f}]"
    assert difference == f"{interval.value - baseline.interval.value:+.1f}"
    assert share == f"{kept.value:.2f} [{kept.low:.2f}, {kept.high:.2f}]"


def test_three_runs_are_compared_in_a_table_of_their_own(three_systems):
    header = length_table(three_systems, "bleu").header
    assert list(header) == ["reference tokens", "n", "additive", "none", "initial"]
    table = comparison_table(three_systems, "bleu")
    assert len(table.header) == len(table.rows[0]) == 3
    difference = three_systems.whole.scores["bleu"][2].bootstrap.difference
    assert table.rows[-1][2].startswith(f"{difference:+.1f}  ")
    assert "BLEU by length, against additive" in report_of(three_systems).text


def test_arms(grouped):
    score = grouped.whole.scores["bleu"][1]
    mean, deviation = score.interval.value, statistics.stdev(score.values)
    table = seeds_table(grouped)
    assert [row[:3] for row in table.rows[:3]] == [
        ["BLEU", "additive", "2"],
        ["", "none", "3"],
        ["", "initial", "1"],
    ]
    extremes = f"{min(score.values):.1f} to {max(score.values):.1f}"
    assert table.rows[1][3:] == [f"{mean:.1f}", f"{deviation:.2f}", extremes]
    assert table.rows[2][4] == "-"
    table = length_table(grouped, "bleu")
    assert table.rows[-1][3].startswith(f"{mean:.1f} ± {deviation:.1f} [")
    assert "±" not in table.rows[-1][4]
    assert score_table(grouped).rows[0][1:] == table.rows[-1][2:]
    assert "±" not in length_table(grouped.ungrouped(), "bleu").to_text()


def make_statistics(seed: int, *, with_attention: bool = True) -> AttentionStatistics:
    draw = np.random.default_rng(seed)
    words = draw.integers(5, 9, size=(150, 4))
    words[:, [0, 2]] = draw.integers(0, 5, size=(150, 2))
    if not with_attention:
        return AttentionStatistics(words, np.zeros((150, 5)))
    weights = [draw.dirichlet([0.3] * 4, size=3) for _ in range(150)]
    gold = [(weights_TS, ((0, 0), (2, 1), (3, 2))) for weights_TS in weights]
    return AttentionStatistics(words, draw.random((150, 5)) + np.array([0, 3, 0, 0, 5]), gold)


ANALYZED = [make_statistics(1), make_statistics(2), make_statistics(3, with_attention=False)]


@pytest.fixture
def analyzed(three_systems):
    whole = with_attention(three_systems.whole)
    buckets = [with_attention(row) for row in three_systems.buckets]
    return replace(three_systems, whole=whole, buckets=buckets)


def with_attention(row):
    return replace(row, attention=[run.subset(row.bucket.indices).score() for run in ANALYZED])


def test_attention_has_a_row_for_each_bucket_and_run(analyzed):
    table = attention_table(replace(analyzed, unit="words"))
    assert list(table.header[:2]) == ["words", "run"]
    assert list(table.header[2:]) == ["entropy", "dropped", "repeated", "missing", "excess"]
    labels = [row[0] for row in table.rows[::3]]
    assert labels == ["up to 5", "6-11*", "12-18", "19 and more*", "all"]
    inside = ANALYZED[1].attention_N5[analyzed.buckets[2].bucket.indices].sum(axis=0)
    entropy = f"{inside[0] / inside[1]:.2f}"
    dropped = f"{100 * inside[2] / inside[4]:.1f} %"
    assert table.rows[7][1:4] == ["none", entropy, dropped]
    assert table.rows[8][1:5] == ["initial", "-", "-", "-"]
    assert table.rows[8][5].endswith(" %")


def test_gold_links_have_a_row_for_each_shift_of_the_runs_that_have_attention(analyzed):
    table = gold_table(analyzed)
    assert [row[0] for row in table.rows] == ["additive", "", "", "none", "", ""]
    assert [row[1] for row in table.rows] == ["-1", "0", "+1"] * 2
    expected = score_shifts(ANALYZED[1].gold)[1]
    values = (expected.error_rate, expected.precision, expected.recall, expected.mass)
    assert table.rows[5][2:] == [f"{100 * value:.1f} %" for value in values]


def test_an_arm_shows_the_mean_of_its_seeds(analyzed):
    seeds = replace(analyzed, arms=named_arms(["x", "x", "y"]))
    first, second, _ = analyzed.whole.attention
    entropy = f"{(first.entropy + second.entropy) / 2:.2f}"
    assert attention_table(seeds).rows[-2][1:3] == ["x", entropy]
    mean = (first.gold[0].error_rate + second.gold[0].error_rate) / 2
    assert gold_table(seeds).rows[1][:3] == ["", "0", f"{100 * mean:.1f} %"]
    assert len(gold_table(seeds).rows) == 3


def test_attention_for_json(analyzed):
    unlinked = replace(ANALYZED[0], gold=[(np.eye(2), ())])
    assert unlinked.score().to_dict()["gold"][1]["mass"] is None  # JSON has no NaN
    values = json.loads(json.dumps(analyzed.to_dict()))["attention"]
    assert [run["run"] for run in values["buckets"][0]["runs"]] == analyzed.runs
    assert values["runs"][0]["gold"][0]["shift"] == -1
    assert "gold" not in values["runs"][2]
