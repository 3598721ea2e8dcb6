"""A training step never reads a value back from the GPU, which would stall it. `FakeTensorMode` has
shapes but no values, so that such a read fails."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from seq2seq_attn.data.batch import rounded_up
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.train.loss import batch_loss


def fake_step(mode, model, batch, ratio):
    def fake(tensor):
        return mode.from_tensor(tensor)

    names = ("tgt_in_BT", "tgt_out_BT")
    fields = {name: fake(getattr(batch, name)) for name in names}
    fake_batch = batch._replace(
        source=batch.source._replace(ids_BS=fake(batch.source.ids_BS)), **fields
    )
    with mode, torch.autocast("cpu", dtype=torch.bfloat16):
        batch_loss(
            model, fake_batch, label_smoothing=0.1, teacher_forcing_ratio=ratio
        ).loss_sum.backward()


@pytest.mark.parametrize(
    ("name", "ratio"),
    [
        *((name, 1.0) for name in packaged_variants("attention") if name != "hierarchical"),
        ("additive", 0.5),
    ],
)
def test_a_step_reads_no_value(make_model, batch, name, ratio):
    mode = FakeTensorMode()
    with mode:
        model = make_model(name, dtype=torch.float32).train()
    fake_step(mode, model, batch, ratio)
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "ratio"),
    [
        *((name, 1.0) for name in packaged_variants("attention")),
        ("additive", 0.0),
        ("coverage", 0.0),
    ],
)
def test_a_batch_rounded_up_has_the_same_loss_and_gradient(make_model, batch, name, ratio):
    model = make_model(name).eval()

    def step(batch):
        model.zero_grad()
        loss = batch_loss(model, batch, label_smoothing=0.1, teacher_forcing_ratio=ratio)
        loss.loss_sum.backward()
        # hard choices give their scores no gradient in evaluation mode
        return loss, {
            name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None
        }

    torch.testing.assert_close(step(rounded_up(batch, rows=8, positions=16)), step(batch))
