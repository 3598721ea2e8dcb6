"""Each encoder: values computed by hand, and slow oracles of the papers' formulas."""

import math
from functools import partial

import pytest
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.layers import Embedding
from seq2seq_attn.model.variants import build_variant

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
    for parameter in encoder.parameters():
        torch.nn.init.uniform_(parameter, -0.7, 0.7)
    return encoder.double()


def added(encoder, row, length):
    """E x_j + l_j of one sentence."""
    positions = encoder.positions.embedding.weight
    words = encoder.embedding.weight[SOURCE.ids_BS[row, :length]]
    return [word + positions[min(j, len(positions) - 1)] for j, word in enumerate(words)]


def test_embeddings_hold_word_and_position_alone():
    encoder = build(
        "embeddings", num_layers=1, num_positions=3
    )  # fewer than the first sentence has
    encoded = encoder(SOURCE)
    for row, length in enumerate(LENGTHS):
        expected = torch.stack(
            [encoder.projection(vector) for vector in added(encoder, row, length)]
        )
        torch.testing.assert_close(encoded.values_BSM[row, :length], expected)
        torch.testing.assert_close(encoded.final_BM[row], expected.mean(dim=0))


def test_embeddings_have_one_layer():
    with pytest.raises(UsageError, match=r"model\.encoder\.num_layers=2"):
        build("embeddings", num_layers=2)


@pytest.mark.parametrize(("radius", "num_value_layers"), [(1, None), (2, 1)])
def test_convolutions_equal_the_formula_position_by_position(radius, num_value_layers):
    encoder = build("convolutional", num_layers=3, radius=radius, num_value_layers=num_value_layers)
    encoded = encoder(SOURCE)
    assert [len(layers) for layers in encoder.stacks] == [3, num_value_layers or 3]
    for row, length in enumerate(LENGTHS):
        outputs = []
        for layers in encoder.stacks:
            x = [encoder.projection(vector) for vector in added(encoder, row, length)]
            for layer in layers:
                around = [torch.zeros_like(x[0])] * radius
                padded = [*around, *x, *around]
                windows = [torch.cat(padded[j : j + 2 * radius + 1]) for j in range(length)]
                x = [torch.tanh(layer(window) + x[j]) for j, window in enumerate(windows)]
            outputs.append(torch.stack(x))
        torch.testing.assert_close(encoded.values_BSM[row, :length, 0::2], outputs[0])
        torch.testing.assert_close(encoded.values_BSM[row, :length, 1::2], outputs[1])
        torch.testing.assert_close(
            encoded.final_BM[row], encoded.values_BSM[row, :length].mean(dim=0)
        )


def test_dropout_is_not_on_the_residual_connections():
    """Convolutions of 0 leave tanh(tanh(...)) of the input, whatever their own input loses."""
    encoder = build("convolutional", num_layers=3, dropout=0.5)
    for layer in (layer for layers in encoder.stacks for layer in layers):
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    x = encoder.projection(torch.stack(added(encoder, 0, LENGTHS[0]))).tanh().tanh().tanh()
    encoder.train()
    for stack in range(2):
        values = encoder(SOURCE).values_BSM[0, : LENGTHS[0], stack::2]
        is_kept = values != 0
        assert 0.2 < is_kept.double().mean() < 0.8
        torch.testing.assert_close(values[is_kept], 2 * x[is_kept])


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("residual", [False, True])
def test_layers_above_combine_both_directions(cell, residual):
    encoder = build(
        "bidirectional", num_layers=3, cell=cell, residual=residual, layers_above="forward"
    )
    encoded = encoder(SOURCE)
    below = build("bidirectional", num_layers=1, cell=cell)
    below.load_state_dict(
        {key: value for key, value in encoder.state_dict().items() if key in below.state_dict()}
    )
    for row, length in enumerate(LENGTHS):
        inputs = list(below(SOURCE).values_BSM[row, :length])
        for (upper,) in list(encoder.layers)[1:]:
            assert upper.hidden_size == 6
            state = upper.start(torch.zeros(1, 6, dtype=torch.float64))
            outputs = []
            for vector in inputs:
                state = upper.step(upper.project_inputs(vector[None]), state)
                outputs.append(upper.hidden(state)[0] + (vector if residual else 0.0))
            inputs = outputs
        torch.testing.assert_close(encoded.values_BSM[row, :length], torch.stack(inputs))
        torch.testing.assert_close(encoded.final_BM[row], upper.hidden(state)[0])


def by_the_paper(encoder, row, length, num_heads):
    """The vectors of a sentence, head by head and position by position; a residual connection
    around each sublayer, which is normalized first."""
    size = encoder.memory_size
    width = size // num_heads
    root = math.sqrt(size)
    x = []
    for position, word in enumerate(encoder.embedding.weight[SOURCE.ids_BS[row, :length]]):
        angles = [position / 10_000 ** (2 * i / size) for i in range(size // 2)]
        encoding = torch.tensor(
            [*map(math.sin, angles), *map(math.cos, angles)], dtype=torch.float64
        )
        x.append(root * encoder.projection(word) + encoding)
    for layer in encoder.layers:
        attention = layer.self_attn
        normalized = [layer.norm1(vector) for vector in x]
        projected = [
            attention.in_proj_weight @ vector + attention.in_proj_bias for vector in normalized
        ]
        queries, keys, values = (
            [vector[n * size : (n + 1) * size] for vector in projected] for n in range(3)
        )
        for j, query in enumerate(queries):
            heads = []
            for head in (slice(h * width, (h + 1) * width) for h in range(num_heads)):
                scores = torch.stack([query[head] @ key[head] for key in keys]) / math.sqrt(width)
                heads.append(scores.softmax(dim=0) @ torch.stack([value[head] for value in values]))
            x[j] = x[j] + attention.out_proj(torch.cat(heads))
        x = [vector + layer.linear2(layer.linear1(layer.norm2(vector)).relu()) for vector in x]
    return torch.stack([encoder.norm(vector) for vector in x])


def test_self_attention_equals_the_formula_position_by_position():
    encoder = build("self_attention", num_layers=2, num_heads=2, feedforward_ratio=3)
    encoded = encoder(SOURCE)
    for row, length in enumerate(LENGTHS):
        expected = by_the_paper(encoder, row, length, num_heads=2)
        torch.testing.assert_close(encoded.values_BSM[row, :length], expected, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(
            encoded.final_BM[row], expected.mean(dim=0), rtol=1e-6, atol=1e-6
        )


def read_from_the_end(encoder, words):
    for number, cell in enumerate(encoder.layers):
        state = cell.start(torch.zeros(1, 3, dtype=torch.float64))
        states = []
        for word in reversed(words):
            state = cell.step(cell.project_inputs(word[None]), state)
            states.append(cell.hidden(state)[0])
        states = states[::-1]
        is_added = encoder.is_residual and number
        words = (
            [state + word for state, word in zip(states, words, strict=True)]
            if is_added
            else states
        )
    return torch.stack(words)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize(("num_layers", "residual"), [(1, False), (2, False), (2, True)])
def test_states_read_from_the_end_equal_a_loop(num_layers, residual, cell):
    encoder = build("reversed", num_layers=num_layers, cell=cell, residual=residual)
    encoder.embedding.weight.data[0] = torch.nan  # padding is never read
    encoded = encoder(SOURCE)
    for row, length in enumerate(LENGTHS):
        expected = read_from_the_end(encoder, list(encoder.embedding(SOURCE.ids_BS[row, :length])))
        torch.testing.assert_close(encoded.values_BSM[row, :length], expected)
        torch.testing.assert_close(encoded.final_BM[row], expected[0])
