"""A gated recurrent unit over all time steps, with a hand-written backward pass.

    r = sigmoid(x_r + U_r h + d_r)      z = sigmoid(x_z + U_z h + d_z)
    n = tanh(x_n + r * (U_n h + d_n))   h' = (1 - z) * n + z * h

(Cho et al. 2014, section 2.3, with the reset gate applied after the product, as in cuDNN and
PyTorch's `nn.GRU`.) The x's are projections of the inputs, which the caller makes for all steps at
once. Autograd over the loop would make a small product and an add per step for each weight
gradient; here every weight gradient is one product over all steps.

Shapes: T steps, D directions, B sentence pairs, H hidden size, P = 3 * H: the gates r, z, n side by
side.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seq2seq_attn.model.cell.base import Cell
from seq2seq_attn.model.cell.gru import GRU
from seq2seq_attn.model.speed import offer


def compute_dtype(tensor: Tensor) -> torch.dtype:
    """The dtype of matrix products: autocast's if it is on and the tensor is not float64, else the
    tensor's."""
    device_type = tensor.device.type
    if torch.is_autocast_enabled(device_type) and tensor.dtype != torch.float64:
        return torch.get_autocast_dtype(device_type)
    return tensor.dtype


def low_copy(states: Tensor, low: torch.dtype) -> Tensor:
    """A buffer for the states in the dtype of matrix products: the states themselves if they have
    that dtype."""
    return states if states.dtype == low else torch.empty_like(states, dtype=low)


def column_sums(rows: Tensor) -> Tensor:
    """Sums [..., P] of [..., N, P] over N, as a product: in bfloat16, `sum` would first copy the
    rows to float32."""
    return (rows.new_ones(1, rows.shape[-2]) @ rows).squeeze(-2)


def cell_forward(
    gates: Tensor, recurrent: Tensor, hidden: Tensor, out: Tensor | None = None
) -> Tensor:
    """The next state, in `out` if given. `gates` [..., P] holds the projected input and becomes r,
    z, n; `recurrent` [..., P] is the projected state, `hidden` [..., H] the state."""
    size = hidden.shape[-1]
    reset, update, new = gates[..., :size], gates[..., size : 2 * size], gates[..., 2 * size :]
    gates[..., : 2 * size].add_(recurrent[..., : 2 * size]).sigmoid_()
    tanh_(new.addcmul_(reset, recurrent[..., 2 * size :]))
    return torch.lerp(new, hidden, update, out=out)


def cell_backward(
    grad_hidden: Tensor,
    hidden: Tensor,
    gates: Tensor,
    recurrent_new: Tensor,
    grad_gates: Tensor,
    grad_recurrent: Tensor,
) -> Tensor:
    """Gradients of one step: fills those of the projected input and state, returns what reaches the
    previous state directly (without the recurrent product). `recurrent_new` is U_n h + d_n."""
    size = hidden.shape[-1]
    reset, update, new = gates[..., :size], gates[..., size : 2 * size], gates[..., 2 * size :]
    grad_reset, grad_update = grad_gates[..., :size], grad_gates[..., size : 2 * size]
    grad_new = grad_gates[..., 2 * size :]
    through: Tensor = grad_hidden * update
    torch.ops.aten.sigmoid_backward.grad_input(
        (hidden - new).mul_(grad_hidden), update, grad_input=grad_update
    )
    torch.ops.aten.tanh_backward.grad_input(grad_hidden.sub_(through), new, grad_input=grad_new)
    torch.ops.aten.sigmoid_backward.grad_input(
        grad_new * recurrent_new, reset, grad_input=grad_reset
    )
    grad_recurrent[..., : 2 * size] = grad_gates[..., : 2 * size]
    torch.mul(grad_new, reset, out=grad_recurrent[..., 2 * size :])
    return through


def tanh_(inputs: Tensor) -> Tensor:
    """tanh in place. On CPUs as 2 sigmoid(2 x) - 1, whose four passes take a third of the time of a
    tanh."""
    if inputs.device.type != "cpu":
        return inputs.tanh_()
    return inputs.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)


