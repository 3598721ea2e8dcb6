"""The contract of encoders, asked of every file in the folder: a new variant is picked up with no
edit here."""

from functools import partial

import pytest
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.model.build import initialize
from seq2seq_attn.model.layers import Embedding
from seq2seq_attn.model.variants import build_variant
from tests.contract.chosen import variants

NUM_IDS, SIZE, EMBEDDING_SIZE = 13, 4, 5
SENTENCES = [[5, 6, 7, 8, 9], [10, 4], [], [8, 8, 6]]


def make_source(sentences=SENTENCES):
    return collate_source(sentences).to(torch.get_default_device())


ONE_LAYER = {"embeddings"}


@pytest.fixture(params=variants("encoder"))
def name(request):
    return request.param


def build(name, dtype=torch.float64, dropout=0.0):
    torch.manual_seed(1)
    encoder = build_variant(
        "encoder",
        name,
        {},
        embedding=Embedding(NUM_IDS, EMBEDDING_SIZE),
        build_cell=partial(build_variant, "cell", "gru", {}),
        hidden_size=SIZE,
        num_layers=1 if name in ONE_LAYER else 2,
        dropout=dropout,
    )
    initialize(encoder)
    return encoder.to(dtype)


def test_a_value_per_position_and_a_summary(name):
    encoder = build(name)
    encoded = encoder(make_source())
    assert encoded.values_BSM.shape == (
        len(SENTENCES),
        make_source().ids_BS.shape[1],
        encoder.memory_size,
    )
    assert encoded.final_BM.shape == (len(SENTENCES), encoder.memory_size)
    assert torch.equal(encoded.mask_BS, make_source().mask_BS)
    assert encoded.values_BSM.is_contiguous()


def test_the_embeddings_that_it_reads_go_with_the_values(name):
    encoder = build(name).eval()
    embedded = encoder(make_source()).embedded_BSE
    assert torch.equal(
        embedded[make_source().mask_BS],
        encoder.embedding(make_source().ids_BS)[make_source().mask_BS],
    )


@pytest.mark.parametrize("garbage", [1e4, -3.0])
def test_padding_changes_nothing_bit_for_bit(name, garbage):
    encoder = build(name).eval()
    clean = encoder(make_source())
    encoder.embedding.weight.data[0] = garbage  # the id of padding
    dirty = encoder(make_source())
    assert torch.equal(clean.final_BM, dirty.final_BM)
    assert torch.equal(
        clean.values_BSM[make_source().mask_BS], dirty.values_BSM[make_source().mask_BS]
    )


def test_a_row_of_a_padded_batch_is_the_same_sentence_alone(name):
    encoder = build(name).eval()
    together = encoder(make_source())
    for row, sentence in enumerate(SENTENCES):
        alone = encoder(make_source([sentence]))
        torch.testing.assert_close(together.final_BM[row], alone.final_BM[0])
        torch.testing.assert_close(
            together.values_BSM[row, : alone.values_BSM.shape[1]], alone.values_BSM[0]
        )


def test_positions_are_told_apart(name):
    encoder = build(name).eval()
    values = encoder(make_source([[7, 7, 7, 7]])).values_BSM[0]
    assert not torch.allclose(values[0], values[2])


def test_a_sentence_may_be_long(name):
    encoder = build(name, torch.float32).eval()
    encoded = encoder(make_source([[7] * 700]))
    assert torch.isfinite(encoded.values_BSM).all()


def test_gradcheck(name):
    encoder = build(name)

    def run(weight):
        encoder.embedding.weight.data.copy_(weight.data)
        encoded = torch.func.functional_call(
            encoder, {"embedding.weight": weight}, (make_source(),)
        )
        return encoded.values_BSM[make_source().mask_BS], encoded.final_BM

    assert torch.autograd.gradcheck(
        run, (encoder.embedding.weight.detach().clone().requires_grad_(),), fast_mode=True
    )


def test_every_parameter_gets_a_gradient_also_in_half_precision(name):
    encoder = build(name, torch.float32, dropout=0.3)
    with torch.autocast(torch.get_default_device().type, dtype=torch.bfloat16):
        encoded = encoder(make_source())
    weights = torch.randn(encoder.memory_size)
    (
        encoded.values_BSM[make_source().mask_BS].float() @ weights
        + (encoded.final_BM.float() @ weights).sum()
    ).sum().backward()
    for key, parameter in encoder.named_parameters():
        assert parameter.grad is not None, key
        assert torch.isfinite(parameter.grad).all(), key
        assert parameter.grad.abs().sum() > 0, key


def test_dropout_acts_in_training_only(name):
    encoder = build(name, dropout=0.5)
    first = encoder(make_source())
    second = encoder(make_source())
    assert not torch.equal(first.values_BSM, second.values_BSM)
    encoder.eval()
    assert torch.equal(encoder(make_source()).values_BSM, encoder(make_source()).values_BSM)
