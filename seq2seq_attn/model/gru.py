"""A gated recurrent unit over all time steps, with a backward pass written by hand.

    r = sigmoid(x_r + U_r h + d_r)      z = sigmoid(x_z + U_z h + d_z)
    n = tanh(x_n + r * (U_n h + d_n))   h' = (1 - z) * n + z * h

(Cho et al. 2014, section 2.3, with the reset gate applied after the product, as cuDNN and PyTorch's `nn.GRU` do.) The
x's are projections of the inputs, made for all steps at once by the caller. Autograd over such a loop would do a small
product and an add per step for each weight gradient; here every weight gradient is one product over all steps.

Shapes: T steps, D directions, B sentence pairs, H hidden size, P = 3 * H: the gates r, z, n side by side.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def compute_dtype(tensor: Tensor) -> torch.dtype:
    """The dtype of matrix products: autocast's where it is on and the tensor is float32, else the tensor's own."""
    device_type = tensor.device.type
    if torch.is_autocast_enabled(device_type) and tensor.dtype != torch.float64:
        return torch.get_autocast_dtype(device_type)
    return tensor.dtype


def cell_forward(inputs: Tensor, recurrent: Tensor, hidden: Tensor, gates: Tensor) -> Tensor:
    """One step from the projected input and state [..., P] and the state [..., H]; writes r, z, n into `gates`."""
    size = hidden.shape[-1]
    torch.add(inputs[..., : 2 * size], recurrent[..., : 2 * size], out=gates[..., : 2 * size]).sigmoid_()
    reset, update, new = gates[..., :size], gates[..., size : 2 * size], gates[..., 2 * size :]
    torch.addcmul(inputs[..., 2 * size :].to(gates.dtype), reset, recurrent[..., 2 * size :], out=new).tanh_()
    return torch.lerp(new, hidden, update)


def cell_backward(
    grad_hidden: Tensor,
    hidden: Tensor,
    gates: Tensor,
    recurrent_new: Tensor,
    grad_inputs: Tensor,
    grad_recurrent: Tensor,
) -> Tensor:
    """Gradients of one step: fills those of the projected input and state, returns what reaches the previous state
    directly (without the recurrent product). `recurrent_new` is U_n h + d_n."""
    size = hidden.shape[-1]
    reset, update, new = gates[..., :size], gates[..., size : 2 * size], gates[..., 2 * size :]
    through: Tensor = grad_hidden * update
    pre_new = torch.ops.aten.tanh_backward(grad_hidden - through, new)
    pre_reset = torch.ops.aten.sigmoid_backward(pre_new * recurrent_new, reset)
    pre_update = torch.ops.aten.sigmoid_backward((hidden - new).mul_(grad_hidden), update)
    for target in (grad_inputs, grad_recurrent):
        target[..., :size] = pre_reset
        target[..., size : 2 * size] = pre_update
    grad_inputs[..., 2 * size :] = pre_new
    grad_recurrent[..., 2 * size :] = pre_new.mul_(reset)
    return through


def gru_cell(inputs: Tensor, recurrent: Tensor, hidden: Tensor) -> Tensor:
    """One step as autograd sees it: the reference for `cell_forward`, and what search uses."""
    size = hidden.shape[-1]
    both = torch.sigmoid(inputs[..., : 2 * size] + recurrent[..., : 2 * size])
    reset, update = both[..., :size], both[..., size:]
    new = torch.tanh(inputs[..., 2 * size :] + reset * recurrent[..., 2 * size :])
    return torch.lerp(new.to(hidden.dtype), hidden, update.to(hidden.dtype))


class _Unroll(torch.autograd.Function):
    """states_TDBH of inputs_TDBP, hidden_DBH, weight_DPH, bias_DP."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        low = compute_dtype(weight)
        num_steps, (num_directions, num_rows, size) = inputs.shape[0], hidden.shape
        weight_DHP = weight.to(low).transpose(1, 2).contiguous()
        bias_D1P = bias.to(low).unsqueeze(1)
        gates_TDBP = hidden.new_empty(num_steps, num_directions, num_rows, 3 * size)
        new_TDBH = hidden.new_empty(num_steps, num_directions, num_rows, size)
        states = hidden.new_empty(num_steps + 1, num_directions, num_rows, size)
        states[0] = hidden
        with torch.autocast(inputs.device.type, enabled=False):
            for t in range(num_steps):
                recurrent = torch.baddbmm(bias_D1P, states[t].to(low), weight_DHP).to(hidden.dtype)
                new_TDBH[t] = recurrent[..., 2 * size :]
                states[t + 1] = cell_forward(inputs[t], recurrent, states[t], gates_TDBP[t])
        ctx.save_for_backward(states, gates_TDBP, new_TDBH, weight)
        ctx.low, ctx.inputs_dtype = low, inputs.dtype
        return states[1:]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        (grad_states,) = grads
        states, gates_TDBP, new_TDBH, weight = ctx.saved_tensors
        low = ctx.low
        weight_low = weight.to(low)
        grad_inputs = torch.empty(gates_TDBP.shape, dtype=ctx.inputs_dtype, device=states.device)
        grad_recurrent = torch.empty(gates_TDBP.shape, dtype=low, device=states.device)
        carry = torch.zeros_like(states[0])
        for t in reversed(range(len(gates_TDBP))):
            through = cell_backward(
                carry + grad_states[t], states[t], gates_TDBP[t], new_TDBH[t], grad_inputs[t], grad_recurrent[t]
            )
            carry = through.add_(torch.bmm(grad_recurrent[t], weight_low))
        all_steps = grad_recurrent.transpose(0, 1).flatten(1, 2)
        grad_weight = torch.bmm(all_steps.transpose(1, 2), states[:-1].to(low).transpose(0, 1).flatten(1, 2))
        grad_bias = all_steps.sum(dim=1, dtype=weight.dtype)
        return grad_inputs, carry, grad_weight.to(weight.dtype), grad_bias


def gru_unroll(inputs_TDBP: Tensor, hidden_DBH: Tensor, weight_DPH: Tensor, bias_DP: Tensor) -> Tensor:
    """All states of D independent recurrences, `states_TDBH` (state t is the one after step t).

    The state is kept in the dtype of `hidden_DBH`; matrix products run in autocast's dtype where autocast is on.
    """
    states: Tensor = _Unroll.apply(inputs_TDBP, hidden_DBH, weight_DPH, bias_DP)  # type: ignore[no-untyped-call]
    return states
