"""One step of a gated recurrent unit and its gradient, written by hand, for the fast paths.

    r = sigmoid(x_r + U_r h + d_r)      z = sigmoid(x_z + U_z h + d_z)
    n = tanh(x_n + r * (U_n h + d_n))   h' = (1 - z) * n + z * h

(Cho et al. 2014, section 2.3, with the reset gate applied after the product, as in cuDNN and
PyTorch's `nn.GRU`.) The x's are projections of the inputs, which the caller computes for all steps
at once.

Shapes: N rows, H hidden size, P = 3 * H: the gates r, z, n side by side.
"""

import torch
from torch import Tensor


def compute_dtype(tensor: Tensor) -> torch.dtype:
    """The dtype of matrix products: autocast's if it is on and the tensor is not float64, else the
    tensor's."""
    device_type = tensor.device.type
    if torch.is_autocast_enabled(device_type) and tensor.dtype != torch.float64:
        return torch.get_autocast_dtype(device_type)
    return tensor.dtype


def column_sums(rows: Tensor) -> Tensor:
    """Sums [..., P] of [..., N, P] over N, as a product: in bfloat16, `sum` would first copy the
    rows to float32."""
    return (rows.new_ones(1, rows.shape[-2]) @ rows).squeeze(-2)


def cell_forward(
    gates: Tensor, recurrent: Tensor, hidden: Tensor, out: Tensor | None = None
) -> Tensor:
    """The next state, in `out` if given. `gates` [..., P] holds the projected input and becomes r,
    z, n; `recurrent` begins with the projected state, [..., P]; `hidden` [..., H] is the state."""
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
    """Gradients of one step: fills those of the projected input and state, returns what reaches the
    previous state directly (without the recurrent product). `recurrent_new` is U_n h + d_n."""
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
    """tanh in place. On CPUs as 2 sigmoid(2 x) - 1, whose four passes take a third of the time of a
    tanh."""
    if inputs.device.type != "cpu":
        return inputs.tanh_()
    return inputs.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)
