"""Diverse beam search against the formula, written out for one hypothesis at a time."""

from collections import Counter

import numpy as np
import pytest

from seq2seq_attn.text.vocab import EOS
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import search

LIMIT = 5


def best_by_hand(model, source, num_groups, size, diversity):
    """The finished hypotheses of all groups, with EOS, and the best score that is cut; each group
    runs to the limit."""
    groups = [{(): 0.0} for _ in range(num_groups)]
    finished = [set() for _ in range(num_groups)]
    for _ in range(LIMIT):
        taken = Counter()
        for number, alive in enumerate(groups):
            ranked = []
            for prefix, total in alive.items():
                log_probs = model.next_log_probs(tuple(source), prefix)
                for token in range(EOS, len(log_probs)):
                    log_prob = total + log_probs[token]
                    rank = log_prob - diversity * taken[token]
                    ranked.append((rank, (*prefix, token), log_prob))
            ranked.sort(reverse=True)
            groups[number] = {}
            for _, ids, log_prob in ranked[: size - len(finished[number])]:
                taken[ids[-1]] += 1
                if ids[-1] == EOS:
                    finished[number].add(ids)
                else:
                    groups[number][ids] = log_prob
    best_cut = max(max(alive.values(), default=-np.inf) for alive in groups)
    return set().union(*finished), best_cut


@pytest.mark.parametrize(
    ("num_groups", "size"),
    [
        (1, 3),
        (2, 2),
        (3, 1),
        (2, 3),
    ],
)
def test_groups_are_those_of_the_formula(num_groups, size):
    model = FakeModel(
        num_free=4,
        seed=0,
        sharpness=1.0,
        eos_bonus=0.5,
    )
    ids, batch = sources(6, 7)
    beam_size = num_groups * size
    sizes = {
        "beam_size": beam_size,
        "n_best": beam_size,
        "num_groups": num_groups,
    }
    found = search(
        model,
        batch,
        [LIMIT] * 6,
        method="diverse",
        diversity=0.7,
        **sizes,
    )
    for source, hypotheses in zip(ids, found, strict=True):
        expected, best_cut = best_by_hand(model, source, num_groups, size, 0.7)
        assert {(*h.ids, EOS) for h in hypotheses if h.is_finished} == expected
        for hypothesis in hypotheses:
            log_prob = model.forced_log_prob(source, hypothesis)
            assert hypothesis.is_cut == (not hypothesis.is_finished or hypothesis.score < best_cut)
            assert hypothesis.log_prob == hypothesis.score == pytest.approx(log_prob, rel=1e-5)
