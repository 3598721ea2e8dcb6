"""Scores of a set, of runs and of arms: what is compared, and the values for JSON."""

import json

import pytest

from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.metrics.significance import bootstrap, mean_difference, mean_retention, pool
from tests.metrics.corpora import make_hypotheses
from tests.report.conftest import QUICK, REFERENCES, SEEDS


def test_arm_scores_are_the_means_overall_and_in_each_bucket(grouped):
    measure = Measure("bleu", REFERENCES)
    lines = [
        make_hypotheses(REFERENCES, seed=number, noise=noise)
        for number, noise in enumerate(SEEDS.values())
    ]
    for cell in (grouped.whole, *grouped.buckets):
        runs = [measure.statistics(hypotheses).subset(cell.bucket.indices) for hypotheses in lines]
        values = [run.score().score for run in runs]
        samples = bootstrap(runs, QUICK)
        additive, none, initial = cell.scores["bleu"]
        assert none.interval.value == pytest.approx(sum(values[2:5]) / 3, abs=1e-9)
        assert min(none.values) == min(values[2:5])
        assert none.retention == mean_retention(pool(samples[:2]), pool(samples[2:5]))
        assert none.bootstrap == mean_difference(pool(samples[:2]), pool(samples[2:5]))
        assert none.randomization is None  # of several runs, which sentences would be swapped?
        assert additive.bootstrap is None
        assert (len(initial.values), initial.deviation) == (1, None)
        assert [score.interval.value for score in cell.run_scores["bleu"]] == values
    runs = grouped.ungrouped()
    assert [arm.name for arm in runs.arms] == grouped.runs
    assert runs.whole.scores == grouped.whole.run_scores
    assert runs.buckets[1].scores == grouped.buckets[1].run_scores


def test_json_has_everything_a_reader_needs(two_systems, grouped):
    values = json.loads(json.dumps(two_systems.to_dict()))
    assert [measure["name"] for measure in values["measures"]] == ["bleu", "chrf", "ter"]
    bleu = values["measures"][0]
    assert bleu["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    first, second = bleu["runs"]
    assert first.keys() == {"run", "score", "low", "high", "details"}
    assert second.keys() - first.keys() == {
        "paired_bootstrap",
        "paired_randomization",
        "retention",
    }
    labels = [bucket["label"] for bucket in values["buckets"]]
    assert labels == ["up to 5", "6-11", "12-18", "19 and more"]
    assert sum(bucket["num_pairs"] for bucket in values["buckets"]) == values["num_pairs"] == 150
    assert values["buckets"][-1]["is_thin"]
    assert "groups" not in bleu
    values = json.loads(json.dumps(grouped.to_dict()))
    for measures in (values["measures"], values["buckets"][1]["measures"]):
        assert [group["arm"] for group in measures[0]["groups"]] == ["additive", "none", "initial"]
        group = measures[0]["groups"][1]
        assert group["seeds"] == [1, 2, 3]
        assert {
            "mean",
            "standard_deviation",
            "min",
            "max",
            "num_seeds",
            "retention",
            "paired_bootstrap",
        } < set(group)
