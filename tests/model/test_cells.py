"""Cells under autocast, where matrix products run in bf16."""

import pytest
import torch

from seq2seq_attn.model.variants import build_variant

SIZE, NUM_STEPS = 32, 60


@pytest.mark.parametrize(("name", "num_gates", "gate"), [("gru", 3, 1), ("lstm", 4, 1)])
def test_a_gate_near_1_still_moves_the_state(name, num_gates, gate):
    """sigmoid(7) = 0.99909 is 1 in bf16, with which the state would never change."""
    torch.manual_seed(0)
    cell = build_variant("cell", name, {}, input_sizes=[SIZE], hidden_size=SIZE)
    for parameter in cell.parameters():
        torch.nn.init.uniform_(parameter, -0.2, 0.2)
    with torch.no_grad():
        cell.input_bias_P.view(num_gates, SIZE)[gate] = 7.0
    inputs_TBI = torch.randn(NUM_STEPS, 4, SIZE)

    def last_hidden(is_bf16: bool) -> torch.Tensor:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_bf16):
            state = cell.start(torch.zeros(4, SIZE))
            for inputs_BI in inputs_TBI:
                state = cell.step(cell.project_inputs(inputs_BI), state)
        return cell.hidden(state)

    exact = last_hidden(False)
    assert (last_hidden(True) - exact).norm() < 0.02 * exact.norm()
