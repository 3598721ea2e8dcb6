"""Cells under autocast, and those with layer normalization against the paper's formulas."""

import pytest
import torch

from seq2seq_attn.model.cell.layer_norm_gru import LayerNormGRU as build_gru
from seq2seq_attn.model.cell.layer_norm_lstm import LayerNormLSTM as build_lstm
from seq2seq_attn.model.variants import build_variant
from tests.modules import half_precision, randomize

SIZE = 32


@pytest.mark.parametrize(
    ("name", "num_gates"),
    [
        ("gru", 3),
        ("lstm", 4),
    ],
)
@torch.no_grad()
def test_a_gate_near_1_still_moves_the_state(name, num_gates):
    """sigmoid(7) = 0.99909 is 1 in bf16, with which the state would never change."""
    torch.manual_seed(0)
    cell = build_variant("cell", name, {}, input_sizes=[SIZE], hidden_size=SIZE)
    randomize(cell, 0.2).input_bias_P.view(num_gates, SIZE)[1] = 7.0
    inputs_TBI = torch.randn(60, 4, SIZE)

    def last_hidden(is_half):
        with half_precision(is_half):
            state = cell.start(torch.zeros(4, SIZE))
            for inputs_BI in inputs_TBI:
                state = cell.step(cell.project_inputs(inputs_BI), state)
        return cell.hidden(state)

    exact = last_hidden(False)
    assert (last_hidden(True) - exact).norm() < 0.02 * exact.norm()


def normalize(numbers, gain, bias):
    centered = numbers - numbers.mean()
    return gain * centered / ((centered**2).mean() + 1e-5).sqrt() + bias


def normalize_groups(numbers, gain, bias, sizes):
    groups = zip(numbers.split(sizes), gain.split(sizes), bias.split(sizes), strict=True)
    return torch.cat([normalize(*group) for group in groups])


def projections(cell, inputs, hidden, sizes):
    """LN(W x) and LN(U h), group after group."""
    x = torch.cat([*cell.input_weights], dim=1) @ inputs
    h = cell.recurrent_weight_PH @ hidden
    return (
        normalize_groups(x, cell.input_norm_P, cell.input_bias_P, sizes),
        normalize_groups(h, cell.recurrent_norm_P, cell.recurrent_bias_P, sizes),
    )


def gru_step(cell, inputs, hidden, memory):
    size = len(hidden)
    x, h = projections(cell, inputs, hidden, [2 * size, size])
    reset, update, _ = torch.sigmoid(x + h).split(size)
    new = torch.tanh(x[2 * size :] + reset * h[2 * size :])
    return (1 - update) * new + update * hidden, memory


def lstm_step(cell, inputs, hidden, memory):
    x, h = projections(cell, inputs, hidden, [4 * len(hidden)])
    i, f, g, o = (x + h).split(len(hidden))
    memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(g)
    scaled = normalize(memory, cell.memory_norm.weight, cell.memory_norm.bias)
    return torch.sigmoid(o) * torch.tanh(scaled), memory


@pytest.mark.parametrize(
    ("build", "one_step"),
    [
        (build_gru, gru_step),
        (build_lstm, lstm_step),
    ],
)
def test_steps_with_layer_normalization_equal_the_formula(build, one_step):
    torch.manual_seed(1)
    cell = randomize(build(input_sizes=[2, 3], hidden_size=4).double(), 1.0)
    hidden = torch.randn(4, dtype=torch.float64)
    memory = torch.zeros(4, dtype=torch.float64)
    state = cell.start(hidden.unsqueeze(0))
    for inputs in torch.randn(3, 5, dtype=torch.float64):
        projected = cell.project_inputs(inputs[None, :2], inputs[None, 2:])
        state = cell.step(projected, state)
        hidden, memory = one_step(cell, inputs, hidden, memory)
        torch.testing.assert_close(cell.hidden(state)[0], hidden)
