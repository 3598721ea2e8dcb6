"""Minimum risk training: the term against values by hand and loops, the samples, an exact resume."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.errors import UsageError
from seq2seq_attn.metrics.gleu import gleu
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.text.vocab import EOS, PAD
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.loss import with_log_probs
from seq2seq_attn.train.objectives import minimum_risk
from seq2seq_attn.train.samples import with_samples
from tests.train.conftest import ConfigMaker
from tests.train.test_loop import assert_same_end, train_and_die

NUM_IDS = 19
SOURCES, TARGETS = [[5, 6, 7], [8], []], [[7, 8, 9, 10], [11], []]


@pytest.fixture
def model() -> Seq2Seq:
    torch.manual_seed(2)
    sizes = ["model.embedding_size=11", "model.hidden_size=13", "model.encoder.hidden_size=7"]
    return build_model(load_config((), sizes).model, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS)


def rows_of(batch: Batch) -> list[list[int]]:
    return [[token for token in row if token not in (PAD, EOS)] for row in batch.tgt_out_BT.tolist()]


def test_by_hand(model: Seq2Seq) -> None:
    """P of the reference is 0.5, of a translation with a GLEU of 0.5 it is 0.25; the other two say the same again."""
    batch = collate([[5]] * 4, [[7, 8], [7, 8, 9], [7, 8], [7, 8, 9]], range(4))
    outputs = model(batch)
    log_probs = {0: math.log(0.5), 1: math.log(0.25), 2: math.log(0.125), 3: math.log(0.5)}
    rows_N = batch.positions_N % 4
    lengths = {0: 3, 1: 4, 2: 3, 3: 4}
    per_token_N = torch.tensor([log_probs[row] / lengths[row] for row in rows_N.tolist()])
    term = minimum_risk.build(sharpness=1.0, num_samples=3).term(
        outputs._replace(target_log_probs_N=per_token_N), batch
    )
    assert term.item() == pytest.approx(0.25 / 0.75 * 0.5)
    term = minimum_risk.build(sharpness=0.5, num_samples=3).term(
        outputs._replace(target_log_probs_N=per_token_N), batch
    )
    assert term.item() == pytest.approx(0.5**0.5 / (1 + 0.5**0.5) * 0.5)


def test_against_loops_over_the_formula(model: Seq2Seq) -> None:
    objective = minimum_risk.build(sharpness=0.3, num_samples=5)
    batch = with_samples(model, collate(SOURCES, TARGETS, range(3)), 5)
    model.eval()
    outputs = with_log_probs(model.output, model(batch), batch, [objective])
    expected = 0.0
    for pair in range(3):
        rows = range(6 * pair, 6 * pair + 6)
        different = {tuple(rows_of(batch)[row]): row for row in reversed(rows)}
        powers = {}
        for translation, row in different.items():
            alone = collate([SOURCES[pair]], [list(translation)], [row])
            loss = model.output.loss(model(alone), alone, label_smoothing=0.0)
            powers[translation] = math.exp(-0.3 * loss.nll_sum.item())
        for translation, power in powers.items():
            expected += power / sum(powers.values()) * (1 - gleu(translation, TARGETS[pair]))
    assert objective.term(outputs, batch).item() == pytest.approx(expected, rel=1e-4)
    assert objective.count(collate(SOURCES, TARGETS, range(3))) == 3


def test_every_pair_is_followed_by_its_samples(model: Seq2Seq) -> None:
    batch = collate(SOURCES, TARGETS, [4, 2, 9])
    torch.manual_seed(7)
    drawn = with_samples(model, batch, 3)
    assert model.training
    assert rows_of(drawn)[::4] == TARGETS
    assert drawn.indices_B.tolist() == [4] * 4 + [2] * 4 + [9] * 4
    assert torch.equal(drawn.source.ids_BS, batch.source.ids_BS.repeat_interleave(4, dim=0))
    assert all(len(row) <= 2 * len(TARGETS[number // 4]) + 10 for number, row in enumerate(rows_of(drawn)))
    assert len({tuple(row) for row in rows_of(drawn)}) > 3
    other = with_samples(model, batch, 3)
    assert rows_of(other) != rows_of(drawn)
    torch.manual_seed(7)
    assert rows_of(with_samples(model, batch, 3)) == rows_of(drawn)


def test_samples_are_drawn_without_dropout(model: Seq2Seq) -> None:
    drawn = []
    for is_training in (True, False):
        torch.manual_seed(7)
        drawn.append(rows_of(with_samples(model.train(is_training), collate(SOURCES, TARGETS, range(3)), 4)))
        assert model.training == is_training
    assert drawn[0] == drawn[1]


def test_the_samples_of_a_pair_are_drawn_independently(model: Seq2Seq) -> None:
    torch.manual_seed(7)
    rows = rows_of(with_samples(model, collate(SOURCES, TARGETS, range(3)), 5))
    for start in range(0, len(rows), 6):
        assert len({tuple(row) for row in rows[start + 1 : start + 6]}) > 3


def test_a_sample_without_an_end_is_twice_as_long_as_its_reference_and_ten_tokens_more(model: Seq2Seq) -> None:
    with torch.no_grad():
        model.output.projection.bias[EOS] = -100.0
    rows = rows_of(with_samples(model, collate(SOURCES, TARGETS, range(3)), 1))
    assert [len(row) for row in rows[1::2]] == [2 * len(target) + 10 for target in TARGETS]


def test_samples_leave_nothing_in_the_cache_of_autocast(model: Seq2Seq) -> None:
    """An inference tensor in it would fail in the backward pass of the update around."""
    is_enabled = []
    model.encoder.register_forward_hook(lambda *_: is_enabled.append(torch.is_autocast_cache_enabled()))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with_samples(model, collate(SOURCES, TARGETS, range(3)), 2)
        assert torch.is_autocast_cache_enabled()
    assert is_enabled == [False]


def test_a_translation_unlike_the_reference_loses_probability(model: Seq2Seq) -> None:
    objective = minimum_risk.build(sharpness=1.0, num_samples=1)
    batch = collate([[5, 6]] * 2, [[7, 8], [9, 10]], range(2))
    outputs = with_log_probs(model.output, model(batch), batch, [objective])
    outputs.target_log_probs_N.retain_grad()
    objective.term(outputs, batch).backward()
    gradient_N = outputs.target_log_probs_N.grad[: batch.num_tokens]
    is_sample_N = batch.positions_N[: batch.num_tokens] % 2 == 1
    assert (gradient_N[is_sample_N] > 0).all()
    assert (gradient_N[~is_sample_N] < 0).all()


def test_resumed_training_is_as_if_never_stopped(toy_config: ConfigMaker, tmp_path: Path) -> None:
    settings = ["train.objectives={minimum_risk: {weight: 2, options: {num_samples: 2}}}", "train.max_updates=5"]
    whole = train(toy_config(*settings), run_dir=tmp_path / "whole")
    train_and_die(3, toy_config(*settings), run_dir=tmp_path / "killed")
    resumed = train(toy_config(*settings), run_dir=tmp_path / "killed", resume=True)
    assert_same_end(resumed, whole)


def test_an_output_that_copies_is_refused(toy_config: ConfigMaker, tmp_path: Path) -> None:
    settings = ["train.objectives={minimum_risk: {}}", "model.output.name=copy"]
    with pytest.raises(UsageError, match=r"draws translations.*model\.output\.name=copy"):
        train(toy_config(*settings), run_dir=tmp_path / "run")
