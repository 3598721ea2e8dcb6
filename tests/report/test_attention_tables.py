"""Attention statistics as tables and values: runs one by one, arms as the mean of their seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seq2seq_attn.evaluation.arms import named_arms
from seq2seq_attn.evaluation.attention_scores import AttentionAnalysis, GoldAttention, pool_analyses, score_attentions
from seq2seq_attn.metrics.alignment import score_attention
from seq2seq_attn.metrics.attention_stats import AttentionStatistics
from seq2seq_attn.metrics.by_length import make_buckets
from seq2seq_attn.report.attention_tables import attention_table, gold_table
from tests.report.conftest import LENGTHS

BUCKETS = make_buckets(LENGTHS, (6, 12, 19))


def make_analysis(seed: int, *, with_attention: bool = True) -> AttentionAnalysis:
    draw = np.random.default_rng(seed)
    words = draw.integers(5, 9, size=(150, 4))
    words[:, [0, 2]] = draw.integers(0, 5, size=(150, 2))
    if not with_attention:
        return AttentionAnalysis(AttentionStatistics(words))
    weights = [draw.dirichlet([0.3] * 4, size=3) for _ in range(150)]
    statistics = AttentionStatistics(words, draw.random((150, 5)) + np.array([0, 3, 0, 0, 5]))
    return AttentionAnalysis(statistics, GoldAttention(weights, [((0, 0), (2, 1), (3, 2))] * 150))


@pytest.fixture
def analyzed(three_systems):
    analyses = [make_analysis(1), make_analysis(2), make_analysis(3, with_attention=False)]
    return replace(three_systems, attention=score_attentions(analyses, BUCKETS)), analyses


def test_tables_have_a_row_for_each_bucket_and_run(analyzed):
    scores, analyses = analyzed
    table = attention_table(scores, unit="words")
    assert list(table.header) == ["words", "run", "entropy", "dropped", "repeated", "missing", "excess"]
    assert [row[0] for row in table.rows[::3]] == ["up to 5", "6-11*", "12-18", "19 and more*", "all"]
    inside = analyses[1].statistics.attention_N5[BUCKETS[2].indices].sum(axis=0)
    assert table.rows[7][1:4] == ["none", f"{inside[0] / inside[1]:.2f}", f"{100 * inside[2] / inside[4]:.1f} %"]
    assert table.rows[8][1:5] == ["initial", "-", "-", "-"]
    assert table.rows[8][5].endswith(" %")


def test_gold_table_has_a_row_for_each_shift_of_the_runs_that_have_attention(analyzed):
    scores, analyses = analyzed
    table = gold_table(scores)
    assert [row[:2] for row in table.rows] == [
        *(["additive", "-1"], ["", "0"], ["", "+1"], ["none", "-1"], ["", "0"], ["", "+1"])
    ]
    gold = analyses[1].gold
    expected = score_attention(gold.weights, gold.links, shift=1)
    values = (expected.error_rate, expected.precision, expected.recall, expected.mass)
    assert table.rows[5][2:] == [f"{100 * value:.1f} %" for value in values]


def test_an_arm_shows_the_mean_of_its_seeds(analyzed):
    scores, _ = analyzed
    grouped = replace(scores, arms=named_arms(["x", "x", "y"]))
    overall = scores.attention.overall
    mean = (overall[0].attention.entropy + overall[1].attention.entropy) / 2
    assert attention_table(grouped).rows[-2][1:3] == ["x", f"{mean:.2f}"]
    mean = (overall[0].gold[0].error_rate + overall[1].gold[0].error_rate) / 2
    assert gold_table(grouped).rows[1] == ["", "0", f"{100 * mean:.1f} %", *gold_table(grouped).rows[1][3:]]
    assert len(gold_table(grouped).rows) == 3


def test_pooled_sets_are_analyzed_on_all_their_pairs():
    parts = [make_analysis(1), make_analysis(2)]
    joined = pool_analyses(parts).score()
    gold = [part.gold for part in parts]
    together = score_attention([*gold[0].weights, *gold[1].weights], [*gold[0].links, *gold[1].links])
    assert joined.gold[0] == together
    sums = sum(part.statistics.attention_N5.sum(axis=0) for part in parts)
    assert joined.attention.entropy == pytest.approx(sums[0] / sums[1], abs=1e-9)
    assert pool_analyses([parts[0], make_analysis(4, with_attention=False)]).score().gold == {}


def test_values_for_json_have_no_missing_numbers(analyzed):
    scores, _ = analyzed
    unlinked = AttentionAnalysis(make_analysis(5).statistics, GoldAttention([np.eye(2)], [()]))
    assert unlinked.score().to_dict()["gold"][1]["mass"] is None
    values = scores.attention.to_dict(scores.runs, [row.bucket.label for row in scores.buckets])
    assert [run["run"] for run in values["buckets"][0]["runs"]] == scores.runs
    assert "gold" not in values["runs"][2]
