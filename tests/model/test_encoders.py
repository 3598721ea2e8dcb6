"""Each encoder: values computed by hand, and slow oracles of the papers' formulas."""

import math
from functools import partial

import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.encoder.self_attention import sinusoids
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
    encoder = build("embeddings", num_layers=1, num_positions=3)  # fewer than the first sentence has
    encoded = encoder(SOURCE)
    for row, length in enumerate(LENGTHS):
        expected = torch.stack([encoder.projection(vector) for vector in added(encoder, row, length)])
        torch.testing.assert_close(encoded.values_BSM[row, :length], expected)
        torch.testing.assert_close(encoded.final_BM[row], expected.mean(dim=0))


def test_embeddings_by_hand():
    """W = [[1, 2], [0, 1]], E x + l = (3, 1) + (0.5, -1) = (3.5, 0), b = (0.25, 0)."""
    encoder = build("embeddings", num_layers=1, hidden_size=1)
    with torch.no_grad():
        encoder.embedding.weight[5] = torch.tensor([3.0, 1.0])
        encoder.positions.embedding.weight[0] = torch.tensor([0.5, -1.0])
        encoder.projection.weight.copy_(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
        encoder.projection.bias.copy_(torch.tensor([0.25, 0.0]))
    assert encoder(collate_source([[5]])).values_BSM[0, 0].tolist() == [3.75, 0.0]


def test_embeddings_have_one_layer():
    with pytest.raises(UsageError, match=r"model\.encoder\.num_layers=2: the encoder 'embeddings' has one layer"):
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
        torch.testing.assert_close(encoded.final_BM[row], encoded.values_BSM[row, :length].mean(dim=0))


def test_a_convolution_by_hand():
    """One number per position, 1 and 2 (the second is the end of the sentence); CNN-a sums three neighbors, CNN-c is 0
    but for the residual connection."""
    encoder = build("convolutional", num_layers=1, hidden_size=1, embedding_size=1)
    with torch.no_grad():
        encoder.embedding.weight[[5, 2]] = torch.tensor([[0.5], [0.0]], dtype=torch.float64)
        encoder.positions.embedding.weight[:2] = torch.tensor([[0.5], [2.0]])
        for layer, weight in ((encoder.projection, 1.0), (encoder.stacks[0][0], 1.0), (encoder.stacks[1][0], 0.0)):
            layer.weight.fill_(weight)
            layer.bias.zero_()
    values = encoder(collate_source([[5]])).values_BSM[0].tolist()
    expected = [[math.tanh(1 + 2 + 1), math.tanh(1)], [math.tanh(1 + 2 + 2), math.tanh(2)]]
    assert values == [pytest.approx(row) for row in expected]


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


def test_key_value_attention_scores_one_stack_and_averages_the_other():
    torch.manual_seed(1)
    config = ModelConfig(
        encoder={"name": "convolutional", "hidden_size": 5, "num_layers": 2}, attention={"name": "key_value"}
    )
    model = build_model(config, num_source_ids=11, num_target_ids=11).double().eval()
    query = torch.randn(len(SENTENCES), 512, dtype=torch.float64)

    def attend():
        encoded = model.encoder(SOURCE)
        attention = model.decoder.attention
        return encoded, attention.step(query, *attention.prepare(encoded, SOURCE))

    encoded, attended = attend()
    expected = torch.einsum("bs,bsm->bm", attended.weights_BS, encoded.values_BSM[..., 1::2])
    torch.testing.assert_close(attended.context_BM, expected)
    with torch.no_grad():
        model.encoder.stacks[1][0].weight.mul_(2.0)
    torch.testing.assert_close(attend()[1].weights_BS, attended.weights_BS)
    with torch.no_grad():
        model.encoder.stacks[0][0].weight.mul_(2.0)
    assert not torch.allclose(attend()[1].weights_BS, attended.weights_BS)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("residual", [False, True])
def test_layers_above_combine_both_directions(cell, residual):
    encoder = build("bidirectional", num_layers=3, cell=cell, residual=residual, layers_above="forward")
    encoded, below = encoder(SOURCE), build("bidirectional", num_layers=1, cell=cell)
    below.load_state_dict({key: value for key, value in encoder.state_dict().items() if key in below.state_dict()})
    for row, length in enumerate(LENGTHS):
        inputs = list(below(SOURCE).values_BSM[row, :length])
        for (upper,) in list(encoder.layers)[1:]:
            assert upper.hidden_size == 6
            state, outputs = upper.start(torch.zeros(1, 6, dtype=torch.float64)), []
            for vector in inputs:
                state = upper.step(upper.project_inputs(vector[None]), state)
                outputs.append(upper.hidden(state)[0] + (vector if residual else 0.0))
            inputs = outputs
        torch.testing.assert_close(encoded.values_BSM[row, :length], torch.stack(inputs))
        torch.testing.assert_close(encoded.final_BM[row], upper.hidden(state)[0])


def test_self_attention_reads_words_as_large_as_positions():
    torch.manual_seed(1)
    config = ModelConfig.model_validate(
        {"encoder": {"name": "self_attention", "hidden_size": 96}, "embedding_size": 96}
    )
    model = build_model(config, num_source_ids=50, num_target_ids=50).eval()
    encoder, source = model.encoder, collate_source([list(range(5, 45))])
    encoder.layers, encoder.norm = torch.nn.ModuleList(), torch.nn.Identity()
    positions_SM = sinusoids(source.mask_BS.shape[1], 192, torch.zeros(1))
    words_SM = encoder(source).values_BSM[0] - positions_SM
    assert 0.3 < words_SM.std() / positions_SM.std() < 3
    torch.testing.assert_close(positions_SM[3, [0, 96]], torch.tensor([math.sin(3), math.cos(3)]))


def by_the_paper(encoder, row, length, num_heads):
    """The vectors of a sentence, head by head and position by position; a residual connection around each sublayer,
    which is normalized first."""
    size = encoder.memory_size
    width, root = size // num_heads, math.sqrt(size)
    x = []
    for position, word in enumerate(encoder.embedding.weight[SOURCE.ids_BS[row, :length]]):
        angles = [position / 10_000 ** (2 * i / size) for i in range(size // 2)]
        encoding = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)], dtype=torch.float64)
        x.append(root * encoder.projection(word) + encoding)
    for layer in encoder.layers:
        attention, normalized = layer.self_attn, [layer.norm1(vector) for vector in x]
        projected = [attention.in_proj_weight @ vector + attention.in_proj_bias for vector in normalized]
        queries, keys, values = ([vector[n * size : (n + 1) * size] for vector in projected] for n in range(3))
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
        torch.testing.assert_close(encoded.final_BM[row], expected.mean(dim=0), rtol=1e-6, atol=1e-6)
