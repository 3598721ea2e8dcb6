"""Several sources: each encoder reads its own, and hierarchical attention weighs them against each
other. A source of vectors: any encoder reads them in place of embedded tokens, alone or beside
texts."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import Batch, SourceBatch, collate, collate_source
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.sources import SeveralSources
from seq2seq_attn.model.variants import build_variant
from seq2seq_attn.text.vocab import EOS
from seq2seq_attn.train.loss import batch_loss

ENCODERS = ["bigru", "embeddings", "convolutional", "self_attention", "reversed_gru"]
SOURCES = [[[5, 6, 7], [8]], [[9], [4, 4, 5, 6]], [[], [7, 8]], [[6, 5], []]]
LINES = [[*first, EOS, *second] for first, second in SOURCES]
TARGETS = [[5, 6], [7], [8, 9, 10], [5]]


def build(vector_sizes: Sequence[int | None] = (None, None), **settings: object) -> Seq2Seq:
    """A model of as many sources; the numbers are the sizes of vectors."""
    torch.manual_seed(1)
    values = {
        "embedding_size": 5,
        "hidden_size": 7,
        "encoder": {"hidden_size": 3, "num_layers": 2},
        **settings,
    }
    config = ModelConfig.model_validate(values)
    return (
        build_model(config, num_source_ids=13, num_target_ids=11, vector_sizes=[*vector_sizes])
        .double()
        .eval()
    )


@pytest.mark.parametrize("name", ENCODERS)
def test_each_encoder_reads_its_source_alone(name):
    layers = 1 if name == "embeddings" else 2
    model = build(encoder={"name": name, "hidden_size": 4, "num_layers": layers})
    assert isinstance(model.encoder, SeveralSources)
    encoded = model.encoder(collate_source(LINES))
    for row, sources in enumerate(SOURCES):
        alone = [
            encoder(collate_source([ids]))
            for encoder, ids in zip(model.encoder.encoders, sources, strict=True)
        ]
        values = torch.cat([of_source.values_BSM[0] for of_source in alone])
        torch.testing.assert_close(encoded.values_BSM[row, : len(values)], values)
        embedded = model.encoder.token_embedding(torch.tensor([*LINES[row], EOS]))
        torch.testing.assert_close(encoded.embedded_BSE[row, : len(values)], embedded)
        joined = torch.cat([of_source.final_BM[0] for of_source in alone])
        torch.testing.assert_close(
            encoded.final_BM[row], torch.tanh(model.encoder.combination(joined))
        )


def test_a_line_that_lacks_sources_has_empty_ones():
    encoder = build([None] * 3).encoder
    encoded = encoder(collate_source([[5, 6], [5, 6, EOS, 7, EOS, 8, 9]]))
    torch.testing.assert_close(
        encoded.values_BSM[0, :3], encoder.encoders[0](collate_source([[5, 6]])).values_BSM[0]
    )
    assert torch.isfinite(encoded.final_BM).all()


@pytest.mark.parametrize(
    ("attention", "output"),
    [
        *(
            (name, "softmax")
            for name in ("additive", "hierarchical", "multi_head", "coverage", "fixed")
        ),
        *(("additive", name) for name in ("copynet", "lexical", "lexicon", "marginal")),
    ],
)
def test_every_parameter_learns_and_padding_changes_nothing(attention, output):
    model = build(attention={"name": attention}, output={"name": output})
    check_pairs_add_up(
        model, lambda rows: collate([LINES[i] for i in rows], [TARGETS[i] for i in rows], rows)
    )


def check_pairs_add_up(model: Seq2Seq, make_batch: Callable[[list[int]], Batch]) -> None:
    """The loss of a batch is that of its pairs alone, and every parameter has a gradient."""
    together = batch_loss(model, make_batch([0, 1, 2, 3])).loss_sum
    together.backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
    torch.testing.assert_close(
        together, sum(batch_loss(model, make_batch([row])).loss_sum for row in range(4))
    )


def hierarchical(
    **settings: object,
) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor, SourceBatch]:
    torch.manual_seed(3)
    sizes = {"query_size": 7, "memory_size": 5, "normalizer": softmax.weights}
    attention = build_variant("attention", "hierarchical", settings, **sizes).double()
    for parameter in attention.parameters():
        torch.nn.init.uniform_(parameter, -0.9, 0.9)
    source = collate_source(LINES)
    values = torch.randn(*source.ids_BS.shape, 5, dtype=torch.float64)
    return attention, values, torch.randn(len(LINES), 7, dtype=torch.float64), source


def test_hierarchical_attention_equals_the_formula_part_by_part():
    attention, values, query, source = hierarchical(attention_size=3)
    memory, state = attention.prepare(Encoded(values, source.mask_BS, values[:, 0]), source)
    attended = attention.step(query, memory, state)
    for row, sources in enumerate(SOURCES):
        contexts = []
        weights = []
        start = 0
        for ids in sources:
            part = values[row, start : start + len(ids) + 1]
            start += len(ids) + 1
            hidden = torch.tanh(
                attention.query_projection(query[row]) + attention.key_projection(part)
            )
            weights.append(torch.softmax(hidden @ attention.score_weight_A, dim=0))
            contexts.append(weights[-1] @ part)
        joined = torch.stack(contexts)
        hidden = torch.tanh(
            attention.part_query_projection(query[row]) + attention.part_key_projection(joined)
        )
        of_parts = torch.softmax(hidden @ attention.part_score_weight_A, dim=0)
        torch.testing.assert_close(attended.context_BM[row], of_parts @ joined)
        expected = torch.cat(
            [share * alpha for share, alpha in zip(of_parts, weights, strict=True)]
        )
        torch.testing.assert_close(attended.weights_BS[row, : len(expected)], expected)


SIZE = 6
TEXTS_AND_VECTORS = [([5, 6, 7], [8, 8]), ([9], [8]), ([], [8, 8, 8]), ([6, 5], [])]
"""the ids of a text, and as many of vectors"""


def vectors(*numbers: int) -> list[np.ndarray]:
    generator = np.random.default_rng(3)
    return [generator.normal(size=(number, SIZE)).astype(np.float32) for number in numbers]


def beside(rows: list[int]) -> Batch:
    """The pairs at these indices: a text, then vectors."""
    lines = [[*TEXTS_AND_VECTORS[row][0], EOS, *TEXTS_AND_VECTORS[row][1]] for row in rows]
    found = vectors(*(len(of_vectors) for _, of_vectors in TEXTS_AND_VECTORS))
    padded = [np.pad(found[row], ((len(TEXTS_AND_VECTORS[row][0]) + 1, 0), (0, 0))) for row in rows]
    return collate(lines, [TARGETS[row] for row in rows], rows, vectors=padded)


def test_a_text_beside_vectors_learns_too():
    check_pairs_add_up(build([None, SIZE]).float(), beside)


def test_an_embedded_vector_is_a_linear_function_of_it():
    model = build([SIZE]).float()
    [given] = vectors(2)
    encoded = model.encoder(collate_source([[8, 8]], vectors=[given]))
    weight, bias = (
        model.get_parameter(f"encoder.embedding.projection.{name}") for name in ("weight", "bias")
    )
    torch.nn.init.uniform_(bias)
    encoded = model.encoder(collate_source([[8, 8]], vectors=[given]))
    torch.testing.assert_close(
        encoded.embedded_BSE[0, :2], torch.from_numpy(given) @ weight.t() + bias
    )
    torch.testing.assert_close(encoded.embedded_BSE[0, 2], bias)  # EOS


@pytest.mark.parametrize("name", ENCODERS)
def test_vectors_decide_and_padding_does_not(name):
    model = build([SIZE], encoder={"name": name, "hidden_size": 4}).float()
    given = vectors(3, 1)
    ids = [[8] * len(one) for one in given]
    together = model.encoder(collate_source(ids, vectors=given))
    for row, one in enumerate(given):
        alone = model.encoder(collate_source([ids[row]], vectors=[one]))
        torch.testing.assert_close(together.values_BSM[row, : len(one) + 1], alone.values_BSM[0])
        torch.testing.assert_close(together.final_BM[row], alone.final_BM[0])
    other = model.encoder(
        collate_source([[9, 4, 5], [6]], vectors=given)
    )  # other ids, same vectors
    torch.testing.assert_close(other.values_BSM, together.values_BSM)


def test_texts_share_their_embedding_and_vectors_have_their_own():
    names = [
        name for name, _ in build([SIZE, None, None]).named_parameters() if "embedding" in name
    ]
    assert names == [
        "encoder.encoders.0.embedding.projection.weight",
        "encoder.encoders.0.embedding.projection.bias",
        "encoder.encoders.1.embedding.weight",
        "embedding.weight",
    ]
