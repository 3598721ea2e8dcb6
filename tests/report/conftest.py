"""Scores of one, two and three systems, and of arms, on a made-up test set; an attention map."""

import numpy as np
import pytest

from seq2seq_attn.evaluation.names import named_arms
from seq2seq_attn.evaluation.scoring import Scored, Settings, score_sets
from seq2seq_attn.evaluation.test_sets import GERMAN_TO_ENGLISH, EvaluationSet
from seq2seq_attn.evaluation.translations import SetTranslations
from seq2seq_attn.metrics.significance import Resampling
from seq2seq_attn.report.pages import Report
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.translate.attention_map import AttentionMap
from tests.metrics.corpora import make_hypotheses, make_references

REFERENCES = [
    line.replace('"', "") for line in make_references(150, max_length=20)
]  # spaCy's words
LENGTHS = np.array([len(reference.split()) for reference in REFERENCES])
QUICK = Resampling(num_resamples=100)
SEEDS = {
    "additive-s1": 0.3,
    "additive-s2": 0.35,
    "none-s1": 0.6,
    "none-s2": 0.65,
    "none-s3": 0.7,
    "initial-s1": 0.9,
}
"""how much each run spoils the references"""


def score_systems(names, *, edges="6,12,19", arms=(), **noises):
    systems = {
        name: [
            SetTranslations(make_hypotheses(REFERENCES, seed=number, noise=noises.get(name, 0.3)))
        ]
        for number, name in enumerate(names)
    }
    settings = Settings(edges, "reference", ("bleu", "chrf", "ter"), QUICK)
    test_set = EvaluationSet("made-up", REFERENCES, REFERENCES)
    return score_sets([test_set], systems, settings=settings, arms=named_arms(arms)).sets[0]


def report_of(scores, **description):
    """The report of one set."""
    scored = Scored(
        [scores],
        [LENGTHS],
        "spacy.blank:de:3.8",
        {1: (6, 12, 19)},
        Settings(resampling=QUICK),
        GERMAN_TO_ENGLISH,
    )
    return Report(
        scored,
        [{"name": run, **description} for run in scores.runs],
        describe_environment([], "cpu"),
    )


@pytest.fixture(scope="session")
def one_system():
    return score_systems(["additive"])


@pytest.fixture(scope="session")
def two_systems():
    return score_systems(["additive", "none"], none=0.6)


@pytest.fixture(scope="session")
def three_systems():
    return score_systems(["additive", "none", "initial"], none=0.6, initial=0.9)


@pytest.fixture(scope="session")
def grouped():
    """Arms of two seeds, three and one."""
    return score_systems([*SEEDS], arms=tuple(name.partition("-")[0] for name in SEEDS), **SEEDS)


def make_map(num_source, num_target):
    words = "Der kleine Hund läuft über die Straße , weil Fußballspieler $5 und $6 kosten .".split()
    weights_TS = np.full((num_target, num_source), 0.02)
    for target in range(num_target):
        weights_TS[target, target * num_source // num_target] = 0.75
    source = [*(words[i % len(words)] for i in range(num_source - 1)), "<eos>"]
    return AttentionMap(source, [f"word{i}" for i in range(num_target)], weights_TS)
