"""The output `pointer`: its formula by hand, and a word whose wrong letter is found, through training and search."""

import math

import pytest
import torch

from seq2seq_attn.data.batch import collate
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.output.base import LEAST_WEIGHT
from seq2seq_attn.model.output.pointer import Pointer
from seq2seq_attn.text.vocab import EOS, PAD, ExtendedIds

NUM_IDS = 6
OUTPUT = Pointer(num_ids=NUM_IDS, source_attention=None)


def step_of(weights):
    one = torch.ones(len(weights), 1, dtype=torch.float64)
    return StepOutput(one, one, one, one, torch.tensor(weights, dtype=torch.float64), None)


def memory_of(extended):
    extended = torch.tensor(extended)
    return Memory(None, extended, extended)


def test_equal_tokens_add_up_and_a_new_one_has_the_id_of_its_first_position():
    step, memory = step_of([[0.1, 0.2, 0.3, 0.15, 0.25]]), memory_of([[4, NUM_IDS + 1, 4, NUM_IDS + 1, EOS]])
    found = OUTPUT.log_probs(step, memory).exp()[0]
    expected = [0, 0, 0.25, 0, 0.4, 0, 0, 0.35, 0, 0, 0]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-15)


def test_label_smoothing_is_over_the_source_positions(make_model):
    model = make_model(output={"name": "pointer"}, tie_embeddings="none").eval()
    source, target = [[5, 6, 7], [8]], [[7, 5], [8]]
    extended = [ExtendedIds(*pair) for pair in zip(source, target, strict=True)]
    batch = collate(source, target, range(2), extended=extended)
    outputs = model(batch)
    loss = model.output.loss(outputs, batch, label_smoothing=0.1)
    wanted = nll = 0.0
    for pair, t in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1)):
        weights = outputs.weights_TBS[t, pair].tolist()
        spelled = [*source[pair], EOS]
        right = sum(a for a, x in zip(weights, spelled, strict=False) if x == [*target[pair], EOS][t])
        nll -= math.log(right)
        smoothing = sum(math.log(a) for a in weights[: len(spelled)]) / len(spelled)
        wanted -= 0.9 * math.log(right) + 0.1 * smoothing
    assert loss.nll_sum.item() == pytest.approx(nll, rel=1e-6)
    assert loss.loss_sum.item() == pytest.approx(wanted, rel=1e-6)


def test_a_token_that_is_not_in_the_source_has_a_finite_loss():
    log_probs = OUTPUT.log_probs(step_of([[0.0, 1.0]]), memory_of([[4, EOS]]))
    assert log_probs[0, 5].item() == pytest.approx(math.log(LEAST_WEIGHT))
    assert log_probs[0, PAD].item() == pytest.approx(math.log(LEAST_WEIGHT))
    assert log_probs[0, NUM_IDS].item() == -math.inf
