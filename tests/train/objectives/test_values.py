"""Each objective against values by hand, and against loops over its formula."""

import math

import numpy as np
import pytest
import torch

from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import collate
from seq2seq_attn.model.build import build_model
from seq2seq_attn.text.vocab import PAD
from seq2seq_attn.train.objectives import agreement, coverage, entropy, fertility, guided
from tests.contract.test_objectives import (
    LINKS,
    NUM_IDS,
    SOURCES,
    TARGETS,
    make_batch,
    model_outputs,
    outputs_of,
    random_scores,
)


@pytest.fixture
def pair():
    """Two source tokens and one target token, each with EOS; both source tokens are linked to the
    target token."""
    return collate([[5, 6]], [[7]], [0], [np.array([[0, 0], [1, 0]])])


def term(objective, weights_TS, batch):
    return objective.term(model_outputs(batch, weights_TS.unsqueeze(1)))


def test_the_entropy_of_a_small_weight_has_the_gradient_of_the_formula(pair):
    small = 1e-8
    weights_TS = torch.tensor([[1.0 - small, small, 0.0], [0.0, 0.0, 1.0]], requires_grad=True)
    term(entropy.Entropy(), weights_TS, pair).backward()
    assert weights_TS.grad[0, 1].item() == pytest.approx(-math.log(small) - 1.0, rel=1e-5)
    assert weights_TS.grad[0, 2] == weights_TS.grad[1, 0] == 0.0  # where a weight is 0


def test_guided_without_a_link_is_nothing_and_a_weight_of_zero_costs_much_but_not_everything(pair):
    unlinked = make_batch([2])
    objective = guided.Guided()
    value = objective.term(outputs_of(unlinked, random_scores(unlinked))).item()
    assert (value, objective.count(unlinked)) == (0.0, 0)
    weights_TS = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]], requires_grad=True)
    cost = term(objective, weights_TS, pair)
    cost.backward()
    assert 60 < cost.item() < 80
    assert torch.isfinite(weights_TS.grad).all()


def oracle(name, weights_TS, links):
    """The formula, for one pair without padding."""
    num_target = len(weights_TS)
    num_source = len(weights_TS[0])
    total = 0.0
    for t in range(num_target):
        linked = [s for s, target in links if target == t]
        for s in range(num_source):
            weight = weights_TS[t][s]
            before = sum(weights_TS[i][s] for i in range(t))
            total += {
                "guided": -math.log(weight) / len(linked) if s in linked else 0.0,
                "coverage": min(weight, before),
                "entropy": -weight * math.log(weight),
                "agreement": -(weight**2),  # the reverse model's weight is the same
            }.get(name, 0.0)
    if "fertility" in name:
        expected = {"fertility": 1.0, "half a fertility": 0.5}[name]
        total = sum((expected - sum(row[s] for row in weights_TS)) ** 2 for s in range(num_source))
    return total


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        ("guided", guided.Guided()),
        ("coverage", coverage.Coverage()),
        ("fertility", fertility.Fertility()),
        ("half a fertility", fertility.Fertility(fertility=0.5)),
        ("entropy", entropy.Entropy()),
        ("agreement", agreement.Agreement()),
    ],
)
def test_a_batch_is_the_sum_of_loops_over_its_pairs(name, objective):
    batch = make_batch()
    outputs = outputs_of(batch, random_scores(batch))
    expected = 0.0
    for row, (source, target, links) in enumerate(zip(SOURCES, TARGETS, LINKS, strict=True)):
        weights_TS = outputs.weights_TBS[: len(target) + 1, row, : len(source) + 1].tolist()
        expected += oracle(name, weights_TS, links)
    assert objective.term(outputs).item() == pytest.approx(expected, rel=1e-12)


def test_an_objective_may_read_the_log_probabilities_of_all_tokens():
    torch.manual_seed(1)
    rates = [f"model.dropout.{part}=0" for part in ("embedding", "encoder", "readout")]
    model = build_model(
        load_config([], rates).model, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS
    )
    outputs = model(make_batch())
    real_I = (outputs.targets_N != PAD).nonzero().squeeze(1)
    log_probs_IV = outputs.log_probs_of(real_I)
    positions = real_I.tolist()
    assert len(positions) == len(log_probs_IV) == sum(len(target) + 1 for target in TARGETS)
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = model(collate([source], [target], [0]))
        for t in range(len(target) + 1):
            expected_V = model.output.log_probs(*alone.rows(torch.tensor([t])))[0]
            torch.testing.assert_close(
                log_probs_IV[positions.index(t * len(SOURCES) + row)], expected_V
            )
