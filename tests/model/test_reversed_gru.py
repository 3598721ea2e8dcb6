"""The encoder that reads from the end, against a loop over single words."""

from __future__ import annotations

import pytest
import torch

from seq2seq_attn.model.encoder import build_encoder
from seq2seq_attn.model.gru import gru_cell

LENGTHS = torch.tensor([5, 3, 1])


def build(num_layers: int):
    torch.manual_seed(1)
    encoder = build_encoder(
        "reversed_gru", num_ids=11, embedding_size=3, hidden_size=7, num_layers=num_layers, dropout=0.0
    )
    for parameter in encoder.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.5)
    return encoder.double()


def read_from_the_end(encoder, words):
    for layer, projection in enumerate(encoder.input_projections):
        hidden, states = torch.zeros(1, 7, dtype=torch.float64), []
        for word in reversed(words):
            recurrent = hidden @ encoder.recurrent_weight_LPH[layer].t() + encoder.recurrent_bias_LP[layer]
            hidden = gru_cell(projection(word[None]), recurrent, hidden)
            states.append(hidden[0])
        words = states[::-1]
    return torch.stack(words)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_states_and_summary_equal_a_loop(num_layers):
    encoder = build(num_layers)
    embedded_BSE = torch.randn(3, 5, 3, dtype=torch.float64)
    for row, length in enumerate(LENGTHS):
        embedded_BSE[row, length:] = torch.nan  # padding is never read
    encoded = encoder(embedded_BSE, LENGTHS)
    for row, length in enumerate(LENGTHS):
        expected = read_from_the_end(encoder, list(embedded_BSE[row, :length]))
        torch.testing.assert_close(encoded.values_BSM[row, :length], expected)
        torch.testing.assert_close(encoded.final_BM[row], expected[0])


def test_gradients_reach_every_word():
    encoder = build(2)
    embedded_BSE = torch.randn(3, 5, 3, dtype=torch.float64, requires_grad=True)
    encoder(embedded_BSE, LENGTHS).final_BM.sum().backward()
    is_real = torch.arange(5) < LENGTHS[:, None]
    assert (embedded_BSE.grad.abs().sum(dim=2) > 0).equal(is_real)


def test_the_fixed_vector_is_its_last_state():
    from seq2seq_attn.model.attention import build_attention

    encoded = build(1)(torch.randn(3, 5, 3, dtype=torch.float64), LENGTHS)
    mask_BS = torch.arange(5) < LENGTHS[:, None]
    attention = build_attention("none", query_size=7, memory_size=7, options={"forward_size": 0})
    memory, _ = attention.prepare(encoded.values_BSM, mask_BS)
    torch.testing.assert_close(memory.values_BSM[:, 0], encoded.final_BM)
