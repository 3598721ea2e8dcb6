"""The attention contract, asked of every file in the folder: a new variant is picked up with no
edit here.

All sizes are distinct primes where a variant allows it, so that a swapped axis cannot pass. In
evaluation mode, which search uses, a variant draws no random numbers and all tests hold. In
training mode it may draw some, and follow a gradient that is not its output's: tests of what must
hold there too take the fixture `training`.
"""

import copy

import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.encoder.base import Encoded, zeroed
from seq2seq_attn.model.layers import select_rows
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.variants import build_variant, find_build, read_parameters
from seq2seq_attn.text.vocab import EOS
from tests.contract.chosen import variants
from tests.modules import assert_every_parameter_learns, half_precision, randomize

BATCH = 5
POSITIONS = 7
QUERY_SIZE = 13
MEMORY_SIZE = 26
"""even, for several heads"""
LENGTHS = (7, 3, 1, 5, 2)


def build(name, dtype=torch.float64, seed=0, **options):
    torch.manual_seed(seed)
    query_size = MEMORY_SIZE if name == "dot" else QUERY_SIZE
    sizes = {
        "query_size": query_size,
        "memory_size": MEMORY_SIZE,
        "normalizer": softmax.weights,
    }
    attention = build_variant("attention", name, options, **sizes)
    return randomize(attention).to(dtype), query_size


def case(name, dtype=torch.float64, scale=1.0, *, training=False):
    attention, query_size = build(name, dtype)
    attention.train(training)
    values = torch.randn(BATCH, POSITIONS, MEMORY_SIZE, dtype=dtype) * scale
    query = torch.randn(BATCH, query_size, dtype=dtype) * scale
    mask = torch.arange(POSITIONS) < torch.tensor(LENGTHS).unsqueeze(1)
    return attention, values, query, mask


def prepare(attention, values, mask):
    """The summary is the first value: real in every row. The second position ends the first of
    several sources."""
    lengths = mask.sum(dim=1)
    ids = torch.where(mask, 7, 0)
    ids[:, 1:2].masked_fill_(mask[:, 1:2], EOS)
    source = SourceBatch(ids, lengths, ids)
    return attention.prepare(zeroed(Encoded(values, mask, values[:, 0])), source)


def attend(attention, values, query, mask):
    memory, state = prepare(attention, values, mask)
    torch.manual_seed(5)  # of what it draws in training
    return attention.step(query, memory, state)


@pytest.fixture(params=variants("attention"))
def name(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["search", "training"])
def training(request):
    return request.param


def test_weights_are_a_distribution_over_real_positions(name, training):
    attention, values, query, mask = case(name, training=training)
    context, weights, *_ = attend(attention, values, query, mask)
    assert (weights >= 0).all()
    if attention.is_distribution:
        assert_close(weights.sum(dim=1), torch.ones(BATCH, dtype=weights.dtype))
    assert context.shape == (BATCH, attention.context_size)
    if attention.is_positional:
        assert weights.shape == mask.shape
        assert (weights[~mask] == 0).all(), "weight on padding"


def test_a_row_of_a_padded_batch_is_the_same_sentence_alone(name):
    attention, values, query, mask = case(name)
    together = attend(attention, values, query, mask)
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1)
        alone = attend(attention, values[one, :length], query[one], mask[one, :length])
        assert_close(together.context_BM[one], alone.context_BM)
        width = alone.weights_BS.shape[1]
        assert_close(together.weights_BS[one, :width], alone.weights_BS)


def test_reorder_then_step_is_step_then_reorder(name):
    attention, values, query, mask = case(name)
    order = torch.tensor([3, 0, 0, 4, 1])
    memory, state = prepare(attention, values, mask)
    state = attention.step(query.flip(0), memory, state).state  # not the first step
    expected = select_rows(attention.step(query, memory, state), order)
    moved = attention.step(query[order], select_rows(memory, order), select_rows(state, order))
    assert_close(tuple(moved), tuple(expected))


def test_gradcheck(name):
    attention, values, query, mask = case(name)

    def run(values, query, *parameters):
        attended = attend(attention, values, query, mask)
        return attended.context_BM, attended.weights_BS

    inputs = (values.requires_grad_(), query.requires_grad_(), *attention.parameters())
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


@pytest.mark.parametrize("is_half", [False, True])
@pytest.mark.parametrize("scale", [1e4, 1.0, 1e-4])
def test_weights_are_finite_in_float32_also_of_values_in_bf16(name, scale, is_half, training):
    attention, values, query, mask = case(name, torch.float32, scale, training=training)
    with half_precision(is_half):
        attended = attend(attention, values.bfloat16() if is_half else values, query, mask)
    assert attended.weights_BS.dtype == torch.float32
    assert torch.isfinite(attended.weights_BS).all()
    assert torch.isfinite(attended.context_BM).all()


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in variants("attention")
        if "attention_size" in read_parameters(find_build("attention", name))
    ],
)
def test_the_scoring_size_may_differ_from_the_others(name):
    attention, _ = build(name, attention_size=6)
    _, values, query, mask = case(name)
    assert torch.isfinite(attend(attention, values, query, mask).context_BM).all()


def test_nothing_is_kept_between_calls(name):
    attention, values, query, mask = case(name)
    before = copy.deepcopy(attention.state_dict())
    memory, state = prepare(attention, values, mask)
    first = attention.step(query, memory, state)
    prepare(attention, values.flip(0) * 2, mask.flip(0))  # another batch in between
    prepare(attention, values, mask)  # and this one twice
    second = attention.step(query, memory, state)
    assert torch.equal(first.context_BM, second.context_BM)
    assert torch.equal(first.weights_BS, second.weights_BS)
    assert all(torch.equal(before[key], value) for key, value in attention.state_dict().items())


def test_training_gives_every_parameter_a_gradient(name):
    attention, values, query, mask = case(name, training=True)
    memory, state = prepare(attention, values.requires_grad_(), mask)
    total = torch.zeros(())
    for query_BH in (query, -query, query.flip(1)):  # what a state is made by shows in later steps
        attended = attention.step(query_BH, memory, state)
        state = attended.state
        total = total + attended.context_BM.square().sum()
    total.backward()
    assert_every_parameter_learns(attention)
