"""A source of vectors: any encoder reads them in place of embedded tokens, alone or beside texts."""

import numpy as np
import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import Batch, collate, collate_source
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.text.vocab import EOS
from seq2seq_attn.train.loss import batch_loss

SIZE = 5
ENCODERS = ["bigru", "embeddings", "convolutional", "self_attention", "reversed_gru"]
SOURCES = [([5, 6, 7], [8, 8]), ([9], [8]), ([], [8, 8, 8]), ([6, 5], [])]
"""the ids of a text, and as many of vectors"""
TARGETS = [[5, 6], [7], [8, 9, 10], [5]]


def build(vector_sizes: list[int | None], name: str = "bigru") -> Seq2Seq:
    torch.manual_seed(1)
    values = {"embedding_size": 7, "hidden_size": 11, "encoder": {"name": name, "hidden_size": 4}}
    config = ModelConfig.model_validate(values)
    return build_model(config, num_source_ids=13, num_target_ids=17, vector_sizes=vector_sizes).eval()


def vectors(*numbers: int) -> list[np.ndarray]:
    generator = np.random.default_rng(3)
    return [generator.normal(size=(number, SIZE)).astype(np.float32) for number in numbers]


def beside(rows: list[int]) -> Batch:
    """The pairs at these indices: a text, then vectors."""
    lines = [[*SOURCES[row][0], EOS, *SOURCES[row][1]] for row in rows]
    found = vectors(*(len(of_vectors) for _, of_vectors in SOURCES))
    padded = [np.pad(found[row], ((len(SOURCES[row][0]) + 1, 0), (0, 0))) for row in rows]
    return collate(lines, [TARGETS[row] for row in rows], rows, vectors=padded)


def test_an_embedded_vector_is_a_linear_function_of_it() -> None:
    model, [given] = build([SIZE]), vectors(2)
    encoded = model.encoder(collate_source([[8, 8]], vectors=[given]))
    weight, bias = (model.get_parameter(f"encoder.embedding.projection.{name}") for name in ("weight", "bias"))
    torch.nn.init.uniform_(bias)
    encoded = model.encoder(collate_source([[8, 8]], vectors=[given]))
    torch.testing.assert_close(encoded.embedded_BSE[0, :2], torch.from_numpy(given) @ weight.t() + bias)
    torch.testing.assert_close(encoded.embedded_BSE[0, 2], bias)  # EOS


@pytest.mark.parametrize("name", ENCODERS)
def test_vectors_decide_and_padding_does_not(name: str) -> None:
    model, given = build([SIZE], name), vectors(3, 1)
    ids = [[8] * len(one) for one in given]
    together = model.encoder(collate_source(ids, vectors=given))
    for row, one in enumerate(given):
        alone = model.encoder(collate_source([ids[row]], vectors=[one]))
        torch.testing.assert_close(together.values_BSM[row, : len(one) + 1], alone.values_BSM[0])
        torch.testing.assert_close(together.final_BM[row], alone.final_BM[0])
    other = model.encoder(collate_source([[9, 4, 5], [6]], vectors=given))  # other ids, same vectors
    torch.testing.assert_close(other.values_BSM, together.values_BSM)


def test_every_parameter_learns_and_pairs_do_not_mix() -> None:
    model = build([None, SIZE])
    together = batch_loss(model, beside([0, 1, 2, 3]))
    together.loss_sum.backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
    alone = [batch_loss(model, beside([row])).loss_sum for row in range(4)]
    torch.testing.assert_close(together.loss_sum, sum(alone))


def test_texts_share_their_embedding_and_vectors_have_their_own() -> None:
    names = [name for name, _ in build([SIZE, None, None]).named_parameters() if "embedding" in name]
    assert names == [
        "encoder.encoders.0.embedding.projection.weight",
        "encoder.encoders.0.embedding.projection.bias",
        "encoder.encoders.1.embedding.weight",
        "embedding.weight",
    ]