class _Unroll(torch.autograd.Function):
    """states_TDBH of inputs_TDBP, hidden_DBH, weight_DPH, bias_DP."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        low = compute_dtype(weight)
        num_steps, (num_directions, num_rows, size) = inputs.shape[0], hidden.shape
        weight_DHP = weight.to(low).transpose(1, 2).contiguous()
        bias_D1P = bias.to(low).unsqueeze(1)
        gates_TDBP = inputs.to(hidden.dtype, copy=True)
        recurrent_TDBP = torch.empty(gates_TDBP.shape, dtype=low, device=hidden.device)
        states = hidden.new_empty(num_steps + 1, num_directions, num_rows, size)
        states_low = low_copy(states, low)
        states[0] = hidden
        with torch.autocast(inputs.device.type, enabled=False):
            for t in range(num_steps):
                if states_low is not states:
                    states_low[t] = states[t]
                torch.baddbmm(bias_D1P, states_low[t], weight_DHP, out=recurrent_TDBP[t])
                cell_forward(
                    gates_TDBP[t], recurrent_TDBP[t].to(hidden.dtype), states[t], states[t + 1]
                )
        ctx.save_for_backward(states, states_low, gates_TDBP, recurrent_TDBP, weight)
        ctx.low, ctx.inputs_dtype = low, inputs.dtype
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        (grad_states,) = grads
        states, states_low, gates_TDBP, recurrent_TDBP, weight = ctx.saved_tensors
        low, size = ctx.low, states.shape[-1]
        weight_low = weight.to(low)
        grad_inputs = torch.empty(gates_TDBP.shape, dtype=ctx.inputs_dtype, device=states.device)
        grad_recurrent = torch.empty(gates_TDBP.shape, dtype=low, device=states.device)
        new_TDBH = recurrent_TDBP[..., 2 * size :].to(states.dtype)
        grad_gates = torch.empty_like(gates_TDBP[0])
        carry = torch.zeros_like(states[0])
        for t in reversed(range(len(gates_TDBP))):
            carry = cell_backward(
                carry.add_(grad_states[t]),
                states[t],
                gates_TDBP[t],
                new_TDBH[t],
                grad_gates,
                grad_recurrent[t],
            )
            grad_inputs[t] = grad_gates
            carry += torch.bmm(grad_recurrent[t], weight_low)
        all_steps = grad_recurrent.transpose(0, 1).flatten(1, 2)
        grad_weight = torch.bmm(
            all_steps.transpose(1, 2), states_low[:-1].transpose(0, 1).flatten(1, 2)
        )
        grad_bias = column_sums(all_steps).to(weight.dtype)
        return grad_inputs, carry, grad_weight.to(weight.dtype), grad_bias


def gru_unroll(
    inputs_TDBP: Tensor, hidden_DBH: Tensor, weight_DPH: Tensor, bias_DP: Tensor
) -> Tensor:
    """All states of D independent recurrences, `states_TDBH` (state t is the one after step t).

    The state is kept in the dtype of `hidden_DBH`; matrix products run in autocast's dtype where
    autocast is on.
    """
    states: Tensor = _Unroll.apply(inputs_TDBP, hidden_DBH, weight_DPH, bias_DP)  # type: ignore[no-untyped-call]
    return states


@offer("recurrence")
def offer_recurrence(cells: Sequence[Cell]) -> Callable[[Sequence[Tensor]], list[Tensor]] | None:
    """Offer the batched recurrence for GRUs of equal hidden size."""
    if (
        not all(type(cell) is GRU for cell in cells)
        or len({cell.hidden_size for cell in cells}) > 1
    ):
        return None
    grus = cast(Sequence[GRU], cells)
    return lambda gates: _run(grus, gates)


def _run(cells: Sequence[GRU], gates: Sequence[Tensor]) -> list[Tensor]:
    weight_DPH = torch.stack([cell.recurrent_weight_PH for cell in cells])
    bias_DP = torch.stack([cell.recurrent_bias_P for cell in cells])
    gates_SDBP = torch.stack(list(gates), dim=1)
    hidden_DBH = weight_DPH.new_zeros(len(cells), gates_SDBP.shape[2], weight_DPH.shape[-1])
    return list(gru_unroll(gates_SDBP, hidden_DBH, weight_DPH, bias_DP).unbind(1))
