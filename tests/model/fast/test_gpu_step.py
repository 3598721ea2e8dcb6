"""What a GPU runs of a training step, on the CPU: the same function, and never a question whose answer would have to be
waited for (`FakeTensorMode` has shapes and no values, so that such a question fails)."""

import pytest
import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode

from seq2seq_attn.data.batch import rounded_up
from seq2seq_attn.model.fast import unroll
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.train.loss import batch_loss


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    def use():
        monkeypatch.setattr(
            unroll, "_feeding_back", lambda keep_TB: [torch.arange(keep_TB.shape[1])] * len(keep_TB[1:])
        )
        monkeypatch.setattr(unroll, "_memory_for_logits", lambda num_rows, weight: None)

    return use


def fake_step(mode, model, batch, ratio):
    def fake(tensor):
        return mode.from_tensor(tensor)

    names = ("tgt_in_BT", "tgt_out_BT", "positions_N", "targets_N")
    fields = {name: fake(getattr(batch, name)) for name in names}
    fake_batch = batch._replace(source=batch.source._replace(ids_BS=fake(batch.source.ids_BS)), **fields)
    with mode, torch.autocast("cpu", dtype=torch.bfloat16):
        batch_loss(model, fake_batch, label_smoothing=0.1, teacher_forcing_ratio=ratio).loss_sum.backward()


@pytest.mark.parametrize("ratio", [1.0, 0.5])
@pytest.mark.parametrize("name", packaged_variants("attention"))
def test_a_step_waits_for_no_value(make_model, batch, as_on_a_gpu, name, ratio):
    as_on_a_gpu()
    mode = FakeTensorMode()
    with mode:
        model = make_model(name, dtype=torch.float32).train()
    if not model.decoder.attention.is_capturable:
        pytest.skip("reads a size from the device")
    fake_step(mode, model, batch, ratio)
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_what_a_cpu_runs_does_wait(make_model, batch):
    mode = FakeTensorMode()
    with mode:
        model = make_model("additive", dtype=torch.float32).train()
    with pytest.raises(DynamicOutputShapeException):
        fake_step(mode, model, batch, 0.5)


@pytest.mark.parametrize("name", packaged_variants("attention"))
def test_reading_every_row_feeds_back_the_same(make_model, batch, as_on_a_gpu, name):
    model = make_model(name).train()

    def loss():
        torch.manual_seed(3)
        return batch_loss(model, batch, teacher_forcing_ratio=0.5).loss_sum

    expected = loss()
    as_on_a_gpu()
    torch.testing.assert_close(loss(), expected)


@pytest.mark.parametrize("ratio", [1.0, 0.0])
@pytest.mark.parametrize("name", packaged_variants("attention"))
def test_a_batch_rounded_up_has_the_same_loss_and_gradient(make_model, batch, monkeypatch, name, ratio):
    monkeypatch.setattr(unroll, "ROW_MULTIPLE", 1)
    model = make_model(name).eval()

    def step(batch):
        model.zero_grad()
        loss = batch_loss(model, batch, label_smoothing=0.1, teacher_forcing_ratio=ratio)
        loss.loss_sum.backward()
        # hard choices give their scores no gradient in evaluation mode
        return loss, {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    torch.testing.assert_close(step(rounded_up(batch, rows=8, positions=16)), step(batch))
