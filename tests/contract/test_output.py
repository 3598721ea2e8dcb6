"""The output contract, asked of every file in the folder: a new variant is picked up with no edit here.

All sizes are distinct primes, so that a swapped axis cannot pass.
"""

import copy

import pytest
import torch

from seq2seq_attn.data.batch import collate
from seq2seq_attn.model import speed
from seq2seq_attn.model.attention.scaled_dot import ScaledDot
from seq2seq_attn.model.decoder.base import Memory
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import Embedding
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.output import base
from seq2seq_attn.model.output.base import Outputs
from seq2seq_attn.model.tensors import select_rows
from seq2seq_attn.model.variants import build_variant
from seq2seq_attn.text.vocab import EOS, PAD, UNK
from tests.contract.chosen import variants
from tests.extended import extend

SIZES = {"feature_size": 11, "hidden_size": 5, "context_size": 7, "embedding_size": 3, "num_ids": 17}
MEMORY_SIZE, NUM_SOURCE_IDS = SIZES["context_size"], 13
SOURCE = [[4, 17, 6, 17, 18], [19, 8], [9], []]
TARGET = [[17, 9, 4], [20, 19], [9, 9], [7]]
"""17 and 19 are not in the vocabulary and can be copied, 20 cannot"""
LENGTHS = [len(ids) + 1 for ids in SOURCE]
EXTENDED = [extend(*pair, SIZES["num_ids"]) for pair in zip(SOURCE, TARGET, strict=True)]
KNOWN = [[UNK if i >= SIZES["num_ids"] else i for i in ids] for ids in TARGET]


@pytest.fixture(params=variants("output"))
def name(request):
    return request.param


def readout(hidden, context, embedded):
    """A decoder's readout, with weights of its own."""
    joined = torch.cat([hidden, context, embedded], dim=-1)
    generator = torch.Generator(torch.get_default_device()).manual_seed(4)
    weight = torch.randn(joined.shape[-1], SIZES["feature_size"], generator=generator).to(joined.dtype)
    return torch.tanh(joined @ weight)


OFFERED = {
    "memory_size": MEMORY_SIZE,
    "num_source_ids": NUM_SOURCE_IDS,
    "source_attention": ScaledDot(query_size=SIZES["hidden_size"], memory_size=MEMORY_SIZE, normalizer=softmax.weights),
    "source_embedding": Embedding(NUM_SOURCE_IDS, SIZES["embedding_size"]),
    "readout": readout,
}


def build(name, dtype=torch.float64):
    torch.manual_seed(0)
    output = build_variant("output", name, {}, **OFFERED, **SIZES)
    for parameter in output.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.5)
    return output.to(dtype)


def make_batch(rows=slice(None)):
    sources = [[UNK] * len(ids) for ids in SOURCE]
    batch = collate(sources[rows], KNOWN[rows], list(range(4))[rows], extended=EXTENDED[rows])
    return batch.to(torch.get_default_device())


def encode(source, dtype=torch.float64):
    """Random values and embeddings: those of a position do not depend on the batch."""

    def draw(size):
        generator = torch.Generator(torch.get_default_device()).manual_seed(size)
        table = torch.randn(7, 11, size, generator=generator, dtype=torch.float64).to(dtype)
        rows = torch.tensor([LENGTHS.index(length) for length in source.lengths_B.tolist()])
        return table[rows, : source.ids_BS.shape[1]].masked_fill(~source.mask_BS.unsqueeze(-1), 0.0)

    values = draw(MEMORY_SIZE)
    return Encoded(values, source.mask_BS, values[:, 0], draw(SIZES["embedding_size"]))


