"""Cells under autocast, and those with layer normalization against the paper's formulas, number by
number."""

import math

import pytest
import torch

from seq2seq_attn.model.cell.layer_norm_gru import LayerNormGRU as build_gru
from seq2seq_attn.model.cell.layer_norm_lstm import LayerNormLSTM as build_lstm
from seq2seq_attn.model.variants import build_variant

SIZE, NUM_STEPS = 32, 60


@pytest.mark.parametrize(("name", "num_gates", "gate"), [("gru", 3, 1), ("lstm", 4, 1)])
def test_a_gate_near_1_still_moves_the_state(name, num_gates, gate):
    """sigmoid(7) = 0.99909 is 1 in bf16, with which the state would never change."""
    torch.manual_seed(0)
    cell = build_variant("cell", name, {}, input_sizes=[SIZE], hidden_size=SIZE)
    for parameter in cell.parameters():
        torch.nn.init.uniform_(parameter, -0.2, 0.2)
    with torch.no_grad():
        cell.input_bias_P.view(num_gates, SIZE)[gate] = 7.0
    inputs_TBI = torch.randn(NUM_STEPS, 4, SIZE)

    def last_hidden(is_bf16: bool) -> torch.Tensor:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_bf16):
            state = cell.start(torch.zeros(4, SIZE))
            for inputs_BI in inputs_TBI:
                state = cell.step(cell.project_inputs(inputs_BI), state)
        return cell.hidden(state)

    exact = last_hidden(False)
    assert (last_hidden(True) - exact).norm() < 0.02 * exact.norm()


def normalized(numbers, gain, bias):
    mean = sum(numbers) / len(numbers)
    variance = sum((x - mean) ** 2 for x in numbers) / len(numbers)
    return [
        g * (x - mean) / math.sqrt(variance + 1e-5) + b
        for x, g, b in zip(numbers, gain, bias, strict=True)
    ]


def product(matrix, vector):
    return [sum(w * x for w, x in zip(row, vector, strict=True)) for row in matrix]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def projections(cell, inputs, hidden, group_sizes):
    """LN(W x) and LN(U h) of one row, group after group."""
    found = []
    weights = torch.cat(list(cell.input_weights), dim=1).tolist()
    for matrix, vector, gain, bias in (
        (weights, inputs, cell.input_norm_P, cell.input_bias_P),
        (cell.recurrent_weight_PH.tolist(), hidden, cell.recurrent_norm_P, cell.recurrent_bias_P),
    ):
        raw = product(matrix, vector)
        whole = []
        first = 0
        for size in group_sizes:
            part = slice(first, first + size)
            whole += normalized(raw[part], gain[part].tolist(), bias[part].tolist())
            first += size
        found.append(whole)
    return found


def gru_step(cell, inputs, hidden, memory):
    size = len(hidden)
    found = []
    x, h = projections(cell, inputs, hidden, [2 * size, size])
    for i in range(size):
        reset = sigmoid(x[i] + h[i])
        update = sigmoid(x[size + i] + h[size + i])
        new = math.tanh(x[2 * size + i] + reset * h[2 * size + i])
        found.append((1 - update) * new + update * hidden[i])
    return found, memory


def lstm_step(cell, inputs, hidden, memory):
    size = len(hidden)
    a = [x + h for x, h in zip(*projections(cell, inputs, hidden, [4 * size]), strict=True)]
    i, f, g, o = (a[k * size : (k + 1) * size] for k in range(4))
    memory = [sigmoid(f[k]) * memory[k] + sigmoid(i[k]) * math.tanh(g[k]) for k in range(size)]
    scaled = normalized(memory, cell.memory_norm.weight.tolist(), cell.memory_norm.bias.tolist())
    return [sigmoid(o[k]) * math.tanh(scaled[k]) for k in range(size)], memory


@pytest.mark.parametrize(("build", "one_step"), [(build_gru, gru_step), (build_lstm, lstm_step)])
def test_steps_equal_the_formula_number_by_number(build, one_step):
    torch.manual_seed(1)
    cell = build(input_sizes=[2, 3], hidden_size=4).double()
    for parameter in cell.parameters():
        torch.nn.init.uniform_(parameter, -1.0, 1.0)
    inputs = torch.randn(3, 5, dtype=torch.float64)
    hidden = torch.randn(1, 4, dtype=torch.float64)
    state = cell.start(hidden)
    expected = hidden[0].tolist()
    memory = [0.0] * 4
    for row in inputs:
        state = cell.step(cell.project_inputs(row[None, :2], row[None, 2:]), state)
        expected, memory = one_step(cell, row.tolist(), expected, memory)
        assert cell.hidden(state)[0].tolist() == pytest.approx(expected, rel=1e-9)
