"""The contract of encoders, asked of every file in the folder: a new variant is picked up with no
edit here."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.model.build import initialize
from seq2seq_attn.model.layers import Embedding
from seq2seq_attn.model.variants import build_variant
from tests.contract.chosen import variants
from tests.modules import assert_every_parameter_learns, half_precision

NUM_IDS = 13
SIZE = 4
EMBEDDING_SIZE = 5
SENTENCES = [[5, 6, 7, 8, 9], [10, 4], [], [8, 8, 6]]


def make_source(sentences=SENTENCES):
    return collate_source(sentences).to(torch.get_default_device())


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
        num_layers=1 if name == "embeddings" else 2,
        dropout=dropout,
    )
    initialize(encoder)
    return encoder.to(dtype)


@pytest.fixture
def source():
    return make_source()


def test_a_value_per_position_and_a_summary(name, source):
    encoder = build(name)
    encoded = encoder(source)
    assert encoded.values_BSM.shape == (*encoded.mask_BS.shape, encoder.memory_size)
    assert encoded.final_BM.shape == (len(SENTENCES), encoder.memory_size)
    assert encoded.values_BSM.is_contiguous()
    assert (encoded.spread_BPS is None) == encoder.keeps_positions
    if encoded.spread_BPS is None:
        assert torch.equal(encoded.mask_BS, source.mask_BS)
    else:  # the weight of a position is divided among real tokens
        shares_BP = encoded.spread_BPS.sum(dim=2)
        assert_close(shares_BP, encoded.mask_BS.to(shares_BP.dtype))
        assert torch.equal((encoded.spread_BPS > 0).any(dim=1), source.mask_BS)


def test_the_embeddings_that_it_reads_go_with_the_values(name, source):
    encoder = build(name).eval()
    embedded_BSE = encoder(source).embedded_BSE
    expected_BSE = encoder.embedding(source.ids_BS)
    assert torch.equal(embedded_BSE[source.mask_BS], expected_BSE[source.mask_BS])


@pytest.mark.parametrize("garbage", [1e4, -3.0])
def test_padding_changes_nothing_bit_for_bit(name, source, garbage):
    encoder = build(name).eval()
    clean = encoder(source)
    encoder.embedding.weight.data[0] = garbage  # the id of padding
    dirty = encoder(source)
    assert torch.equal(clean.final_BM, dirty.final_BM)
    assert torch.equal(clean.values_BSM[clean.mask_BS], dirty.values_BSM[clean.mask_BS])


def test_a_row_of_a_padded_batch_is_the_same_sentence_alone(name):
    encoder = build(name).eval()
    together = encoder(make_source())
    for row, sentence in enumerate(SENTENCES):
        alone = encoder(make_source([sentence]))
        assert_close(together.final_BM[row], alone.final_BM[0])
        values = together.values_BSM[row, : alone.values_BSM.shape[1]]
        assert_close(values, alone.values_BSM[0])


def test_positions_are_told_apart(name):
    encoder = build(name).eval()
    values = encoder(make_source([[7] * 16])).values_BSM[0]
    assert not torch.allclose(values[0], values[2])


def test_a_sentence_may_be_long(name):
    encoder = build(name, torch.float32).eval()
    encoded = encoder(make_source([[7] * 700]))
    assert torch.isfinite(encoded.values_BSM).all()


def test_gradcheck(name, source):
    encoder = build(name)

    def run(weight):
        encoder.embedding.weight.data.copy_(weight.data)
        weights = {"embedding.weight": weight}
        encoded = torch.func.functional_call(encoder, weights, (source,))
        return encoded.values_BSM[encoded.mask_BS], encoded.final_BM

    weight = encoder.embedding.weight.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(run, weight, fast_mode=True)


def test_every_parameter_gets_a_gradient_also_in_half_precision(name, source):
    encoder = build(name, torch.float32, dropout=0.3)
    with half_precision():
        encoded = encoder(source)
    vectors = torch.cat([encoded.values_BSM[encoded.mask_BS], encoded.final_BM])
    (vectors.float() @ torch.randn(encoder.memory_size)).sum().backward()
    assert_every_parameter_learns(encoder)


def test_dropout_acts_in_training_only(name, source):
    encoder = build(name, dropout=0.5)
    assert not torch.equal(encoder(source).values_BSM, encoder(source).values_BSM)
    encoder.eval()
    assert torch.equal(encoder(source).values_BSM, encoder(source).values_BSM)