def make_outputs(output, batch, dtype=torch.float64, scale=1.0):
    """Random steps; the weights are a distribution over real positions."""
    generator = torch.Generator(torch.get_default_device()).manual_seed(1)
    num_steps, num_pairs = batch.tgt_out_BT.t().shape
    num_source = batch.source.ids_BS.shape[1]

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype) * scale

    features = draw(num_steps, num_pairs, SIZES["feature_size"])
    scores = draw(num_steps, num_pairs, num_source).masked_fill(~batch.source.mask_BS, -torch.inf)
    return Outputs(
        features_NF=features.flatten(0, 1)[batch.positions_N],
        positions_N=batch.positions_N,
        targets_N=batch.targets_N,
        hidden_TBH=draw(num_steps, num_pairs, SIZES["hidden_size"]),
        contexts_TBM=draw(num_steps, num_pairs, SIZES["context_size"]),
        embedded_TBE=draw(num_steps, num_pairs, SIZES["embedding_size"]),
        weights_TBS=torch.softmax(scores, dim=-1),
        memory=make_memory(output, batch, dtype),
        output=output,
        batch=batch,
        read_ids_TB=batch.tgt_in_BT.t() if output.needs_history else None,
    )


def make_memory(output, batch, dtype=torch.float64):
    source = batch.source
    return Memory(None, source.ids_BS, source.extended_ids_BS, output.prepare(encode(source, dtype), source))


def all_log_probs(output, outputs):
    """[N, V or V + S]."""
    return output.log_probs(*outputs.rows(slice(None)))


def real(batch):
    return batch.targets_N != PAD


def test_probabilities_are_a_distribution(name):
    output, batch = build(name), make_batch()
    log_probs = all_log_probs(output, make_outputs(output, batch))
    width = SIZES["num_ids"] + (batch.source.ids_BS.shape[1] if output.copies_source else 0)
    assert log_probs.shape == (len(batch.targets_N), width)
    torch.testing.assert_close(log_probs.exp().sum(dim=1), torch.ones(len(batch.targets_N), dtype=torch.float64))


def test_the_loss_is_that_of_the_probabilities(name):
    output, batch = build(name), make_batch()
    outputs = make_outputs(output, batch)
    targets = output.targets(outputs, batch)
    assert torch.equal(targets == PAD, ~real(batch))
    wanted = all_log_probs(output, outputs).gather(1, targets.unsqueeze(1)).squeeze(1)[real(batch)]
    torch.testing.assert_close(output.target_log_probs(outputs, batch)[real(batch)], wanted)
    loss = output.loss(outputs, batch, label_smoothing=0.0)
    torch.testing.assert_close(loss.loss_sum, -wanted.sum())
    torch.testing.assert_close(loss.nll_sum, -wanted.sum().detach())
    assert not output.target_log_probs(outputs, batch).requires_grad
    smoothed = output.loss(outputs, batch, label_smoothing=0.1)
    torch.testing.assert_close(smoothed.nll_sum, loss.nll_sum)
    assert smoothed.loss_sum != loss.loss_sum


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
def test_padded_steps_change_nothing_bit_for_bit(name, garbage):
    output, batch = build(name, torch.float32), make_batch()
    outputs = make_outputs(output, batch, torch.float32)
    is_padding_TB = (batch.tgt_out_BT == PAD).t().unsqueeze(-1)
    fields = ("hidden_TBH", "contexts_TBM", "embedded_TBE")
    dirty = {field: getattr(outputs, field).masked_fill(is_padding_TB, garbage) for field in fields}
    for smoothing in (0.0, 0.1):
        clean = output.loss(outputs, batch, label_smoothing=smoothing)
        found = output.loss(outputs._replace(**dirty), batch, label_smoothing=smoothing)
        assert torch.equal(found.loss_sum, clean.loss_sum)
    wanted, found = (output.target_log_probs(o, batch)[real(batch)] for o in (outputs, outputs._replace(**dirty)))
    assert torch.equal(found, wanted)


