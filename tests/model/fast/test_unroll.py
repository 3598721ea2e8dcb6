"""The fast unroll is the plain one: outputs, gradients, and a loss curve."""

import gc
from itertools import product

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from seq2seq_attn.data.batch import collate
from seq2seq_attn.model import speed
from seq2seq_attn.model.attention.additive import Additive
from seq2seq_attn.model.fast import attention_gru
from seq2seq_attn.model.fast import unroll as fast_unroll
from seq2seq_attn.model.fast.cross_entropy import chunked_cross_entropy
from seq2seq_attn.model.fast.unroll import known_score
from seq2seq_attn.model.output.base import TakesTable
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.text.ibm1 import estimate_table
from seq2seq_attn.text.vocab import UNK
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.objectives.coverage import Coverage
from tests.extended import extend
from tests.model.conftest import NUM_TARGET_IDS
from tests.modules import gradients

VARIANTS = packaged_variants("attention")
NO_DROPOUT = {
    "embedding": 0.0,
    "encoder": 0.0,
    "readout": 0.0,
}
SOURCE_IDS = [np.array([5, 9]), np.array([8])]
TARGET_IDS = [np.array([6, 9]), np.array([5])]
TABLE = estimate_table(SOURCE_IDS.__getitem__, TARGET_IDS.__getitem__, 2)


def loss_and_gradients(model, batch, ratio):
    torch.manual_seed(3)
    model.zero_grad()
    loss = batch_loss(model, batch, label_smoothing=0.1, teacher_forcing_ratio=ratio)
    loss.loss_sum.backward()
    return loss, gradients(model)


def check_fast_is_plain(model, batch, ratio):
    fast, fast_gradients = loss_and_gradients(model, batch, ratio)
    with speed.plain():
        plain, plain_gradients = loss_and_gradients(model, batch, ratio)
    assert_close(fast.loss_sum, plain.loss_sum, rtol=1e-12, atol=0)
    assert_close(fast.nll_sum, plain.nll_sum, rtol=1e-12, atol=0)
    assert_close(fast_gradients, plain_gradients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("decoder", "ratio"),
    [
        ("bahdanau", 1.0),
        ("bahdanau", 0.5),
        ("conditional", 1.0),
    ],
)
@pytest.mark.parametrize("name", VARIANTS)
def test_loss_and_gradients_equal_the_plain_loops(make_model, batch, name, decoder, ratio):
    model = make_model(name, decoder={"name": decoder}, dropout=NO_DROPOUT)
    check_fast_is_plain(model, batch, ratio)


CASES = [*product(("bahdanau", "conditional"), packaged_variants("output"))]
CASES.remove(("bahdanau", "pointer"))  # refused


@pytest.mark.parametrize(("decoder", "output"), CASES)
def test_every_output_has_the_fast_pass(make_model, output, decoder):
    model = make_model(
        output={"name": output},
        decoder={"name": decoder},
        dropout=NO_DROPOUT,
        tie_embeddings="none",
    )
    extended = [
        extend([33, 9, 33, 31], [9, 33, 6], NUM_TARGET_IDS),
        extend([8], [5], NUM_TARGET_IDS),
    ]
    batch = collate([[5, 9, 7, 4], [8]], [[9, UNK, 6], [5]], range(2), extended=extended)
    sampled_BT = torch.where(batch.tgt_in_BT == UNK, 33, batch.tgt_in_BT)  # a copy that was drawn
    if isinstance(model.output, TakesTable):
        model.output.set_table(TABLE)
    assert speed.find("unroll", model, 1.0) is fast_unroll.unroll
    check_fast_is_plain(model, batch._replace(tgt_in_BT=sampled_BT), 1.0)


@pytest.mark.parametrize("name", ["additive", "dot", "multi_head"])
def test_gradients_of_objectives_equal_the_plain_loops(make_model, batch, name):
    model = make_model(name, dropout=NO_DROPOUT)

    def learn():
        model.zero_grad()
        [term] = batch_loss(model, batch, objectives=[Coverage()]).terms
        term.backward()
        return term, gradients(model)

    fast, fast_gradients = learn()
    with speed.plain():
        plain, plain_gradients = learn()
    assert plain > 0
    assert any(gradient.any() for gradient in plain_gradients.values())
    assert_close(fast, plain)
    assert_close(fast_gradients, plain_gradients, rtol=1e-9, atol=1e-12)


