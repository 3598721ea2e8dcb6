"""A stack of recurrent layers as one cell (Sutskever, Vinyals, Le 2014, section 3.4).

    h^1_t = cell_1(x_t, h^1_{t-1})      h^l_t = cell_l(h^{l-1}_t, h^l_{t-1})

Every layer reads the output of the layer below, and the top layer's output is the hidden state that others see. With
residual connections, each layer but the first adds its input to its output: o^l_t = h^l_t + o^{l-1}_t (Wu et al. 2016,
section 3.1, eq. 6). In training, dropout acts on o^{l-1}_t, in the sum too. Every layer starts from the same hidden
state.

Shapes: B rows, H hidden size, P pre-activations of the first layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from torch import Tensor, nn

from seq2seq_attn.model.cell.base import Cell, CellBuilder
from seq2seq_attn.model.dropout import Dropout


class State(NamedTuple):
    """The states of all layers, the first layer's first, and the output of the top layer."""

    layers: tuple[Any, ...]
    hidden_BH: Tensor


class Stack(Cell):
    """Cells of one hidden size on top of each other, with dropout between them."""

    def __init__(self, layers: Sequence[Cell], *, dropout: float, is_residual: bool) -> None:
        super().__init__(layers[0].hidden_size)
        self.layers = nn.ModuleList(layers)
        self.dropout = Dropout(dropout)
        self.is_residual = is_residual

    def project_inputs(self, *inputs: Tensor) -> Tensor:
        """Project the inputs of the first layer."""
        return self._cells[0].project_inputs(*inputs)

    def start(self, hidden_BH: Tensor) -> State:
        """The same hidden state for every layer."""
        return State(tuple(layer.start(hidden_BH) for layer in self._cells), hidden_BH)

    def step(self, inputs_BP: Tensor, state: State) -> State:
        """The formula above."""
        first, *others = self._cells
        states = [first.step(inputs_BP, state.layers[0])]
        output_BH = first.hidden(states[0])
        for layer, layer_state in zip(others, state.layers[1:], strict=True):
            input_BH = self.dropout(output_BH)
            states.append(layer.step(layer.project_inputs(input_BH), layer_state))
            output_BH = layer.hidden(states[-1])
            if self.is_residual:
                output_BH = output_BH + input_BH
        return State(tuple(states), output_BH)

    def hidden(self, state: State) -> Tensor:
        """The output of the top layer."""
        return state.hidden_BH

    @property
    def _cells(self) -> list[Cell]:
        return [cast(Cell, layer) for layer in self.layers]


def build_stack(
    build_cell: CellBuilder,
    *,
    input_sizes: Sequence[int],
    hidden_size: int,
    num_layers: int,
    dropout: float,
    is_residual: bool,
) -> Cell:
    """`num_layers` layers as one cell; a single layer is the cell itself."""
    sizes = [input_sizes, *[[hidden_size]] * (num_layers - 1)]
    layers = [build_cell(input_sizes=layer_sizes, hidden_size=hidden_size) for layer_sizes in sizes]
    return layers[0] if num_layers == 1 else Stack(layers, dropout=dropout, is_residual=is_residual)


def first_layer(state: Any) -> Any:
    """The first layer's state in the state of a cell that `build_stack` made."""
    return state.layers[0] if isinstance(state, State) else state


def with_first_layer(state: Any, first: Any) -> Any:
    """The same state with another one for its first layer."""
    return state._replace(layers=(first, *state.layers[1:])) if isinstance(state, State) else first
