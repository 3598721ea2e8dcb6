"""Scores of a set, of runs and of arms: what is compared, and the values for JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest

from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.metrics.significance import bootstrap, mean_difference, mean_retention, pool
from tests.metrics.corpora import make_hypotheses
from tests.report.conftest import QUICK, REFERENCES, SEEDS


def test_arm_scores_are_the_means_overall_and_in_each_bucket(grouped):
    measure = Measure("bleu", REFERENCES)
    statistics = []
    for number, noise in enumerate(SEEDS.values()):
        statistics.append(measure.statistics(make_hypotheses(REFERENCES, number, noise)))
    first = np.array([REFERENCES.index(line) for line in REFERENCES])  # one line occurs twice
    for cell in (grouped.whole, *grouped.buckets):
        indices = cell.bucket.indices
        runs = bootstrap(
            [run.subset(indices).merge_copies(first[indices]) for run in statistics], QUICK
        )
        values = [run.mean for run in runs]
        arms = pool(runs[:2]), pool(runs[2:5])
        additive, none, initial = cell.scores["bleu"]
        assert none.interval.value == pytest.approx(sum(values[2:5]) / 3, abs=1e-9)
        assert list(none.values) == values[2:5]
        assert none.retention == mean_retention(*arms)
        test = mean_difference(*arms)
        assert replace(none.bootstrap, p_corrected=test.p_value) == test
        assert additive.bootstrap is None
        assert (len(initial.values), initial.deviation) == (1, None)
        assert [score.interval.value for score in cell.run_scores["bleu"]] == values


def test_p_is_corrected_for_the_number_of_arms_and_of_runs(grouped):
    for scores in (grouped.whole.scores["bleu"], grouped.whole.run_scores["bleu"]):
        tests = [score.bootstrap for score in scores[1:]]
        smallest = min(tests, key=lambda test: test.p_value)
        assert smallest.p_corrected == pytest.approx(min(1, len(tests) * smallest.p_value))
        assert all(test.p_corrected >= test.p_value for test in tests)


def test_ungrouped_has_each_run_as_an_arm(grouped):
    runs = grouped.ungrouped()
    assert [arm.name for arm in runs.arms] == grouped.runs
    assert runs.whole.scores == grouped.whole.run_scores
    assert runs.buckets[1].scores == grouped.buckets[1].run_scores


def test_json_of_runs(two_systems):
    values = json.loads(json.dumps(two_systems.to_dict()))
    assert [measure["name"] for measure in values["measures"]] == ["bleu", "chrf", "ter"]
    bleu = values["measures"][0]
    assert bleu["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    first, second = bleu["runs"]
    assert first.keys() == {"run", "score", "low", "high", "details"}
    compared = {"paired_bootstrap", "retention"}
    assert second.keys() - first.keys() == compared
    assert "groups" not in bleu
    buckets = values["buckets"]
    labels = [bucket["label"] for bucket in buckets]
    assert labels == ["up to 5", "6-11", "12-18", "19 and more"]
    assert sum(bucket["num_pairs"] for bucket in buckets) == values["num_pairs"] == 150
    assert buckets[-1]["is_thin"]


def test_json_of_arms(grouped):
    values = json.loads(json.dumps(grouped.to_dict()))
    spread = {"mean", "standard_deviation", "min", "max", "num_seeds"}
    for row in (values, values["buckets"][1]):
        groups = row["measures"][0]["groups"]
        assert [group["arm"] for group in groups] == ["additive", "none", "initial"]
        assert groups[1]["seeds"] == [1, 2, 3]
        assert groups[1].keys() >= spread | {"retention", "paired_bootstrap"}
