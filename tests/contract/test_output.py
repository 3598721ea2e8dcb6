"""The output contract, asked of every file in the folder: a new variant is picked up with no edit
here.

All sizes are distinct primes, so that a swapped axis cannot pass.
"""

import copy

import pytest
import torch

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

NUM_IDS = 17
SOURCE = [[4, 17, 6, 17, 18], [19, 8], [9], []]
TARGET = [[17, 9, 4], [20, 19], [9, 9], [7]]
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
        dropout={"embedding": 0.0, "encoder": 0.0, "readout": 0.0},
    )
    model = build_model(config, num_source_ids=13, num_target_ids=NUM_IDS)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.5)
    return model.to(dtype)


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
    return outputs._replace(
        memory=outputs.memory._replace(output=model.output.prepare(encoded, batch.source))
    )


def all_log_probs(output, outputs):
    """[N, V or V + S]."""
    return output.log_probs(*outputs.rows(slice(None)))


def real(batch):
    return batch.tgt_out_BT.t().flatten() != PAD


def test_probabilities_are_a_distribution(name):
    model, batch, outputs = make_case(name)
    log_probs = all_log_probs(model.output, outputs)
    width = NUM_IDS + (batch.source.ids_BS.shape[1] if model.output.copies_source else 0)
    assert log_probs.shape == (batch.tgt_out_BT.numel(), width)
    torch.testing.assert_close(
        log_probs.exp().sum(dim=1), torch.ones(batch.tgt_out_BT.numel(), dtype=torch.float64)
    )


def test_the_loss_is_that_of_the_probabilities(name):
    model, batch, outputs = make_case(name)
    output = model.output
    outputs = prepared(model, batch, outputs)
    targets = output.targets(batch)
    assert torch.equal(targets == PAD, ~real(batch))
    assert int((targets == EOS).sum()) == len(TARGET)
    wanted = all_log_probs(output, outputs).gather(1, targets.unsqueeze(1)).squeeze(1)[real(batch)]
    torch.testing.assert_close(output.target_log_probs(outputs)[real(batch)], wanted)
    loss = output.loss(outputs, label_smoothing=0.0)
    torch.testing.assert_close(loss.loss_sum, -wanted.sum())
    torch.testing.assert_close(loss.nll_sum, -wanted.sum().detach())
    assert not output.target_log_probs(outputs).requires_grad
    smoothed = output.loss(outputs, label_smoothing=0.1)
    torch.testing.assert_close(smoothed.nll_sum, loss.nll_sum)
    assert smoothed.loss_sum != loss.loss_sum


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
def test_padded_steps_change_nothing_bit_for_bit(name, garbage):
    model, batch, outputs = make_case(name, torch.float32)
    output = model.output
    is_padding_TB1 = ~real(batch).view(-1, len(SOURCE), 1)
    dirty = {
        field: getattr(outputs, field).masked_fill(is_padding_TB1, garbage) for field in STEPS[1:]
    }
    dirty["features_NF"] = outputs.features_NF.masked_fill(is_padding_TB1.flatten(0, 1), garbage)
    for smoothing in (0.0, 0.1):
        clean = output.loss(outputs, label_smoothing=smoothing)
        found = output.loss(outputs._replace(**dirty), label_smoothing=smoothing)
        assert torch.equal(found.loss_sum, clean.loss_sum)
    wanted, found = (
        output.target_log_probs(o)[real(batch)] for o in (outputs, outputs._replace(**dirty))
    )
    assert torch.equal(found, wanted)


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
        torch.testing.assert_close(found, together[:, : found.shape[1]])
        assert (together[:, found.shape[1] :] == -torch.inf).all()


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_gradcheck(name, label_smoothing):
    model, batch, outputs = make_case(name)
    fields = (*STEPS, "weights_TBS")

    def run(*tensors):
        given = prepared(model, batch, outputs)._replace(**dict(zip(fields, tensors, strict=False)))
        return model.output.loss(given, label_smoothing=label_smoothing).loss_sum

    inputs = [getattr(outputs, field).requires_grad_() for field in fields]
    with speed.plain():
        assert torch.autograd.gradcheck(
            run, (*inputs, *model.output.parameters()), fast_mode=True, nondet_tol=1e-9
        )


@pytest.mark.parametrize("scale", [1e4, 1e-4])
def test_large_and_small_scores_stay_finite_also_in_bf16(name, scale):
    model, batch, outputs = make_case(name, torch.float32, scale)
    outputs.weights_TBS.requires_grad_()  # for an output without parameters
    for enabled in (False, True):
        with torch.autocast(torch.get_default_device().type, dtype=torch.bfloat16, enabled=enabled):
            given = prepared(model, batch, outputs)
            log_probs = all_log_probs(model.output, given)
            loss = model.output.loss(given, label_smoothing=0.1)
        assert log_probs.dtype == loss.loss_sum.dtype == torch.float32
        assert not log_probs.isnan().any()
        assert torch.isfinite(loss.loss_sum)
        model.zero_grad()
        loss.loss_sum.backward()
        assert all(torch.isfinite(parameter.grad).all() for parameter in model.output.parameters())


def test_every_parameter_gets_a_gradient(name):
    model, batch, outputs = make_case(name)
    outputs.weights_TBS.requires_grad_()  # for an output without parameters
    model.output.loss(prepared(model, batch, outputs), label_smoothing=0.1).loss_sum.backward()
    for parameter_name, parameter in model.output.named_parameters():
        assert parameter.grad.abs().sum() > 0, parameter_name


def test_chunks_change_nothing(name, monkeypatch):
    model, _, outputs = make_case(name)
    wanted = model.output.loss(outputs, label_smoothing=0.1).loss_sum
    log_probs = model.output.target_log_probs(outputs)
    monkeypatch.setattr(base, "CHUNK_CELLS", 3 * NUM_IDS)
    monkeypatch.setattr(base, "ROWS_AT_ONCE", 3)
    with speed.plain():
        torch.testing.assert_close(model.output.loss(outputs, label_smoothing=0.1).loss_sum, wanted)
    torch.testing.assert_close(model.output.target_log_probs(outputs), log_probs)


def test_nothing_is_kept_between_calls(name):
    model, _, outputs = make_case(name)
    before = copy.deepcopy(model.output.state_dict())
    first = all_log_probs(model.output, outputs)
    all_log_probs(model.output, model(make_batch(slice(1, 3))))
    assert torch.equal(all_log_probs(model.output, outputs), first)
    assert all(torch.equal(before[key], value) for key, value in model.output.state_dict().items())
