"""The laboratory's null comparison: its verdicts on made-up runs of one setting."""

import numpy as np

from scripts.laboratory.benchmarks.null_comparison import measure_rate, mix
from seq2seq_attn.metrics.bleu import Measure
from tests.metrics.corpora import make_hypotheses, make_references

REFERENCES = make_references(200)
MEASURE = Measure("bleu", REFERENCES)
NOISES = (0.25, 0.28, 0.31, 0.34, 0.37, 0.4)
"""how much each run spoils the references: their seeds differ much"""
RUNS = []
for seed, noise in enumerate(NOISES):
    RUNS.append(MEASURE.statistics(make_hypotheses(REFERENCES, seed, noise)))
PERFECT = MEASURE.statistics(REFERENCES)


def test_seeds_alone_are_no_finding_and_a_large_gain_is():
    none = measure_rate(RUNS, PERFECT, 0.0, 15)
    assert none["clear"] <= 0.1
    assert none["by_sentences"] > 0.3
    large = measure_rate(RUNS, PERFECT, 0.6, 5)
    assert large["gain"] > 20
    assert large["clear"] == 1


def test_new_seeds_differ_less_the_more_concentrated_their_weights_are():
    rng = np.random.default_rng(1)
    spreads = []
    for concentration in (0.5, 100.0):
        scores = [mix(RUNS, concentration, rng).score().score for _ in range(20)]
        spreads.append(np.std(scores))
    assert spreads[1] < spreads[0] / 2
