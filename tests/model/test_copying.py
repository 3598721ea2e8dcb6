"""Outputs that copy, through search and scheduled sampling: tokens of the source, or of the
translation so far."""

import pytest
import torch

from seq2seq_attn.data.batch import collate, collate_source
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.vocab import PAD
from seq2seq_attn.train.loss import batch_loss
from tests.search.searching import search

SOURCE = [
    [5, 9, 7, 4],
    [8],
    [6, 8],
]
TARGET = [[9, 6, 9, 9], [5, 5], []]


def test_scheduled_sampling_feeds_copies_back_as_unk(make_model, batch):
    model = make_model(output={"name": "copy"})
    torch.nn.init.constant_(model.output.gate.bias, -40.0)  # copies the position that it looks at
    extended_ids_BS = torch.where(batch.source.mask_BS, 31, PAD)
    source = batch.source._replace(extended_ids_BS=extended_ids_BS)
    loss = batch_loss(model, batch._replace(source=source), teacher_forcing_ratio=0.0)
    loss.loss_sum.backward()
    assert torch.isfinite(loss.loss_sum)


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "conditional"])
@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 4, "n_best": 4},
        {"method": "greedy"},
    ],
)
def test_search_gives_the_probabilities_of_forced_decoding(make_model, decoder, options):
    """The beam takes the history of a hypothesis along when it reorders them."""
    model = make_model(output={"name": "history_pointer"}, decoder={"name": decoder}).eval()
    torch.nn.init.normal_(model.output.sentinel_H)
    found = search(step_model(model), collate_source(SOURCE), [7, 4, 5], **options)
    for source, hypotheses in zip(SOURCE, found, strict=True):
        for hypothesis in hypotheses:
            batch = collate([source], [hypothesis.ids], [0])
            num_scored = len(hypothesis.ids) + hypothesis.is_finished
            log_probs = model.output.target_log_probs(model(batch))[:num_scored]
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
