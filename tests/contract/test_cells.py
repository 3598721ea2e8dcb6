"""The contract of cells, asked of every file in the folder: a new variant is picked up with no edit
here."""

import pytest
import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

from seq2seq_attn.model.build import initialize
from seq2seq_attn.model.layers import select_rows
from seq2seq_attn.model.variants import build_variant
from tests.contract.chosen import variants
from tests.modules import (
    assert_every_parameter_learns,
    assert_gradients_are_finite,
    half_precision,
    randomize,
)

SIZE = 7
INPUT_SIZES = (3, 5)
BATCH = 4
STEPS = 3


@pytest.fixture(params=variants("cell"))
def name(request):
    return request.param


def build(name, dtype=torch.float64, input_sizes=INPUT_SIZES):
    torch.manual_seed(1)
    cell = build_variant("cell", name, {}, input_sizes=list(input_sizes), hidden_size=SIZE)
    return randomize(cell).to(dtype)


def tensors(dtype=torch.float64, scale=1.0):
    """The inputs of all steps, and the first hidden state."""
    generator = torch.Generator(torch.get_default_device()).manual_seed(2)
    inputs = [
        torch.randn(STEPS, BATCH, size, dtype=dtype, generator=generator) * scale
        for size in INPUT_SIZES
    ]
    return inputs, torch.randn(BATCH, SIZE, dtype=dtype, generator=generator)


def run(cell, inputs, hidden):
    """The states after each step."""
    states = [cell.start(hidden)]
    for projected in cell.project_inputs(*inputs):
        states.append(cell.step(projected, states[-1]))
    return states[1:]


def test_inputs_of_all_steps_can_be_projected_at_once(name):
    cell = build(name)
    inputs, _ = tensors()
    together = cell.project_inputs(*inputs)
    alone = torch.stack([cell.project_inputs(*step) for step in zip(*inputs, strict=True)])
    assert_close(together, alone)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_state_starts_from_the_hidden_state(name, dtype):
    cell = build(name, dtype)
    _, hidden = tensors(dtype)
    assert torch.equal(cell.hidden(cell.start(hidden)), hidden)


@pytest.mark.parametrize(
    ("dtype", "is_half"),
    [
        (torch.float32, False),
        (torch.float32, True),
        (torch.float64, False),
    ],
)
def test_a_state_keeps_its_dtype(name, dtype, is_half):
    cell = build(name, dtype)
    inputs, hidden = tensors(dtype)
    with half_precision(is_half):
        states = run(cell, inputs, hidden)
    assert {tensor.dtype for tensor in tree_leaves(states) if tensor is not None} == {dtype}
    assert cell.hidden(states[-1]).shape == (BATCH, SIZE)


def test_rows_do_not_see_each_other_and_can_be_reordered(name):
    cell = build(name)
    inputs, hidden = tensors()
    order = torch.tensor([2, 0, 0])
    states = run(cell, inputs, hidden)
    alone = run(cell, [tensor[:, 1:2] for tensor in inputs], hidden[1:2])
    assert_close(cell.hidden(alone[-1]), cell.hidden(states[-1])[1:2])
    projected = cell.project_inputs(*[tensor[2, order] for tensor in inputs])
    moved = cell.step(projected, select_rows(states[1], order))
    assert_close(tuple(moved), tuple(select_rows(states[2], order)))


def test_gradcheck(name):
    cell = build(name)
    inputs, hidden = tensors()
    leaves = [tensor.requires_grad_() for tensor in (*inputs, hidden)]
    assert torch.autograd.gradcheck(lambda *_: cell.hidden(run(cell, inputs, hidden)[-1]), leaves)


def test_every_parameter_gets_a_gradient(name):
    cell = build(name)
    inputs, hidden = tensors()
    cell.hidden(run(cell, inputs, hidden)[-1]).square().sum().backward()
    assert_every_parameter_learns(cell)


@pytest.mark.parametrize("is_half", [False, True])
@pytest.mark.parametrize("scale", [1e4, 1e-4, 0.0])
def test_large_and_small_inputs_stay_finite_also_in_bf16(name, scale, is_half):
    cell = build(name, torch.float32)
    inputs, hidden = tensors(torch.float32, scale)
    with half_precision(is_half):
        last_hidden = cell.hidden(run(cell, inputs, hidden)[-1])
    last_hidden.sum().backward()
    assert torch.isfinite(last_hidden).all()
    assert_gradients_are_finite(cell)


def test_an_input_may_be_empty(name):
    cell = build(name, input_sizes=(3, 0))
    projected = cell.project_inputs(
        torch.ones(2, 3, dtype=torch.float64), torch.empty(2, 0, dtype=torch.float64)
    )
    assert torch.isfinite(projected).all()


def test_the_first_state_of_a_fresh_cell_still_shows_after_a_few_steps(name):
    cell = build(name)
    inputs, hidden = tensors()
    initialize(cell)
    first, second = (cell.hidden(run(cell, inputs, start)[-1]) for start in (hidden, -hidden))
    assert not torch.allclose(first, second)
