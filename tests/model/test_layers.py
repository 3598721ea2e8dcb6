"""Rows of memories and states, the largest values of each row, and dropout of features."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.model.layers import select_rows, top_tokens

INDEX_R = torch.tensor([2, 0, 0])


class Fields(NamedTuple):
    first: Any
    second: Any = None


@dataclass
class Record:
    tensor: torch.Tensor


def test_tuples_of_tensors_are_reordered():
    tensor = torch.arange(3)
    found = select_rows(Fields((tensor, Fields(tensor))), INDEX_R)
    assert isinstance(found, Fields)
    assert torch.equal(found.first[0], INDEX_R)
    assert torch.equal(found.first[1].first, INDEX_R)
    assert (found.first[1].second, found.second) == (None, None)


@pytest.mark.parametrize(
    "state", [[torch.arange(3)], {"a": torch.arange(3)}, Record(torch.arange(3)), "abc"]
)
def test_what_would_be_left_in_the_old_order_is_refused(state):
    name = type(state).__name__
    with pytest.raises(TypeError, match=name):
        select_rows(Fields(torch.arange(3), state), INDEX_R)


@pytest.mark.parametrize("vocab_size", [1, 3, 63, 64, 65, 200, 1031])
@pytest.mark.parametrize("num_candidates", [1, 2, 7])
@pytest.mark.parametrize("num_values", [1, 2, 5, None])
def test_the_largest_first_and_the_lower_id_among_equals(vocab_size, num_candidates, num_values):
    generator = np.random.default_rng([vocab_size, num_candidates, num_values or 0])
    if num_values is None:
        values = -np.abs(generator.normal(size=(11, vocab_size))).astype(np.float32)
    else:  # mostly ties, -inf and both zeros among them
        pool = np.array([-1.5, 0.0, -0.0, -np.inf, -2.0], dtype=np.float32)[:num_values]
        values = generator.choice(pool, size=(11, vocab_size))
    expected_ids = np.argsort(-values, axis=1, kind="stable")[:, :num_candidates]
    expected = np.take_along_axis(values, expected_ids, axis=1)
    largest, ids = top_tokens(torch.from_numpy(values), num_candidates)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(largest, expected)


def test_equals_in_different_blocks_come_in_the_order_of_ids():
    values = torch.full((1, 130), -9.0)
    # the block with the larger maximum has the higher ids
    values[0, [3, 70, 100]] = torch.tensor([-2.0, -2.0, -1.0])
    assert top_tokens(values, 2)[1].tolist() == [[100, 3]]
    assert top_tokens(values, 3)[1].tolist() == [[100, 3, 70]]


def share_of_zeros(values):
    return (values == 0.0).float().mean().item()


SOURCE = collate_source([[5, 6], [7, 8]] * 20)
NO_DROPOUT = {
    "embedding": 0.0,
    "encoder": 0.0,
    "readout": 0.0,
}


def first_step(model):
    memory, state = model.prepare(SOURCE)
    return model.step(torch.ones(40, dtype=torch.int64), state, memory)


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "conditional"])
@pytest.mark.parametrize("readout_size", [None, 20])
def test_the_features_of_every_decoder_are_dropped(make_model, decoder, readout_size):
    model = make_model(
        decoder={"name": decoder},
        dropout=NO_DROPOUT | {"readout": 0.5},
        readout_size=readout_size,
        tie_embeddings="none",
    )
    assert share_of_zeros(first_step(model).features_BF) == pytest.approx(0.5, abs=0.1)
    assert share_of_zeros(first_step(model.eval()).features_BF) == 0.0


@pytest.mark.parametrize("num_layers", [1, 2])
def test_the_states_of_every_encoder_layer_are_dropped(make_model, num_layers):
    encoder = make_model(
        encoder={"hidden_size": 7, "num_layers": num_layers},
        dropout=NO_DROPOUT | {"encoder": 0.5},
    ).encoder
    dropped = []
    encoder.dropout.register_forward_hook(lambda *arguments: dropped.append(arguments))
    assert share_of_zeros(encoder(SOURCE).values_BSM) == pytest.approx(0.5, abs=0.1)
    assert len(dropped) == num_layers


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_the_fixed_vector_is_dropped_by_its_own_rate(make_model, rate):
    attention = {"name": "fixed", "options": {"dropout": rate}}
    model = make_model(attention=attention, dropout=NO_DROPOUT)
    assert share_of_zeros(first_step(model).context_BM) == pytest.approx(rate, abs=0.1)
    assert share_of_zeros(first_step(model.eval()).context_BM) == 0.0