def test_a_row_of_a_padded_batch_is_the_same_sentence_alone(name):
    output, batch = build(name), make_batch()
    outputs = make_outputs(output, batch)
    for row in range(len(SOURCE)):
        alone = make_batch(slice(row, row + 1))
        num_steps, num_source = alone.num_tokens, alone.source.ids_BS.shape[1]
        step, memory = outputs.rows(slice(None))
        rows = [n for n in range(batch.num_tokens) if batch.positions_N[n] % len(SOURCE) == row]
        step, memory = select_rows(step, torch.tensor(rows)), select_rows(memory, torch.tensor(rows))
        narrow = step._replace(weights_BS=step.weights_BS[:, :num_source])
        short = select_rows(make_memory(output, alone), torch.zeros(num_steps, dtype=torch.int64))
        together, found = output.log_probs(step, memory), output.log_probs(narrow, short)
        torch.testing.assert_close(found, together[:, : found.shape[1]])
        assert (together[:, found.shape[1] :] == -torch.inf).all()
        assert num_steps == len(rows)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_gradcheck(name, label_smoothing):
    output, batch = build(name), make_batch()
    outputs = make_outputs(output, batch)
    floats = [
        field
        for field in outputs._fields
        if torch.is_tensor(value := getattr(outputs, field)) and value.is_floating_point()
    ]

    def run(*tensors):
        fields = dict(zip(floats, tensors, strict=False))
        given = outputs._replace(memory=make_memory(output, batch), **fields)
        return output.loss(given, batch, label_smoothing=label_smoothing).loss_sum

    inputs = [getattr(outputs, field).requires_grad_() for field in floats]
    with speed.plain():
        assert torch.autograd.gradcheck(run, (*inputs, *output.parameters()), fast_mode=True, nondet_tol=1e-9)


@pytest.mark.parametrize("scale", [1e4, 1e-4])
def test_large_and_small_scores_stay_finite_also_in_bf16(name, scale):
    output, batch = build(name, torch.float32), make_batch()
    for enabled in (False, True):
        with torch.autocast(torch.get_default_device().type, dtype=torch.bfloat16, enabled=enabled):
            outputs = make_outputs(output, batch, torch.float32, scale)
            outputs.weights_TBS.requires_grad_()  # for an output without parameters
            log_probs = all_log_probs(output, outputs)
            loss = output.loss(outputs, batch, label_smoothing=0.1)
        assert log_probs.dtype == loss.loss_sum.dtype == torch.float32
        assert not log_probs.isnan().any()
        assert torch.isfinite(loss.loss_sum)
        output.zero_grad()
        loss.loss_sum.backward()
        assert all(torch.isfinite(parameter.grad).all() for parameter in output.parameters())


def test_every_parameter_gets_a_gradient(name):
    output, batch = build(name), make_batch()
    outputs = make_outputs(output, batch)
    outputs.weights_TBS.requires_grad_()  # for an output without parameters
    output.loss(outputs, batch, label_smoothing=0.1).loss_sum.backward()
    for parameter_name, parameter in output.named_parameters():
        assert parameter.grad.abs().sum() > 0, parameter_name


def test_chunks_change_nothing(name, monkeypatch):
    output, batch = build(name), make_batch()
    outputs = make_outputs(output, batch)
    wanted = output.loss(outputs, batch, label_smoothing=0.1).loss_sum
    log_probs = output.target_log_probs(outputs, batch)
    monkeypatch.setattr(base, "CHUNK_CELLS", 3 * SIZES["num_ids"])
    monkeypatch.setattr(base, "ROWS_AT_ONCE", 3)
    with speed.plain():
        torch.testing.assert_close(output.loss(outputs, batch, label_smoothing=0.1).loss_sum, wanted)
    torch.testing.assert_close(output.target_log_probs(outputs, batch), log_probs)


def test_nothing_is_kept_between_calls(name):
    output, batch = build(name), make_batch()
    before = copy.deepcopy(output.state_dict())
    outputs = make_outputs(output, batch)
    first = all_log_probs(output, outputs)
    all_log_probs(output, make_outputs(output, make_batch(slice(1, 3))))
    assert torch.equal(all_log_probs(output, outputs), first)
    assert all(torch.equal(before[key], value) for key, value in output.state_dict().items())


def test_eos_is_a_target(name):
    output, batch = build(name), make_batch()
    targets = output.targets(make_outputs(output, batch), batch)
    assert int((targets == EOS).sum()) == len(TARGET)
