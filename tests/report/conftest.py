"""Scores of two and of three systems on a made-up test set, and an attention map."""

from __future__ import annotations

import numpy as np
import pytest

from seq2seq_attn.evaluation.scores import Resampling, SetScores, score_set
from seq2seq_attn.metrics.by_length import make_buckets
from seq2seq_attn.translate.attention_map import AttentionMap
from tests.metrics.corpora import make_hypotheses, make_references

REFERENCES = make_references(150, max_length=20)
LENGTHS = np.array([len(reference.split()) for reference in REFERENCES])
QUICK = Resampling(num_resamples=100, num_trials=200)


def score_systems(names: list[str], *, edges: tuple[int, ...] = (6, 12, 19), **noises: float) -> SetScores:
    systems = {
        name: make_hypotheses(REFERENCES, seed=number, noise=noises.get(name, 0.3)) for number, name in enumerate(names)
    }
    buckets = make_buckets(LENGTHS, edges)
    return score_set("made-up", systems, REFERENCES, buckets, measures=("bleu", "chrf", "ter"), resampling=QUICK)


@pytest.fixture(scope="session")
def one_system() -> SetScores:
    return score_systems(["additive"])


@pytest.fixture(scope="session")
def two_systems() -> SetScores:
    return score_systems(["additive", "none"], none=0.6)


@pytest.fixture(scope="session")
def three_systems() -> SetScores:
    return score_systems(["additive", "none", "initial"], none=0.6, initial=0.9)


def make_map(num_source: int, num_target: int) -> AttentionMap:
    words = "Der kleine Hund läuft über die Straße , weil Fußballspieler $5 und $6 kosten .".split()
    weights_TS = np.full((num_target, num_source), 0.02)
    for target in range(num_target):
        weights_TS[target, target * num_source // num_target] = 0.75
    source = [*(words[i % len(words)] for i in range(num_source - 1)), "<eos>"]
    return AttentionMap(source, [f"word{i}" for i in range(num_target)], weights_TS)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from tests.report.browsing import start_browser  # selenium may be missing

    found = start_browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.quit()
