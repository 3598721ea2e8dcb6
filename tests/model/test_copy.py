"""The output `copy`: its formula by hand and by a loop over positions, and its way through training and search."""

import math

import pytest
import torch

from seq2seq_attn.data.batch import collate, collate_source
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.output.base import LEAST_WEIGHT
from seq2seq_attn.model.output.copy import Copy
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.vocab import EOS, PAD, UNK, ExtendedIds
from seq2seq_attn.train.loss import batch_loss
from tests.extended import extend
from tests.search.searching import search

NUM_IDS = 31  # of make_model

SIZES = {"feature_size": 1, "hidden_size": 1, "context_size": 1, "embedding_size": 1, "num_ids": 6}


def step_of(features, hidden, context, embedded, weights):
    tensors = (torch.tensor(rows, dtype=torch.float64) for rows in (features, hidden, context, embedded, weights))
    return StepOutput(*tensors, None)


def memory_of(extended):
    extended = torch.tensor(extended)
    return Memory(None, extended, extended)


def oracle(output, step, memory, row):
    """p of every id, one source position after the other."""
    joined = torch.cat([step.context_BM[row], step.hidden_BH[row], step.embedded_BE[row]])
    p_gen = torch.sigmoid(output.gate(joined)).item()
    p_vocab = torch.softmax(output.projection(step.features_BF[row]), dim=0).tolist()
    found = [p_gen * p for p in p_vocab] + [0.0] * memory.extended_ids_BS.shape[1]
    for j, extended in enumerate(memory.extended_ids_BS[row].tolist()):
        if extended != PAD:
            found[extended] += (1 - p_gen) * step.weights_BS[row, j].item()
    return found, p_gen, p_vocab


def test_probabilities_and_loss_are_those_of_a_loop(make_model):
    model = make_model(output={"name": "copy"}).eval()
    source, target = [[33, 9, 33, 31], [8], [8, 40]], [[9, 33, 31, 6], [41, 5], []]
    extended = [extend(*pair, NUM_IDS) for pair in zip(source, target, strict=True)]
    batch = collate(
        [[5] * len(ids) for ids in source],
        [[UNK if i >= NUM_IDS else i for i in ids] for ids in target],
        range(3),
        extended=extended,
    )
    outputs = model(batch)
    loss = model.output.loss(outputs, batch, label_smoothing=0.1)
    step, memory = outputs.rows(slice(None))
    rows = model.output.log_probs(step, memory).exp()
    smoothed = nll = 0.0
    for n in range(batch.num_tokens):
        found, _, p_vocab = oracle(model.output, step, memory, n)
        assert rows[n].tolist() == pytest.approx(found, abs=1e-9)
        pair, t = int(batch.positions_N[n]) % 3, int(batch.positions_N[n]) // 3
        wanted = [*extended[pair].target, EOS][t]
        nll -= math.log(found[wanted])
        smoothed -= 0.9 * math.log(found[wanted]) + 0.1 * sum(map(math.log, p_vocab)) / NUM_IDS
    assert loss.nll_sum.item() == pytest.approx(nll, rel=1e-9)
    assert loss.loss_sum.item() == pytest.approx(smoothed, rel=1e-9)


def test_a_copied_word_without_weight_has_a_finite_loss():
    output = Copy(**SIZES, source_attention=None).double()
    step = step_of([[1.0]], [[1.0]], [[1.0]], [[1.0]], [[0.0, 1.0]])
    log_probs = output.log_probs(step, memory_of([[6, 7]]))
    assert math.log(LEAST_WEIGHT) - 10 < log_probs[0, 6].item() < math.log(LEAST_WEIGHT)


def copying(model):
    """A model that copies the source position that it looks at."""
    with torch.no_grad():
        model.output.gate.bias.fill_(-40.0)
    return model


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "conditional"])
def test_search_copies_and_goes_on(make_model, decoder):
    """An id of a source position is fed back as UNK, in search as in training."""
    model = copying(make_model(output={"name": "copy"}, decoder={"name": decoder}).eval())
    sentences, extended = [[5, 6, 5, 7], [8]], [[31, 32, 31, 34], [31]]
    source = collate_source(sentences, extended)
    [[first], [second]] = search(step_model(model), source, [6, 4], method="greedy")
    assert {31, 32, 34, EOS} >= {*first.ids}
    assert {31} >= {*second.ids}
    assert first.ids
    best = search(step_model(model), source, [6, 4], beam_size=3, n_best=3)
    for hypotheses, sentence in zip(best, (0, 1), strict=True):
        assert len({tuple(hypothesis.ids) for hypothesis in hypotheses}) == len(hypotheses)
        for hypothesis in hypotheses:
            ids = hypothesis.ids
            known = [UNK if i >= NUM_IDS else i for i in ids]
            batch = collate([sentences[sentence]], [known], [0], extended=[ExtendedIds(extended[sentence], ids)])
            log_probs = model.output.target_log_probs(model(batch), batch)[: len(ids) + hypothesis.is_finished]
            assert hypothesis.log_prob == pytest.approx(log_probs.sum().item(), abs=1e-4)


def test_scheduled_sampling_feeds_copies_back_as_unk(make_model, batch):
    model = copying(make_model(output={"name": "copy"}))
    source = batch.source._replace(extended_ids_BS=torch.where(batch.source.mask_BS, 31, PAD))
    loss = batch_loss(model, batch._replace(source=source), teacher_forcing_ratio=0.0)
    loss.loss_sum.backward()
    assert torch.isfinite(loss.loss_sum)
