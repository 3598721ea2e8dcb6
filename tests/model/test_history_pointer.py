"""The output `history_pointer`: its formula by hand and by a loop over the past, and its way through search."""

import math

import pytest
import torch

from seq2seq_attn.data.batch import collate, collate_source
from seq2seq_attn.model.decoder.base import History, StepOutput
from seq2seq_attn.model.output.history_pointer import HistoryPointer
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK
from seq2seq_attn.train.loss import batch_loss
from tests.search.searching import search

NUM_IDS = 31  # of make_model
SOURCE, TARGET = [[5, 9, 7, 4], [8], [6, 8]], [[9, 6, 9, 9], [5, 5], []]


def step_of(ids, hidden):
    """A step with these tokens read, and these states of width 1; the last one is the current."""
    hidden_1KH = torch.tensor([hidden], dtype=torch.float64).unsqueeze(2)
    none = torch.zeros(1, 1, dtype=torch.float64)
    return StepOutput(none, hidden_1KH[:, -1], none, none, none, None, History(torch.tensor([ids]), hidden_1KH))


def by_hand(ids, hidden):
    output = HistoryPointer(feature_size=1, hidden_size=1, num_ids=7).double()
    with torch.no_grad():
        output.projection.weight.fill_(0.0)
        output.projection.bias.copy_(torch.log(torch.tensor([0.1, 0.1, 0.2, 0.1, 0.2, 0.2, 0.1])))
        output.query_projection.weight.fill_(0.0)
        output.query_projection.bias.fill_(math.atanh(0.5))  # q = 1/2
        output.sentinel_H.fill_(2 * math.log(4))  # exp(q s) = 4
    return output.log_probs(step_of(ids, hidden), None).exp()[0].tolist()


def test_the_formula_by_hand():
    # exp(q h) is 3, 2 and 1 for the words 4, 6, 4; BOS is not a word: a = 3, 2, 1 of 10, and g = 4 of 10
    found = by_hand([BOS, 4, 6, 4], [99.0, 2 * math.log(3), 2 * math.log(2), 0.0])
    assert found == pytest.approx([0.04, 0.04, 0.08, 0.04, 0.08 + 0.4, 0.08, 0.04 + 0.2], rel=1e-6)


def test_an_unknown_word_is_pointed_to_like_any_other():
    # exp(q h) = 4, as for the sentinel: a and g are 1 / 2
    assert by_hand([BOS, UNK], [99.0, 2 * math.log(4)]) == pytest.approx(
        [0.05, 0.05, 0.1, 0.05 + 0.5, 0.1, 0.1, 0.05], rel=1e-6
    )


def test_the_first_word_comes_from_the_vocabulary_alone():
    assert by_hand([BOS], [99.0]) == pytest.approx([0.1, 0.1, 0.2, 0.1, 0.2, 0.2, 0.1], rel=1e-6)


@torch.no_grad()
def oracle(output, features, hidden_TH, read):
    """p of every id after the tokens read, one past word after the other."""
    query = torch.tanh(output.query_projection(hidden_TH[len(read) - 1]))
    shares = {0: math.exp(query @ output.sentinel_H)}
    for i in range(1, len(read)):
        shares[i] = math.exp(query @ hidden_TH[i])
    gate = shares[0] / sum(shares.values())
    found = (gate * torch.softmax(output.projection(features), dim=0)).tolist()
    for i in range(1, len(read)):
        found[read[i]] += shares[i] / sum(shares.values())
    return found


@pytest.mark.parametrize("attention", ["additive", "self_history"])
def test_probabilities_and_loss_are_those_of_a_loop(make_model, attention):
    model = make_model(output={"name": "history_pointer"}, attention={"name": attention}).eval()
    batch = collate(SOURCE, TARGET, range(3))
    outputs = model(batch)
    rows = model.output.log_probs(*outputs.rows(slice(None))).exp()
    nll = 0.0
    for n in range(batch.num_tokens):
        pair, t = int(batch.positions_N[n]) % 3, int(batch.positions_N[n]) // 3
        read = [BOS, *TARGET[pair]][: t + 1]
        found = oracle(model.output, outputs.features_NF[n], outputs.hidden_TBH[:, pair], read)
        assert rows[n].tolist() == pytest.approx(found, abs=1e-9)
        nll -= math.log(found[[*TARGET[pair], EOS][t]])
    assert batch_loss(model, batch).nll_sum.item() == pytest.approx(nll, rel=1e-9)


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "conditional"])
def test_search_gives_the_probabilities_of_forced_decoding(make_model, decoder):
    """The beam takes the history of a hypothesis along when it reorders them."""
    model = make_model(output={"name": "history_pointer"}, decoder={"name": decoder}).eval()
    with torch.no_grad():
        model.output.sentinel_H.normal_()
    source = collate_source(SOURCE)
    best = search(step_model(model), source, [7, 4, 5], beam_size=4, n_best=4)
    best += search(step_model(model), source, [7, 4, 5], method="greedy")
    for number, hypotheses in enumerate(best):
        for hypothesis in hypotheses:
            batch = collate([SOURCE[number % 3]], [hypothesis.ids], [0])
            num_scored = len(hypothesis.ids) + hypothesis.is_finished
            log_probs = model.output.target_log_probs(model(batch), batch)[:num_scored]
            assert hypothesis.log_prob == pytest.approx(log_probs.sum().item(), abs=1e-4)


def test_scheduled_sampling_points_to_what_was_fed_back(make_model):
    model = make_model(output={"name": "history_pointer"})
    batch = collate(SOURCE, TARGET, range(3))
    outputs = model(batch, teacher_forcing_ratio=0.0)
    given = batch.tgt_in_BT.t()
    assert torch.equal(outputs.read_ids_TB[0], given[0])
    assert not torch.equal(outputs.read_ids_TB, given)
    assert torch.equal(outputs.read_ids_TB == PAD, given == PAD)


def test_drawn_positions_are_still_seen(make_model):
    hard = {"name": "hard", "options": {"estimator": "reinforce"}}
    model = make_model(output={"name": "history_pointer"}, attention=hard)
    assert model(collate(SOURCE, TARGET, range(3))).extra is not None
