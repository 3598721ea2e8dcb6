"""The output contract, asked of every file in the folder: a new variant is picked up with no edit
here.

All sizes are distinct primes, so that a swapped axis cannot pass.
"""

import copy

import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import collate
from seq2seq_attn.model import speed
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.encoder.base import zeroed
from seq2seq_attn.model.layers import select_rows
from seq2seq_attn.model.output import base
from seq2seq_attn.text.vocab import EOS, PAD, UNK
from tests.contract.chosen import variants
from tests.extended import extend
from tests.modules import (
    assert_every_parameter_learns,
    assert_gradients_are_finite,
    half_precision,
    randomize,
)

NUM_IDS = 17
SOURCE = [[4, 17, 6, 17, 18], [19, 8], [9], []]
TARGET = [
    [17, 9, 4],
    [20, 19],
    [9, 9],
    [7],
]
"""17 and 19 are not in the vocabulary and can be copied, 20 cannot"""
EXTENDED = [extend(*pair, NUM_IDS) for pair in zip(SOURCE, TARGET, strict=True)]
KNOWN = [[UNK if i >= NUM_IDS else i for i in ids] for ids in TARGET]
STEPS = ("features_NF", "hidden_TBH", "contexts_TBM", "embedded_TBE")


@pytest.fixture(params=variants("output"))
def name(request):
    return request.param


def build(name, dtype=torch.float64):
    torch.manual_seed(0)
    config = ModelConfig(
        embedding_size=3,
        hidden_size=5,
        readout_size=11,
        encoder={"name": "reversed", "hidden_size": 7},
        decoder={"name": "conditional"},
        output={"name": name},
        tie_embeddings="none",
        dropout={
            "embedding": 0.0,
            "encoder": 0.0,
            "readout": 0.0,
        },
    )
    return randomize(build_model(config, num_source_ids=13, num_target_ids=NUM_IDS)).to(dtype)


def make_batch(rows=slice(None)):
    sources = [[UNK] * len(ids) for ids in SOURCE]
    batch = collate(sources[rows], KNOWN[rows], list(range(4))[rows], extended=EXTENDED[rows])
    return batch.to(torch.get_default_device())


def make_case(name, dtype=torch.float64, scale=1.0):
    """The output of a model, a batch, and the model's steps without their graph, times `scale`."""
    model = build(name, dtype)
    batch = make_batch()
    with torch.no_grad():
        outputs = model(batch)
        scaled = {field: getattr(outputs, field) * scale for field in STEPS}
        weights_TBS = (outputs.weights_TBS.log() * scale).softmax(dim=-1)
    return model, batch, outputs._replace(**scaled, weights_TBS=weights_TBS)


def prepared(model, batch, outputs):
    """The outputs with the output's own part of the memory prepared again, with its graph."""
    with torch.no_grad():
        encoded = zeroed(model.encoder(batch.source))
    memory = outputs.memory._replace(output=model.output.prepare(encoded, batch.source))
    return outputs._replace(memory=memory)


def all_log_probs(output, outputs):
    """[N, V or V + S]."""
    return output.log_probs(*outputs.rows(slice(None)))


def real(batch):
    return batch.tgt_out_BT.t().flatten() != PAD


def test_probabilities_are_a_distribution(name):
    model, batch, outputs = make_case(name)
    sums_N = all_log_probs(model.output, outputs).exp().sum(dim=1)
    expected_N = torch.ones(batch.tgt_out_BT.numel(), dtype=torch.float64)
    assert_close(sums_N, expected_N)


def test_source_positions_follow_the_vocabulary_where_they_can_be_copied(name):
    model, batch, outputs = make_case(name)
    num_positions = batch.source.ids_BS.shape[1]
    width = all_log_probs(model.output, outputs).shape[1]
    assert width == (NUM_IDS + num_positions if model.output.copies_source else NUM_IDS)


