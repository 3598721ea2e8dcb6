"""A training step never reads a value back from the GPU, which would stall it. `FakeTensorMode` has
shapes but no values, so that such a read fails."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from seq2seq_attn.data.batch import rounded_up
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.train.loss import batch_loss
from tests.modules import gradients, half_precision

FORCED = [(name, 1.0) for name in packaged_variants("attention")]
WITHOUT_READS = [*FORCED, ("additive", 0.5)]
WITHOUT_READS.remove(("hierarchical", 1.0))


def fake_step(mode, model, batch, ratio):
    ids_BS = mode.from_tensor(batch.source.ids_BS)
    batch = batch._replace(
        source=batch.source._replace(ids_BS=ids_BS),
        tgt_in_BT=mode.from_tensor(batch.tgt_in_BT),
        tgt_out_BT=mode.from_tensor(batch.tgt_out_BT),
    )
    with mode, half_precision():
        loss = batch_loss(model, batch, label_smoothing=0.1, teacher_forcing_ratio=ratio)
        loss.loss_sum.backward()


@pytest.mark.parametrize(("name", "ratio"), WITHOUT_READS)
def test_a_step_reads_no_value(make_model, batch, name, ratio):
    mode = FakeTensorMode()
    with mode:
        model = make_model(name, dtype=torch.float32).train()
    fake_step(mode, model, batch, ratio)
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize(("name", "ratio"), [*FORCED, ("additive", 0.0), ("coverage", 0.0)])
def test_a_batch_rounded_up_has_the_same_loss_and_gradient(make_model, batch, name, ratio):
    model = make_model(name).eval()

    def step(batch):
        model.zero_grad()
        loss = batch_loss(model, batch, label_smoothing=0.1, teacher_forcing_ratio=ratio)
        loss.loss_sum.backward()
        return loss, gradients(model)

    torch.testing.assert_close(step(rounded_up(batch, rows=8, positions=16)), step(batch))
