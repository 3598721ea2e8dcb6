"""The encoder that reads from the end, against a loop over single words."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.model.layers import Embedding
from seq2seq_attn.model.variants import build_variant

SOURCE = collate_source([[5, 6, 7, 8], [9, 4], []])
LENGTHS = (5, 3, 1)


def build(num_layers: int, cell: str, residual: bool = False):
    torch.manual_seed(1)
    encoder = build_variant(
        "encoder",
        "reversed",
        {"residual": residual},
        embedding=Embedding(11, 3),
        build_cell=partial(build_variant, "cell", cell, {}),
        hidden_size=7,
        num_layers=num_layers,
        dropout=0.0,
    )
    for parameter in encoder.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.5)
    return encoder.double()


def read_from_the_end(encoder, words):
    for number, cell in enumerate(encoder.layers):
        state, states = cell.start(torch.zeros(1, 7, dtype=torch.float64)), []
        for word in reversed(words):
            state = cell.step(cell.project_inputs(word[None]), state)
            states.append(cell.hidden(state)[0])
        states = states[::-1]
        is_added = encoder.is_residual and number
        words = [state + word for state, word in zip(states, words, strict=True)] if is_added else states
    return torch.stack(words)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize(("num_layers", "residual"), [(1, False), (2, False), (2, True)])
def test_states_and_summary_equal_a_loop(num_layers, residual, cell):
    encoder = build(num_layers, cell, residual)
    encoder.embedding.weight.data[0] = torch.nan  # padding is never read
    encoded = encoder(SOURCE)
    for row, length in enumerate(LENGTHS):
        expected = read_from_the_end(encoder, list(encoder.embedding(SOURCE.ids_BS[row, :length])))
        torch.testing.assert_close(encoded.values_BSM[row, :length], expected)
        torch.testing.assert_close(encoded.final_BM[row], expected[0])


def test_gradients_reach_every_word():
    encoder = build(2, "gru")
    encoder(SOURCE).final_BM.sum().backward()
    reached = encoder.embedding.weight.grad.abs().sum(dim=1).nonzero().flatten()
    assert reached.tolist() == sorted(set(SOURCE.ids_BS[SOURCE.mask_BS].tolist()))