WITHOUT_QUERY = ["fixed", "initial", "uniform"]
KNOWN = ["additive", "key_value", "dot", "scaled_dot", "bilinear", "slots", *WITHOUT_QUERY]


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_score_has_the_fast_unroll(make_model, name):
    model = make_model(name)
    assert speed.find("unroll", model, 1.0) is fast_unroll.unroll
    assert speed.find("unroll", model, 0.9) is None  # choices are fed back
    model = make_model(name, decoder={"name": "conditional"})
    assert (speed.find("unroll", model, 1.0) is None) == (name in WITHOUT_QUERY)


@pytest.mark.parametrize("decoder", ["bahdanau", "conditional"])
def test_decoders_of_several_layers_are_not_known(make_model, decoder):
    model = make_model(decoder={"name": decoder, "num_layers": 2})
    assert speed.find("unroll", model, 1.0) is None
    assert speed.find("steps", model, "fp32") is None


class Even(Additive):
    """A variant of a user's own: the inherited scores are not read."""

    def step(self, query_BH, memory, state):
        scores_BS = torch.zeros(memory.mask_BS.shape, dtype=query_BH.dtype)
        return self.attend(scores_BS, memory)


def test_a_subclass_has_no_fast_path_of_its_parent(make_model, batch):
    model = make_model().eval()
    model.decoder.attention.__class__ = Even
    assert known_score(model.decoder.attention) is None
    loss = batch_loss(model, batch).loss_sum
    with speed.plain():
        assert_close(loss, batch_loss(model, batch).loss_sum)


@pytest.mark.parametrize("name", ["additive", "scaled_dot"])
def test_without_gradients_nothing_is_kept_for_them(make_model, batch, name):
    """Forced decoding of long sentences: [T, B, S, A] would be gigabytes."""
    model = make_model(name).eval()
    expected = model(batch)
    with torch.no_grad(), Largest() as largest:
        found = model(batch)
    size = model.decoder.attention.query_projection.out_features
    assert largest.numel < expected.weights_TBS.numel() * size
    for field in ("features_NF", "hidden_TBH", "weights_TBS"):
        assert_close(getattr(found, field), getattr(expected, field))


@pytest.mark.parametrize("decoder", ["bahdanau", "conditional"])
def test_a_large_batch_computes_its_sigmoids_again(make_model, batch, monkeypatch, decoder):
    model = make_model(decoder={"name": decoder}).eval()
    _, expected = loss_and_gradients(model, batch, 1.0)
    monkeypatch.setattr(attention_gru, "_MAX_KEPT", 0)
    _, gradients = loss_and_gradients(model, batch, 1.0)
    assert_close(gradients, expected, rtol=0, atol=0)


class Largest(TorchDispatchMode):
    """Keeps the number of elements of the largest tensor that is made."""

    numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(made):
            if isinstance(leaf, torch.Tensor):
                self.numel = max(self.numel, leaf.numel())
        return made


def test_passes_leave_no_tensors_alive(make_model, batch):
    model = make_model("location")  # which no fast unroll knows

    def num_tensors():
        loss_and_gradients(model, batch, 1.0)
        gc.collect()
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

    num_tensors()  # makes the gradients
    assert num_tensors() == num_tensors()


def test_a_second_derivative_of_the_unroll_is_refused(make_model, batch):
    """The hand-written backward passes cannot be differentiated: the result would be silently
    wrong."""
    model = make_model().eval()
    memory, state = model.prepare(batch.source)
    inputs = torch.randn(2, 5, 11, dtype=torch.float64, requires_grad=True)
    features, *_ = fast_unroll.unroll_decoder(model.decoder, inputs, state, memory)
    assert_refuses_second_derivative(features, inputs)


def test_a_second_derivative_of_the_cross_entropy_is_refused():
    inputs = torch.randn(3, 5, requires_grad=True)
    loss, _ = chunked_cross_entropy(
        inputs, torch.randn(7, 5), torch.randn(7), torch.tensor([1, 2, 3])
    )
    assert_refuses_second_derivative(loss, inputs)


def assert_refuses_second_derivative(outputs, inputs):
    [gradient] = torch.autograd.grad(outputs.square().sum(), inputs, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
