"""Each encoder: values computed by hand, and slow oracles of the papers' formulas."""

import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.layers import Embedding
from seq2seq_attn.model.variants import build_variant
from tests.modules import randomize

SENTENCES = [[5, 6, 7, 8], [9, 4], []]
SOURCE = collate_source(SENTENCES)
LENGTHS = (5, 3, 1)


def build(name, *, num_layers, hidden_size=3, embedding_size=2, cell="gru", dropout=0.0, **options):
    torch.manual_seed(1)
    encoder = build_variant(
        "encoder",
        name,
        options,
        embedding=Embedding(11, embedding_size),
        build_cell=partial(build_variant, "cell", cell, {}),
        hidden_size=hidden_size,
        num_layers=num_layers,
        dropout=dropout,
    )
    return randomize(encoder, 0.7).double()


def added(encoder, row, length):
    """E x_j + l_j of one sentence, [S, E]."""
    positions = encoder.positions.embedding.weight
    numbers = torch.arange(length).clamp(max=len(positions) - 1)
    return encoder.embedding.weight[SOURCE.ids_BS[row, :length]] + positions[numbers]


def check(encoded, row, values, final=None):
    """The last vector is the mean of the values unless it is given."""
    assert_close(encoded.values_BSM[row, : len(values)], values)
    assert_close(encoded.final_BM[row], values.mean(dim=0) if final is None else final)


def test_embeddings_hold_word_and_position_alone():
    encoder = build("embeddings", num_layers=1, num_positions=3)
    encoded = encoder(SOURCE)
    for row, length in enumerate(LENGTHS):  # the first sentence has more than three positions
        check(encoded, row, encoder.projection(added(encoder, row, length)))


def test_embeddings_have_one_layer():
    with pytest.raises(UsageError, match=r"model\.encoder\.num_layers=2"):
        build("embeddings", num_layers=2)


@pytest.mark.parametrize(
    ("radius", "num_value_layers"),
    [
        (1, None),
        (2, 1),
    ],
)
def test_convolutions_equal_the_formula_position_by_position(radius, num_value_layers):
    encoder = build(
        "convolutional",
        num_layers=3,
        radius=radius,
        num_value_layers=num_value_layers,
    )
    encoded = encoder(SOURCE)
    assert [len(layers) for layers in encoder.stacks] == [3, num_value_layers or 3]
    for row, length in enumerate(LENGTHS):
        outputs = []
        for layers in encoder.stacks:
            x = encoder.projection(added(encoder, row, length))
            for layer in layers:
                padded = torch.nn.functional.pad(x, (0, 0, radius, radius))
                windows = [padded[j : j + 2 * radius + 1].flatten() for j in range(length)]
                x = torch.tanh(layer(torch.stack(windows)) + x)
            outputs.append(x)
        check(encoded, row, torch.stack(outputs, dim=2).flatten(1))


def test_dropout_is_not_on_the_residual_connections():
    """Convolutions of 0 leave tanh(tanh(...)) of the input, whatever their own input loses."""
    encoder = build("convolutional", num_layers=3, dropout=0.5)
    for parameter in encoder.stacks.parameters():
        torch.nn.init.zeros_(parameter)
    x = encoder.projection(added(encoder, 0, LENGTHS[0])).tanh().tanh().tanh()
    for stack in range(2):
        values = encoder(SOURCE).values_BSM[0, : LENGTHS[0], stack::2]
        is_kept = values != 0
        assert 0.2 < is_kept.double().mean() < 0.8
        assert_close(values[is_kept], 2 * x[is_kept])


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("residual", [False, True])
def test_layers_above_combine_both_directions(cell, residual):
    settings = {"cell": cell, "residual": residual}
    encoder = build(
        "bidirectional",
        num_layers=3,
        layers_above="forward",
        **settings,
    )
    encoded = encoder(SOURCE)
    below = build("bidirectional", num_layers=1, cell=cell)
    below.load_state_dict(encoder.state_dict(), strict=False)
    for row, length in enumerate(LENGTHS):
        values = below(SOURCE).values_BSM[row, :length]
        for (upper,) in encoder.layers[1:]:
            states = read(upper, values)
            values = states + values if residual else states
        check(encoded, row, values, final=states[-1])


def read(cell, inputs):
    """The hidden states of a loop over the inputs, [S, H]."""
    state = cell.start(torch.zeros(1, cell.hidden_size, dtype=torch.float64))
    states = []
    for vector in inputs:
        state = cell.step(cell.project_inputs(vector.unsqueeze(0)), state)
        states.append(cell.hidden(state)[0])
    return torch.stack(states)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize(
    ("num_layers", "residual"),
    [
        (1, False),
        (2, False),
        (2, True),
    ],
)
def test_states_read_from_the_end_equal_a_loop(num_layers, residual, cell):
    encoder = build(
        "reversed",
        num_layers=num_layers,
        cell=cell,
        residual=residual,
    )
    encoder.embedding.weight.data[0] = torch.nan  # padding is never read
    encoded = encoder(SOURCE)
    for row, length in enumerate(LENGTHS):
        values = encoder.embedding(SOURCE.ids_BS[row, :length])
        for number, layer in enumerate(encoder.layers):
            states = read(layer, values.flip(0)).flip(0)
            values = states + values if residual and number > 0 else states
        check(encoded, row, values, final=values[0])


def test_self_attention_equals_the_formula_head_by_head():
    encoder = build(
        "self_attention",
        num_layers=2,
        num_heads=2,
        feedforward_ratio=3,
    )
    encoded = encoder(SOURCE)
    for row, length in enumerate(LENGTHS):
        words = encoder.embedding.weight[SOURCE.ids_BS[row, :length]]
        expected = transform(encoder, words, num_heads=2)
        values = encoded.values_BSM[row, :length]
        assert_close(values, expected, rtol=1e-6, atol=1e-6)
        assert_close(encoded.final_BM[row], values.mean(dim=0))


def transform(encoder, words, num_heads):
    """The vectors of a sentence, head by head; a residual connection
    around each sublayer, which is normalized first."""
    size = encoder.memory_size
    width = size // num_heads
    x = []
    for position, word in enumerate(words):
        frequencies = [10_000 ** (-2 * i / size) for i in range(size // 2)]
        angles = position * torch.tensor(frequencies, dtype=torch.float64)
        encoding = torch.cat([angles.sin(), angles.cos()])
        x.append(math.sqrt(size) * encoder.projection(word) + encoding)
    x = torch.stack(x)
    for layer in encoder.layers:
        attention = layer.self_attn
        projected = layer.norm1(x) @ attention.in_proj_weight.t() + attention.in_proj_bias
        queries, keys, values = projected.split(size, dim=1)
        heads = []
        for first in range(0, size, width):
            head = slice(first, first + width)
            scores = queries[:, head] @ keys[:, head].t() / math.sqrt(width)
            heads.append(scores.softmax(dim=1) @ values[:, head])
        x = x + attention.out_proj(torch.cat(heads, dim=1))
        x = x + layer.linear2(layer.linear1(layer.norm2(x)).relu())
    return encoder.norm(x)
