"""One step of a gated recurrent unit and its gradient, written by hand, for the fast paths.

    r = sigmoid(x_r + U_r h + d_r)      z = sigmoid(x_z + U_z h + d_z)
    n = tanh(x_n + r * (U_n h + d_n))   h' = (1 - z) * n + z * h

(Cho et al. 2014, section 2.3, with the reset gate applied after the product, as in cuDNN and
PyTorch's `nn.GRU`.) x_r, x_z and x_n are projections of the inputs, which the caller computes for
all steps at once.

Shapes: N rows, H hidden size, P = 3 * H: the gates r, z, n side by side.
"""

import torch
from torch import Tensor


def compute_dtype(tensor: Tensor) -> torch.dtype:
    """Return the dtype of matrix products: autocast's dtype if autocast is on and the tensor is not
    float64, otherwise the dtype of the tensor."""
    device_type = tensor.device.type
    if torch.is_autocast_enabled(device_type) and tensor.dtype != torch.float64:
        return torch.get_autocast_dtype(device_type)
    return tensor.dtype


def column_sums(rows: Tensor) -> Tensor:
    """Return the sums [..., P] of rows [..., N, P] over N. They are computed as a product, because
    in bfloat16 `sum` would first copy the rows to float32."""
    return (rows.new_ones(1, rows.shape[-2]) @ rows).squeeze(-2)


def cell_forward(
    gates: Tensor, recurrent: Tensor, hidden: Tensor, out: Tensor | None = None
) -> Tensor:
    """Compute the next state, and write it to `out` if this tensor is given.

    Args:
        gates: the projected input, [..., P]. It is overwritten by r, z and n.
        recurrent: a tensor that begins with the projected state, [..., P].
        hidden: the state, [..., H].
    """
    size = hidden.shape[-1]
    reset, update, new = gates.chunk(3, dim=-1)
    gates[..., : 2 * size].add_(recurrent[..., : 2 * size]).sigmoid_()
    tanh_(new.addcmul_(reset, recurrent[..., 2 * size : 3 * size]))
    return torch.lerp(new, hidden, update, out=out)


def cell_backward(
    grad_hidden: Tensor,
    hidden: Tensor,
    gates: Tensor,
    recurrent_new: Tensor,
    grad_gates: Tensor,
    grad_recurrent: Tensor,
) -> Tensor:
    """Compute the gradients of one step. The gradients of the projected input and of the projected
    state are written to `grad_gates` and `grad_recurrent`. Return the gradient that reaches the
    previous state directly, without the recurrent product. `recurrent_new` is U_n h + d_n."""
    size = hidden.shape[-1]
    reset, update, new = gates.chunk(3, dim=-1)
    grad_reset, grad_update, grad_new = grad_gates.chunk(3, dim=-1)
    through: Tensor = grad_hidden * update
    sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
    difference = (hidden - new).mul_(grad_hidden)
    sigmoid_backward(difference, update, grad_input=grad_update)
    torch.ops.aten.tanh_backward.grad_input(grad_hidden.sub_(through), new, grad_input=grad_new)
    sigmoid_backward(grad_new * recurrent_new, reset, grad_input=grad_reset)
    grad_recurrent[..., : 2 * size] = grad_gates[..., : 2 * size]
    torch.mul(grad_new, reset, out=grad_recurrent[..., 2 * size : 3 * size])
    return through


def tanh_(inputs: Tensor) -> Tensor:
    """Compute tanh in place. On CPUs it is computed as 2 sigmoid(2 x) - 1, whose four passes take a
    third of the time of `tanh_`."""
    if inputs.device.type != "cpu":
        return inputs.tanh_()
    return inputs.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)
