"""Dropout's factors: how many are dropped, what the others are, and when."""

import pytest
import torch

from seq2seq_attn.model.dropout import Dropout, dropout_mask

CPU = torch.device("cpu")


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_as_many_are_dropped_as_asked_and_the_mean_stays(rate):
    torch.manual_seed(0)
    factors = dropout_mask((500, 401), rate, CPU)
    assert factors.unique().tolist() == pytest.approx([0.0, 1.0 / (1.0 - rate)], rel=1e-4)
    assert (factors == 0.0).float().mean().item() == pytest.approx(rate, abs=0.005)
    assert factors.mean().item() == pytest.approx(1.0, abs=0.03)


def test_neighbours_are_dropped_independently():
    torch.manual_seed(0)
    dropped = (dropout_mask((400_001,), 0.3, CPU) == 0.0).float()
    for distance in (1, 2, 3, 4):  # four numbers come from one draw of 64 bits
        both = (dropped[:-distance] * dropped[distance:]).mean().item()
        assert both == pytest.approx(0.09, abs=0.003)


def test_the_layer_drops_in_training_only_and_keeps_the_dtype():
    torch.manual_seed(0)
    layer, inputs = Dropout(0.5), torch.ones(40, 50, dtype=torch.float64, requires_grad=True)
    outputs = layer(inputs)
    assert outputs.dtype == torch.float64
    assert set(outputs.unique().tolist()) == {0.0, 2.0}
    outputs.sum().backward()
    torch.testing.assert_close(inputs.grad, outputs)
    assert layer.eval()(inputs) is inputs
    assert Dropout(0.0).train()(inputs) is inputs
