"""The attention contract, asked of every file in the folder: a new variant is picked up with no edit here.

All sizes are distinct primes where a variant allows it, so that a swapped axis cannot pass.
"""

import copy

import pytest
import torch

from seq2seq_attn.model.attention import build_attention, variant_names

BATCH, POSITIONS, QUERY_SIZE, MEMORY_SIZE = 5, 7, 13, 26
LENGTHS = (7, 3, 1, 5, 2)


def build(name, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    memory_size = QUERY_SIZE * 2 if name != "dot" else QUERY_SIZE + 1
    query_size = QUERY_SIZE if name != "dot" else memory_size
    attention = build_attention(name, query_size=query_size, memory_size=memory_size, options={})
    return attention.to(dtype), query_size, memory_size


def case(name, dtype=torch.float64, scale=1.0):
    attention, query_size, memory_size = build(name, dtype)
    values = torch.randn(BATCH, POSITIONS, memory_size, dtype=dtype) * scale
    query = torch.randn(BATCH, query_size, dtype=dtype) * scale
    mask = torch.arange(POSITIONS) < torch.tensor(LENGTHS).unsqueeze(1)
    return attention, values, query, mask


def attend(attention, values, query, mask):
    memory, state = attention.prepare(values, mask)
    return (*attention.attend(query, memory, state), memory)


@pytest.fixture(params=variant_names())
def name(request):
    return request.param


def test_weights_are_a_distribution_over_real_positions(name):
    attention, values, query, mask = case(name)
    context, state, memory = attend(attention, values, query, mask)
    weights = state.weights_BS
    assert weights.shape == memory.mask_BS.shape
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(BATCH, dtype=weights.dtype))
    assert (weights[~memory.mask_BS] == 0).all(), "weight on padding"
    assert context.shape == (BATCH, attention.memory_size)
    if attention.is_positional:
        assert torch.equal(memory.mask_BS, mask)


def test_context_is_the_weighted_sum_of_the_values(name):
    attention, values, query, mask = case(name)
    context, state, memory = attend(attention, values, query, mask)
    for row in range(BATCH):
        expected = sum(state.weights_BS[row, s] * memory.values_BSM[row, s] for s in range(memory.values_BSM.shape[1]))
        torch.testing.assert_close(context[row], expected)


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
def test_padded_values_change_nothing_bit_for_bit(name, garbage):
    attention, values, query, mask = case(name, torch.float32)
    clean, clean_state, _ = attend(attention, values, query, mask)
    dirty_values = values.masked_fill(~mask.unsqueeze(-1), garbage)
    dirty, dirty_state, _ = attend(attention, dirty_values, query, mask)
    assert torch.equal(clean, dirty)
    assert torch.equal(clean_state.weights_BS, dirty_state.weights_BS)


def test_a_row_of_a_padded_batch_is_the_same_sentence_alone(name):
    attention, values, query, mask = case(name)
    context, state, _ = attend(attention, values, query, mask)
    for row, length in enumerate(LENGTHS):
        alone = slice(row, row + 1)
        context_alone, state_alone, memory = attend(
            attention, values[alone, :length], query[alone], mask[alone, :length]
        )
        torch.testing.assert_close(context[alone], context_alone)
        width = memory.mask_BS.shape[1]
        torch.testing.assert_close(state.weights_BS[alone, :width], state_alone.weights_BS)


def test_reorder_then_step_is_step_then_reorder(name):
    attention, values, query, mask = case(name)
    order = torch.tensor([3, 0, 0, 4, 1])
    memory, state = attention.prepare(values, mask)
    context, next_state = attention.attend(query, memory, state)

    def take(fields):
        return fields._make(None if field is None else field[order] for field in fields)

    moved_context, moved_state = attention.attend(query[order], take(memory), take(state))
    torch.testing.assert_close(moved_context, context[order])
    for moved, expected in zip(moved_state, take(next_state), strict=True):
        torch.testing.assert_close(moved, expected)


def test_gradcheck(name):
    attention, values, query, mask = case(name)

    def run(values, query, *parameters):
        context, state, _ = attend(attention, values, query, mask)
        return context, state.weights_BS

    inputs = (values.requires_grad_(), query.requires_grad_(), *attention.parameters())
    assert torch.autograd.gradcheck(run, inputs)


def test_one_source_token_has_weight_one(name):
    attention, values, query, mask = case(name)
    context, state, _ = attend(attention, values[:, :1], query, mask[:, :1])
    if attention.is_positional:
        assert torch.equal(state.weights_BS, torch.ones(BATCH, 1, dtype=state.weights_BS.dtype))
    torch.testing.assert_close(context, values[:, 0, : attention.memory_size])


@pytest.mark.parametrize("scale", [1e4, 1e-4])
def test_large_and_small_scores_stay_finite_also_in_bf16(name, scale):
    attention, values, query, mask = case(name, torch.float32, scale)
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            context, state, memory = attend(attention, values, query, mask)
        assert torch.isfinite(context).all()
        assert state.weights_BS.dtype == torch.float32
        assert torch.isfinite(state.weights_BS).all()
        assert (state.weights_BS[~memory.mask_BS] == 0).all()


def test_nothing_is_kept_between_calls(name):
    attention, values, query, mask = case(name)
    before = copy.deepcopy(attention.state_dict())
    memory, state = attention.prepare(values, mask)
    first, first_state = attention.attend(query, memory, state)
    attention.prepare(values.flip(0) * 2, mask.flip(0))  # another batch in between
    attention.prepare(values, mask)  # and this one twice
    second, second_state = attention.attend(query, memory, state)
    assert torch.equal(first, second)
    assert torch.equal(first_state.weights_BS, second_state.weights_BS)
    assert all(torch.equal(before[key], value) for key, value in attention.state_dict().items())


def test_every_parameter_gets_a_gradient(name):
    attention, values, query, mask = case(name)
    context, _, _ = attend(attention, values.requires_grad_(), query, mask)
    context.square().sum().backward()
    for parameter_name, parameter in attention.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().sum() > 0, parameter_name


def test_no_padding_in_the_batch_is_the_mask_of_ones(name):
    attention, values, query, _ = case(name)
    _, state, memory = attend(attention, values, query, torch.ones(BATCH, POSITIONS, dtype=torch.bool))
    assert memory.mask_BS.all()
    torch.testing.assert_close(state.weights_BS.sum(dim=1), torch.ones(BATCH, dtype=torch.float64))
