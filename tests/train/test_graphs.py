"""The code around a CUDA graph, on the CPU: the recording is replaced by one that runs the pass
again."""

import copy

import pytest
import torch

from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import collate, rounded_up
from seq2seq_attn.model.build import build_model
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.graphs import GraphedPass, Recorded
from seq2seq_attn.train.update import Updater
from tests.extended import extend

CPU = torch.device("cpu")


class Replaying(GraphedPass):
    """Records by remembering what to run, as a graph remembers its kernels and addresses."""

    num_replays = 0

    def record(self, batch, ratio):
        batch = copy.deepcopy(batch)
        num_tokens = torch.ones(())
        sums = torch.zeros(2, dtype=torch.float64)

        def replay():
            self.num_replays += 1
            sums.copy_(self._run(batch, num_tokens, ratio))

        return Recorded(replay, batch, num_tokens, sums)


def make_batch(first, length=2):
    ids = [first] * length
    extended = [extend([first + 10] * length, [first + 10] * length, 10), extend([first], ids, 10)]
    return collate([ids, ids[:1]], [ids, ids], [0, 1], extended=extended)


def run(batch, num_tokens, ratio):
    """Something that depends on all that a pass reads."""
    tensors = [
        batch.source.ids_BS,
        batch.source.extended_ids_BS,
        batch.tgt_in_BT,
        batch.tgt_out_BT,
        batch.tgt_extended_BT,
    ]
    total = torch.zeros((), dtype=torch.float64)
    for place, tensor in enumerate(tensors):
        total = total + tensor.double().sum() * 10**place
    return torch.stack([total / num_tokens, ratio * num_tokens.double()])


def test_replays_see_each_batch_with_its_shape_ratio_and_number_of_tokens():
    graphed = Replaying(run, CPU)
    cases = ((2, 1.0), (2, 0.5), (3, 1.0), (3, 0.5))
    for first in (5, 6, 7):
        for length, ratio in cases:
            batch = make_batch(first, length)
            expected = run(batch, torch.tensor(float(first)), ratio)
            assert torch.equal(graphed(batch, first, ratio), expected)
    assert graphed.num_replays == 2 * len(cases)  # the first sight of a shape is no recording
    assert len(graphed.recorded) == len(cases)


def test_an_updater_that_replays_makes_the_same_updates():
    settings = [
        "model.embedding_size=11",
        "model.hidden_size=13",
        "model.encoder.hidden_size=7",
        "model.dropout={embedding: 0, encoder: 0, readout: 0}",
        "train.precision=fp32",
    ]
    config = load_config((), settings)
    pieces = [make_batch(5), make_batch(6), make_batch(7, 3)]
    whole = UpdateBatches(pieces, [[0, 1]] * 3, sum(piece.num_tokens for piece in pieces))
    rounded = whole._replace(batches=[rounded_up(piece, rows=4, positions=4) for piece in pieces])

    def train(batches, *, is_graphed):
        torch.manual_seed(1)
        model = build_model(config.model, num_source_ids=19, num_target_ids=19)
        updater = Updater(model, config.train, device=CPU, precision="fp32")
        if is_graphed:
            updater.graphed = Replaying(updater.run_pass, CPU)
        options = {"learning_rate": 0.01, "teacher_forcing_ratio": 1.0}
        losses = []
        for number in range(4):
            losses.append(updater.apply_update(batches, update=number, **options).loss_sum)
        return losses, dict(model.named_parameters())

    expected_losses, expected = train(whole, is_graphed=False)
    losses, found = train(rounded, is_graphed=True)
    assert losses == pytest.approx(expected_losses, rel=1e-5)
    assert losses[-1] < losses[0]
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)