def test_the_loss_is_that_of_the_probabilities(name):
    model, batch, outputs = make_case(name)
    output = model.output
    outputs = prepared(model, batch, outputs)
    targets = output.targets(batch)
    assert torch.equal(targets == PAD, ~real(batch))
    assert int((targets == EOS).sum()) == len(TARGET)
    wanted = all_log_probs(output, outputs).gather(1, targets.unsqueeze(1)).squeeze(1)[real(batch)]
    assert_close(output.target_log_probs(outputs)[real(batch)], wanted)
    loss = output.loss(outputs, label_smoothing=0.0)
    assert_close(loss.loss_sum, -wanted.sum())
    assert_close(loss.nll_sum, -wanted.sum().detach())
    assert not output.target_log_probs(outputs).requires_grad
    smoothed = output.loss(outputs, label_smoothing=0.1)
    assert_close(smoothed.nll_sum, loss.nll_sum)
    assert smoothed.loss_sum != loss.loss_sum


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
def test_padded_steps_change_nothing_bit_for_bit(name, garbage):
    model, batch, clean = make_case(name, torch.float32)
    is_padding_TB1 = ~real(batch).view(-1, len(SOURCE), 1)
    fields = {"features_NF": clean.features_NF.masked_fill(is_padding_TB1.flatten(0, 1), garbage)}
    for field in STEPS[1:]:
        fields[field] = getattr(clean, field).masked_fill(is_padding_TB1, garbage)
    dirty = clean._replace(**fields)
    for smoothing in (0.0, 0.1):
        expected = model.output.loss(clean, label_smoothing=smoothing).loss_sum
        assert torch.equal(model.output.loss(dirty, label_smoothing=smoothing).loss_sum, expected)
    expected_N = model.output.target_log_probs(clean)[real(batch)]
    assert torch.equal(model.output.target_log_probs(dirty)[real(batch)], expected_N)


def test_a_row_of_a_padded_batch_is_the_same_sentence_alone(name):
    model, _, outputs = make_case(name)
    step, memory = outputs.rows(slice(None))
    for row in range(len(SOURCE)):
        alone = make_batch(slice(row, row + 1))
        rows_N = torch.arange(alone.num_tokens) * len(SOURCE) + row
        together = model.output.log_probs(
            select_rows(step._replace(state=None), rows_N), select_rows(memory, rows_N)
        )
        found = all_log_probs(model.output, model(alone))[: alone.num_tokens]
        assert_close(found, together[:, : found.shape[1]])
        assert (together[:, found.shape[1] :] == -torch.inf).all()


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_gradcheck(name, label_smoothing):
    model, batch, outputs = make_case(name)
    fields = (*STEPS, "weights_TBS")

    def run(*tensors):
        values = dict(zip(fields, tensors, strict=False))
        replaced = prepared(model, batch, outputs)._replace(**values)
        return model.output.loss(replaced, label_smoothing=label_smoothing).loss_sum

    inputs = [getattr(outputs, field).requires_grad_() for field in fields]
    inputs += model.output.parameters()
    with speed.plain():
        assert torch.autograd.gradcheck(run, inputs, fast_mode=True, nondet_tol=1e-9)


@pytest.mark.parametrize("scale", [1e4, 1e-4])
@pytest.mark.parametrize("is_half", [False, True])
def test_large_and_small_scores_stay_finite_also_in_bf16(name, scale, is_half):
    model, batch, outputs = make_case(name, torch.float32, scale)
    outputs.weights_TBS.requires_grad_()  # for an output without parameters
    with half_precision(is_half):
        outputs = prepared(model, batch, outputs)
        log_probs = all_log_probs(model.output, outputs)
        loss_sum = model.output.loss(outputs, label_smoothing=0.1).loss_sum
    assert log_probs.dtype == loss_sum.dtype == torch.float32
    assert not log_probs.isnan().any()
    assert torch.isfinite(loss_sum)
    loss_sum.backward()
    assert_gradients_are_finite(model.output)


def test_every_parameter_gets_a_gradient(name):
    model, batch, outputs = make_case(name)
    outputs.weights_TBS.requires_grad_()  # for an output without parameters
    model.output.loss(prepared(model, batch, outputs), label_smoothing=0.1).loss_sum.backward()
    assert_every_parameter_learns(model.output)


def test_chunks_change_nothing(name, monkeypatch):
    model, _, outputs = make_case(name)
    wanted = model.output.loss(outputs, label_smoothing=0.1).loss_sum
    log_probs = model.output.target_log_probs(outputs)
    monkeypatch.setattr(base, "CHUNK_CELLS", 3 * NUM_IDS)
    with speed.plain():
        assert_close(model.output.loss(outputs, label_smoothing=0.1).loss_sum, wanted)
    assert_close(model.output.target_log_probs(outputs), log_probs)


def test_nothing_is_kept_between_calls(name):
    model, _, outputs = make_case(name)
    before = copy.deepcopy(model.output.state_dict())
    first = all_log_probs(model.output, outputs)
    all_log_probs(model.output, model(make_batch(slice(1, 3))))
    assert torch.equal(all_log_probs(model.output, outputs), first)
    assert all(torch.equal(before[key], value) for key, value in model.output.state_dict().items())
