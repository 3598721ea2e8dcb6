"""The contract of recurrent cells, and base classes with the parameters that most cells share.

A variant is a file of this folder with one final class, whose constructor takes `input_sizes` and
`hidden_size`. A cell projects its inputs separately from its state, so that inputs known in advance
are projected for all steps at once. `Stack` combines several cells into one cell.

Shapes: B rows, T steps, I input size, H hidden size, G gates, P = G * H.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._pytree import tree_flatten, tree_unflatten

from seq2seq_attn.model.layers import wide


class State(NamedTuple):
    """The state of a cell that keeps only its hidden state."""

    hidden_BH: Tensor


class Cell(nn.Module, ABC):
    """One step of a recurrence. The state is a batch-first named tuple of tensors. Every cell keeps
    these rules:

    - `hidden(start(h))` is h: the decoder's first query is its initial state;
    - `project_inputs` treats each position by itself, so the inputs of all steps may be projected
      at once;
    - the rows of a state do not depend on each other, and keep the dtype of the first state under
      autocast;
    - an input may be of size 0.
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size

    @abstractmethod
    def project_inputs(self, *inputs: Tensor) -> Tensor:
        """Project the inputs, each [..., I], to pre-activations [..., P], input bias included."""

    def start(self, hidden_BH: Tensor) -> Any:
        """Return the state before the first step. A cell whose state holds more than the hidden
        state overrides this method."""
        return State(hidden_BH)

    @abstractmethod
    def step(self, inputs_BP: Tensor, state: Any) -> Any:
        """Return the next state, computed from projected inputs and the state, in the dtype of the
        state."""

    def hidden(self, state: Any) -> Tensor:
        """Return `hidden_BH`, the cell's output, which is a field of the state."""
        hidden_BH: Tensor = state.hidden_BH
        return hidden_BH


class InputCell(Cell):
    """A cell that has matrices for its inputs alone: its recurrence works element by element, as in
    the SSRU of Kim et al. 2019, section 3.1.

    Args:
        input_sizes: I of each input.
        num_gates: G, pre-activations for each hidden unit.
    """

    def __init__(self, input_sizes: Sequence[int], hidden_size: int, *, num_gates: int) -> None:
        super().__init__(hidden_size)
        # These are bare parameters because nn.Linear warns about inputs of size 0, such as the
        # context of the attention `initial`.
        self.input_weights = nn.ParameterList(
            torch.empty(num_gates * hidden_size, size) for size in input_sizes
        )
        self.input_bias_P = nn.Parameter(torch.zeros(num_gates * hidden_size))

    def project_inputs(self, *inputs: Tensor) -> Tensor:
        projected = functional.linear(inputs[0], self.input_weights[0], self.input_bias_P)
        for index in range(1, len(inputs)):
            projected = projected + functional.linear(inputs[index], self.input_weights[index])
        return projected


class GatedCell(InputCell):
    """A cell whose gates are sums of products with its inputs and with its hidden state. The
    constructor has the arguments of `InputCell`.

    With `norm_groups`, the projections of the inputs and of the hidden state have layer
    normalization (Ba, Kiros, Hinton 2016, section 3.1). Each entry of `norm_groups` is a number of
    gates that are normalized together; the entries sum up to the number of gates.

        LN(a) = gain * (a - mean(a)) / sqrt(var(a) + 1e-5) + bias
    """

    norm_groups: Sequence[int] = ()

    def __init__(self, input_sizes: Sequence[int], hidden_size: int, *, num_gates: int) -> None:
        super().__init__(input_sizes, hidden_size, num_gates=num_gates)
        self.recurrent_weight_PH = nn.Parameter(torch.empty(num_gates * hidden_size, hidden_size))
        self.recurrent_bias_P = nn.Parameter(torch.zeros(num_gates * hidden_size))
        if self.norm_groups:
            self.input_norm_P = nn.Parameter(torch.ones_like(self.input_bias_P))
            self.recurrent_norm_P = nn.Parameter(torch.ones_like(self.recurrent_bias_P))

    def project_inputs(self, *inputs: Tensor) -> Tensor:
        if not self.norm_groups:
            return super().project_inputs(*inputs)
        pairs = zip(inputs, self.input_weights, strict=True)
        projected = torch.stack([functional.linear(tensor, weight) for tensor, weight in pairs])
        return self._normalize(projected.sum(dim=0), self.input_norm_P, self.input_bias_P)

    def project_state(self, hidden_BH: Tensor) -> Tensor:
        """Project the previous hidden state to pre-activations, recurrent bias included."""
        if not self.norm_groups:
            return functional.linear(hidden_BH, self.recurrent_weight_PH, self.recurrent_bias_P)
        projected_BP = functional.linear(hidden_BH, self.recurrent_weight_PH)
        return self._normalize(projected_BP, self.recurrent_norm_P, self.recurrent_bias_P)

    def _normalize(self, projected: Tensor, gain_P: Tensor, bias_P: Tensor) -> Tensor:
        """Apply layer normalization to each group of gates. The result [..., P] is in float32 or
        wider."""
        sizes = [number * self.hidden_size for number in self.norm_groups]
        groups = torch.split(wide(projected), sizes, dim=-1)
        normalized = [functional.layer_norm(group, group.shape[-1:]) for group in groups]
        return torch.cat(normalized, dim=-1) * gain_P + bias_P


