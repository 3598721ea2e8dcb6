"""The cells with layer normalization: values computed by hand, and the paper's formulas number by number."""

import math

import pytest
import torch

from seq2seq_attn.model.cell.layer_norm_gru import LayerNormGRU as build_gru
from seq2seq_attn.model.cell.layer_norm_lstm import LayerNormLSTM as build_lstm


def normalized(numbers, gain, bias):
    mean = sum(numbers) / len(numbers)
    variance = sum((x - mean) ** 2 for x in numbers) / len(numbers)
    return [g * (x - mean) / math.sqrt(variance + 1e-5) + b for x, g, b in zip(numbers, gain, bias, strict=True)]


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
        raw, whole, first = product(matrix, vector), [], 0
        for size in group_sizes:
            part = slice(first, first + size)
            whole += normalized(raw[part], gain[part].tolist(), bias[part].tolist())
            first += size
        found.append(whole)
    return found


def gru_step(cell, inputs, hidden, memory):
    size, found = len(hidden), []
    x, h = projections(cell, inputs, hidden, [2 * size, size])
    for i in range(size):
        reset, update = sigmoid(x[i] + h[i]), sigmoid(x[size + i] + h[size + i])
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
    inputs, hidden = torch.randn(3, 5, dtype=torch.float64), torch.randn(1, 4, dtype=torch.float64)
    state, expected, memory = cell.start(hidden), hidden[0].tolist(), [0.0] * 4
    for row in inputs:
        state = cell.step(cell.project_inputs(row[None, :2], row[None, 2:]), state)
        expected, memory = one_step(cell, row.tolist(), expected, memory)
        assert cell.hidden(state)[0].tolist() == pytest.approx(expected, rel=1e-9)
