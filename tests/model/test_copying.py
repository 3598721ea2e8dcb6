"""Outputs that copy, through search and scheduled sampling: tokens of the source, or of the
translation so far."""

import pytest
import torch

from seq2seq_attn.data.batch import collate, collate_source
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.vocab import PAD, UNK, ExtendedIds
from seq2seq_attn.train.loss import batch_loss
from tests.model.conftest import NUM_TARGET_IDS
from tests.search.searching import search

SOURCE, TARGET = [[5, 9, 7, 4], [8], [6, 8]], [[9, 6, 9, 9], [5, 5], []]


def check_forced(model, hypotheses, source, extended=None):
    """Their log-probabilities are those of forced decoding."""
    for hypothesis in hypotheses:
        known = [UNK if i >= NUM_TARGET_IDS else i for i in hypothesis.ids]
        extended_ids = None if extended is None else [ExtendedIds(extended, hypothesis.ids)]
        batch = collate([source], [known], [0], extended=extended_ids)
        num_scored = len(known) + hypothesis.is_finished
        log_probs = model.output.target_log_probs(model(batch))[:num_scored]
        assert hypothesis.log_prob == pytest.approx(log_probs.sum().item(), abs=1e-4)


def copying(model):
    """A model that copies the source position that it looks at."""
    with torch.no_grad():
        model.output.gate.bias.fill_(-40.0)
    return model


def test_scheduled_sampling_feeds_copies_back_as_unk(make_model, batch):
    model = copying(make_model(output={"name": "copy"}))
    source = batch.source._replace(extended_ids_BS=torch.where(batch.source.mask_BS, 31, PAD))
    loss = batch_loss(model, batch._replace(source=source), teacher_forcing_ratio=0.0)
    loss.loss_sum.backward()
    assert torch.isfinite(loss.loss_sum)


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
        check_forced(model, hypotheses, SOURCE[number % 3])


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
