"""The contract of decoders, asked of every file in the folder: a new variant is picked up with no
edit here."""

import pytest
import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.layers import select_rows
from tests.contract.chosen import variants
from tests.modules import assert_every_parameter_learns, half_precision, randomize

SOURCES = [
    [5, 9, 4, 11, 6],
    [7],
    [8, 8, 6],
]
ATTENTIONS = ["additive", "coverage", "multi_head"]
"""without a state, with one, and with something of its own for objectives"""


@pytest.fixture(params=variants("decoder"))
def name(request):
    return request.param


def build(name, attention="additive", dtype=torch.float64):
    torch.manual_seed(1)
    config = ModelConfig(
        embedding_size=11,
        hidden_size=14,
        readout_size=13,
        encoder={"hidden_size": 7},
        attention={"name": attention},
        decoder={"name": name},
    )
    model = build_model(config, num_source_ids=15, num_target_ids=17)
    return randomize(model).to(dtype).eval()


def embeddings(num_steps=3, dtype=torch.float64):
    generator = torch.Generator(torch.get_default_device()).manual_seed(2)
    return torch.randn(num_steps, len(SOURCES), 11, dtype=dtype, generator=generator)


def run(model, sources, embedded_TBE):
    """The memory and the steps."""
    memory, state = model.prepare(collate_source(sources).to(torch.get_default_device()))
    steps = []
    for embedded_BE in embedded_TBE:
        steps.append(model.decoder.step(embedded_BE, state, memory))
        state = steps[-1].state
    return memory, steps


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_a_padded_row_is_the_sentence_alone(name, attention):
    model = build(name, attention)
    embedded = embeddings()
    _, together = run(model, SOURCES, embedded)
    for row, source in enumerate(SOURCES):
        _, alone = run(model, [source], embedded[:, row : row + 1])
        for padded, step in zip(together, alone, strict=True):
            num_positions = len(source) + 1
            weights_S = padded.weights_BS[row]
            assert_close(padded.features_BF[row], step.features_BF[0])
            assert_close(weights_S[:num_positions], step.weights_BS[0])
            assert not weights_S[num_positions:].any()


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_reorder_then_step_is_step_then_reorder(name, attention):
    model = build(name, attention)
    embedded = embeddings()
    order = torch.tensor([2, 0, 0, 1])
    memory, steps = run(model, SOURCES, embedded)
    state = select_rows(steps[1].state, order)
    moved_memory = select_rows(memory, order)
    moved = model.decoder.step(embedded[2, order], state, moved_memory)
    expected = select_rows(steps[2], order)
    assert_close(tree_leaves(moved), tree_leaves(expected))


def test_nothing_is_kept_between_steps(name):
    model = build(name)
    before = [dict(vars(module)) for module in model.decoder.modules()]
    _, first = run(model, SOURCES, embeddings())
    assert [vars(module) for module in model.decoder.modules()] == before
    _, again = run(model, SOURCES, embeddings())
    assert torch.equal(first[-1].features_BF, again[-1].features_BF)


def test_every_parameter_gets_a_gradient(name):
    model = build(name)
    _, steps = run(model, SOURCES, embeddings())
    steps[-1].features_BF.square().sum().backward()
    assert_every_parameter_learns(model.decoder)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_a_step_hands_on_what_the_attention_gave(name, attention, monkeypatch):
    model = build(name, attention)
    returned = []
    attend = model.decoder.attention.step

    def recorded(*arguments):
        returned.append(attend(*arguments))
        return returned[-1]

    monkeypatch.setattr(model.decoder.attention, "step", recorded)
    _, steps = run(model, SOURCES, embeddings())
    for step, attended in zip(steps, returned, strict=True):
        assert step.context_BM is attended.context_BM
        assert step.weights_BS is attended.weights_BS
        assert step.extra is attended.extra


def test_features_have_their_size_and_their_readout(name):
    model = build(name)
    embedded = embeddings()
    _, steps = run(model, SOURCES, embedded)
    assert steps[-1].features_BF.shape == (len(SOURCES), model.decoder.feature_size)
    if model.decoder.read_out is not None:
        again = model.decoder.read_out(steps[-1].hidden_BH, steps[-1].context_BM, embedded[-1])
        assert_close(again, steps[-1].features_BF)


def test_states_stay_in_float32_under_autocast(name):
    model = build(name, dtype=torch.float32)
    embedded = embeddings(dtype=torch.float32)
    with half_precision():
        _, steps = run(model, SOURCES, embedded)
    tensors = [leaf for leaf in tree_leaves(steps[-1].state) if leaf is not None]  # no mask
    assert {tensor.dtype for tensor in tensors} == {torch.float32}
    assert all(torch.isfinite(tensor).all() for tensor in tensors)
