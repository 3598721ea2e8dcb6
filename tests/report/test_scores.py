"""Scores of a set: the baseline, the comparisons, the JSON."""

from __future__ import annotations

import json

import pytest
import sacrebleu

from seq2seq_attn.errors import UserError
from seq2seq_attn.evaluation.scores import score_set
from seq2seq_attn.metrics.by_length import make_buckets
from tests.metrics.corpora import make_hypotheses
from tests.report.conftest import LENGTHS, QUICK, REFERENCES


def test_only_runs_after_the_first_are_compared(two_systems):
    baseline, system = two_systems.scores["bleu"]
    assert baseline.bootstrap is baseline.randomization is baseline.retention is None
    assert system.bootstrap.difference == system.interval.value - baseline.interval.value < 0
    assert system.randomization.difference == system.bootstrap.difference
    assert system.retention.value == system.interval.value / baseline.interval.value


def test_scores_are_sacrebleus_overall_and_in_a_bucket(two_systems):
    hypotheses = make_hypotheses(REFERENCES, seed=1, noise=0.6)
    assert two_systems.scores["bleu"][1].interval.value == sacrebleu.corpus_bleu(hypotheses, [REFERENCES]).score
    row = two_systems.buckets[1]
    inside = [i for i, length in enumerate(LENGTHS) if 6 <= length < 12]
    alone = sacrebleu.corpus_bleu([hypotheses[i] for i in inside], [[REFERENCES[i] for i in inside]])
    assert row.scores["bleu"][1].interval.value == alone.score
    assert len(row.bucket) == len(inside)


def test_json_has_everything_a_reader_needs(two_systems):
    values = json.loads(json.dumps(two_systems.to_dict()))
    assert [measure["name"] for measure in values["measures"]] == ["bleu", "chrf", "ter"]
    bleu = values["measures"][0]
    assert bleu["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    assert bleu["runs"][1]["run"] == "none"
    assert {"score", "low", "high", "paired_bootstrap", "paired_randomization", "retention"} < set(bleu["runs"][1])
    assert bleu["runs"][0].keys() == {"run", "score", "low", "high", "details"}
    assert [bucket["label"] for bucket in values["buckets"]] == ["up to 5", "6-11", "12-18", "19 and more"]
    assert sum(bucket["num_pairs"] for bucket in values["buckets"]) == values["num_pairs"] == 150
    assert values["buckets"][-1]["is_thin"]


def test_a_missing_line_is_refused():
    with pytest.raises(UserError, match="149 hypotheses against 150 references"):
        score_set(
            "x", {"a": REFERENCES[1:]}, REFERENCES, make_buckets(LENGTHS, ()), measures=("bleu",), resampling=QUICK
        )