CellBuilder = Callable[..., Cell]
"""a function of `input_sizes` and `hidden_size` that builds cells of the variant in the
configuration"""


class StackState(NamedTuple):
    """The states of all layers, beginning with the first layer, and the output of the top layer."""

    layers: tuple[Any, ...]
    hidden_BH: Tensor


class Stack(Cell):
    """A stack of recurrent layers as one cell (Sutskever, Vinyals, Le 2014, section 3.4).

        h^1_t = cell_1(x_t, h^1_{t-1})      h^l_t = cell_l(h^{l-1}_t, h^l_{t-1})

    Every layer reads the output of the layer below, and the top layer's output is the hidden state
    of the stack. With residual connections, each layer but the first adds its input to its output:
    o^l_t = h^l_t + o^{l-1}_t (Wu et al. 2016, section 3.1, eq. 6). In training, dropout acts on
    o^{l-1}_t, also where it is added. Every layer starts from the same hidden state.
    """

    def __init__(self, layers: Sequence[Cell], *, dropout: float, is_residual: bool) -> None:
        super().__init__(layers[0].hidden_size)
        self.layers = nn.ModuleList(layers)
        self.dropout = nn.Dropout(dropout)
        self.is_residual = is_residual

    def project_inputs(self, *inputs: Tensor) -> Tensor:
        """Project the inputs of the first layer."""
        return self._cells[0].project_inputs(*inputs)

    def start(self, hidden_BH: Tensor) -> StackState:
        """Return a state in which every layer has the same hidden state."""
        return StackState(tuple(layer.start(hidden_BH) for layer in self._cells), hidden_BH)

    def step(self, inputs_BP: Tensor, state: StackState) -> StackState:
        cells = self._cells
        states = [cells[0].step(inputs_BP, state.layers[0])]
        output_BH = cells[0].hidden(states[0])
        for layer, layer_state in zip(cells[1:], state.layers[1:], strict=True):
            input_BH = self.dropout(output_BH)
            states.append(layer.step(layer.project_inputs(input_BH), layer_state))
            output_BH = layer.hidden(states[-1])
            if self.is_residual:
                output_BH = output_BH + input_BH
        return StackState(tuple(states), output_BH)

    @property
    def _cells(self) -> list[Cell]:
        return [cast(Cell, layer) for layer in self.layers]


def run_cell(cell: Cell, gates_TBP: Tensor, hidden_BH: Tensor) -> Tensor:
    """Run a cell over all steps, from the projected inputs of all steps and the first hidden state.
    Return the hidden states `hidden_TBH` after each step."""
    state = cell.start(hidden_BH)
    if torch.compiler.is_exporting():
        return _export_loop(cell, gates_TBP, state)
    hiddens = []
    for gates_BP in gates_TBP:
        state = cell.step(gates_BP, state)
        hiddens.append(cell.hidden(state))
    return torch.stack(hiddens)


def _export_loop(cell: Cell, gates_TBP: Tensor, state: Any) -> Tensor:
    """Run the loop of `run_cell` as one operation of the exported graph, because a loop in Python
    would fix the number of steps."""
    from torch._higher_order_ops.scan import scan

    tensors, structure = tree_flatten(state)  # `scan` takes the state as a list of tensors

    def step(tensors: list[Tensor], gates_BP: Tensor) -> tuple[list[Tensor], Tensor]:
        state = cell.step(gates_BP, tree_unflatten(tensors, structure))
        return tree_flatten(state)[0], cell.hidden(state).clone()

    hidden_TBH: Tensor = scan(step, tensors, gates_TBP)[1]
    return hidden_TBH


def first_layer(state: Any) -> Any:
    """Return the first layer's state from the state of a cell, which may be a `Stack`."""
    return state.layers[0] if isinstance(state, StackState) else state


def with_first_layer(state: Any, first: Any) -> Any:
    """Return the state of a cell, which may be a `Stack`, with the first layer's state replaced by
    `first`."""
    if isinstance(state, StackState):
        return state._replace(layers=(first, *state.layers[1:]))
    return first
