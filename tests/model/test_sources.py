"""Several sources: each encoder reads its own, and hierarchical attention weighs them against each
other. A source of vectors: any encoder reads them in place of embedded tokens, alone or beside
texts."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import collate, collate_source
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.variants import build_variant
from seq2seq_attn.text.vocab import EOS
from seq2seq_attn.train.loss import batch_loss
from tests.model.attention.conftest import additive_scores
from tests.modules import assert_every_parameter_learns, randomize

ENCODERS = ["bigru", "embeddings", "convolutional", "self_attention", "reversed_gru"]
SOURCES = [
    [[5, 6, 7], [8]],
    [[9], [4, 4, 5, 6]],
    [[], [7, 8]],
    [[6, 5], []],
]
LINES = [[*first, EOS, *second] for first, second in SOURCES]
TARGETS = [
    [5, 6],
    [7],
    [8, 9, 10],
    [5],
]


def build(vector_sizes=(None, None), **settings):
    """A model of as many sources; the numbers are the sizes of vectors."""
    torch.manual_seed(1)
    sizes = {
        "embedding_size": 5,
        "hidden_size": 7,
        "encoder": {"hidden_size": 3, "num_layers": 2},
    }
    config = ModelConfig(**sizes | settings)
    model = build_model(
        config,
        num_source_ids=13,
        num_target_ids=11,
        vector_sizes=[*vector_sizes],
    )
    return model.double().eval()


@pytest.mark.parametrize("name", ENCODERS)
def test_each_encoder_reads_its_source_alone(name):
    layers = 1 if name == "embeddings" else 2
    model = build(
        encoder={
            "name": name,
            "hidden_size": 4,
            "num_layers": layers,
        }
    )
    encoded = model.encoder(collate_source(LINES))
    for row, sources in enumerate(SOURCES):
        alone = []
        for encoder, ids in zip(model.encoder.encoders, sources, strict=True):
            alone.append(encoder(collate_source([ids])))
        values = torch.cat([source.values_BSM[0] for source in alone])
        assert_close(encoded.values_BSM[row, : len(values)], values)
        embedded = model.encoder.token_embedding(torch.tensor([*LINES[row], EOS]))
        assert_close(encoded.embedded_BSE[row, : len(values)], embedded)
        joined = torch.cat([source.final_BM[0] for source in alone])
        final = torch.tanh(model.encoder.combination(joined))
        assert_close(encoded.final_BM[row], final)


def test_a_line_that_lacks_sources_has_empty_ones():
    encoder = build([None] * 3).encoder
    encoded = encoder(collate_source([[5, 6], [5, 6, EOS, 7, EOS, 8, 9]]))
    first = encoder.encoders[0](collate_source([[5, 6]]))
    assert_close(encoded.values_BSM[0, :3], first.values_BSM[0])
    assert torch.isfinite(encoded.final_BM).all()


@pytest.mark.parametrize(
    ("attention", "output"),
    [
        ("additive", "softmax"),
        ("hierarchical", "softmax"),
        ("multi_head", "softmax"),
        ("coverage", "softmax"),
        ("fixed", "softmax"),
        ("additive", "copynet"),
        ("additive", "lexical"),
        ("additive", "lexicon"),
        ("additive", "marginal"),
    ],
)
def test_every_parameter_learns_and_padding_changes_nothing(attention, output):
    model = build(attention={"name": attention}, output={"name": output})

    def make_batch(rows):
        return collate([LINES[i] for i in rows], [TARGETS[i] for i in rows], rows)

    check_pairs_add_up(model, make_batch)


def check_pairs_add_up(model, make_batch):
    """The loss of a batch is that of its pairs alone, and every parameter has a gradient."""
    together = batch_loss(model, make_batch([0, 1, 2, 3])).loss_sum
    together.backward()
    assert_every_parameter_learns(model)
    alone = [batch_loss(model, make_batch([row])).loss_sum for row in range(4)]
    assert_close(together, sum(alone))


def test_hierarchical_attention_equals_the_formula_part_by_part():
    torch.manual_seed(3)
    sizes = {
        "query_size": 7,
        "memory_size": 5,
        "normalizer": softmax.weights,
    }
    attention = build_variant("attention", "hierarchical", {"attention_size": 3}, **sizes)
    randomize(attention, 0.9).double()
    source = collate_source(LINES)
    values = torch.randn(*source.ids_BS.shape, 5, dtype=torch.float64)
    query = torch.randn(len(LINES), 7, dtype=torch.float64)
    memory, state = attention.prepare(Encoded(values, source.mask_BS, values[:, 0]), source)
    attended = attention.step(query, memory, state)
    for row, sources in enumerate(SOURCES):
        lengths = [len(ids) + 1 for ids in sources]
        weights = []
        contexts = []
        for part in values[row, : sum(lengths)].split(lengths):
            weights.append(additive_scores(attention, query[row], part).softmax(dim=0))
            contexts.append(weights[-1] @ part)
        contexts = torch.stack(contexts)
        hidden = attention.part_query_projection(query[row])
        hidden = torch.tanh(hidden + attention.part_key_projection(contexts))
        shares = (hidden @ attention.part_score_weight_A).softmax(dim=0)
        assert_close(attended.context_BM[row], shares @ contexts)
        expected = torch.cat([shares[0] * weights[0], shares[1] * weights[1]])
        assert_close(attended.weights_BS[row, : len(expected)], expected)


# ---- vectors ----

SIZE = 6
TEXTS = [[5, 6, 7], [9], [], [6, 5]]
NUM_VECTORS = [2, 1, 3, 0]


def make_vectors(*numbers):
    generator = np.random.default_rng(3)
    return [generator.normal(size=(number, SIZE)).astype(np.float32) for number in numbers]


def test_a_text_beside_vectors_learns_too():
    vectors = make_vectors(*NUM_VECTORS)

    def make_batch(rows):
        lines = [[*TEXTS[row], EOS, *[8] * NUM_VECTORS[row]] for row in rows]
        padded = [np.pad(vectors[row], ((len(TEXTS[row]) + 1, 0), (0, 0))) for row in rows]
        return collate(lines, [TARGETS[row] for row in rows], rows, vectors=padded)

    check_pairs_add_up(build([None, SIZE]).float(), make_batch)


def test_an_embedded_vector_is_a_linear_function_of_it():
    model = build([SIZE]).float()
    projection = model.encoder.embedding.projection
    torch.nn.init.uniform_(projection.bias)
    vectors = make_vectors(2)
    embedded = model.encoder(collate_source([[8, 8]], vectors=vectors)).embedded_BSE[0]
    expected = torch.from_numpy(vectors[0]) @ projection.weight.t() + projection.bias
    assert_close(embedded[:2], expected)
    assert_close(embedded[2], projection.bias)  # EOS


@pytest.mark.parametrize("name", ENCODERS)
def test_padding_does_not_change_vectors(name):
    encoder = build([SIZE], encoder={"name": name, "hidden_size": 4}).float().encoder
    vectors = make_vectors(3, 1)
    together = encoder(collate_source([[8, 8, 8], [8]], vectors=vectors))
    short = encoder(collate_source([[8]], vectors=vectors[1:]))
    assert_close(together.values_BSM[1, :2], short.values_BSM[0])
    assert_close(together.final_BM[1], short.final_BM[0])


def test_ids_beside_vectors_are_not_read():
    encoder = build([SIZE]).float().encoder
    vectors = make_vectors(3, 1)
    encoded = encoder(collate_source([[8, 8, 8], [8]], vectors=vectors))
    other_ids = encoder(collate_source([[9, 4, 5], [6]], vectors=vectors))
    assert_close(encoded.values_BSM, other_ids.values_BSM)


def test_texts_share_their_embedding_and_vectors_have_their_own():
    names = [name for name, _ in build([SIZE, None, None]).named_parameters()]
    assert [name for name in names if "embedding" in name] == [
        "encoder.encoders.0.embedding.projection.weight",
        "encoder.encoders.0.embedding.projection.bias",
        "encoder.encoders.1.embedding.weight",
        "embedding.weight",
    ]
