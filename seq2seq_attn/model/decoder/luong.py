"""The decoder that queries the attention with its current state (Luong, Pham, Manning 2015, sections 3 and 3.3).

    h_t = cell([E y_{t-1} ; h~_{t-1}], h_{t-1})      c_t = attend(h_t)      h~_t = tanh(W_c [c_t ; h_t])

h~_t is the paper's attentional state, from which the next token is predicted. Input feeding hands h~_{t-1}
to the next step (section 3.3); without it the cell sees the embedding alone. With several layers (`Stack`)
h_t is the state of the top layer, as in the paper; the first layer reads embedding and h~_{t-1}.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import AttentionBuilder
from seq2seq_attn.model.cell.base import CellBuilder, build_stack
from seq2seq_attn.model.decoder.base import Bridge, Decoder, Memory, StepOutput
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import Dropout


class State(NamedTuple):
    """The states of the cell and of the attention, and the input-feeding vector."""

    cell: Any
    attention: Any
    attentional_BF: Tensor
    """h~_{t-1}, 0 before the first step; of size 0 without input feeding"""


class Luong(Decoder):
    """Query h_t, one cell, an attentional state of `readout_size`, or of the hidden state's size where that is null.
    `residual`: each layer but the first adds its input to its output."""

    def __init__(
        self,
        *,
        build_cell: CellBuilder,
        build_attention: AttentionBuilder,
        embedding_size: int,
        hidden_size: int,
        memory_size: int,
        readout_size: int | None,
        num_layers: int,
        dropout: float,
        input_feeding: bool = True,
        residual: bool = False,
    ) -> None:
        attention = build_attention(query_size=hidden_size)
        size = readout_size or hidden_size
        num_fed = size if input_feeding else 0
        cell = build_stack(
            build_cell, [embedding_size, num_fed], hidden_size, num_layers, dropout=dropout, is_residual=residual
        )
        super().__init__(attention, size)
        self.bridge = Bridge(memory_size, cell.hidden_size)
        self.cell = cell
        self.attentional = nn.Linear(attention.context_size + cell.hidden_size, size, bias=False)
        self.dropout = Dropout(dropout)
        self.num_fed = num_fed

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Memory, State]:
        memory, attention_state = self.attention.prepare(encoded, source)
        hidden_BH = self.bridge(encoded)
        fed_BF = hidden_BH.new_zeros(hidden_BH.shape[0], self.num_fed)
        return Memory.of(memory, source), State(self.cell.start(hidden_BH), attention_state, fed_BF)

    def step(self, embedded_BE: Tensor, state: State, memory: Memory) -> StepOutput:
        """Update the state, then attend with it."""
        fed_BF = state.attentional_BF
        cell_state = self.cell.step(self.cell.project_inputs(embedded_BE, fed_BF), state.cell)
        hidden_BH = self.cell.hidden(cell_state)
        attended = self.attention.step(hidden_BH, memory.attention, state.attention)
        attentional_BF = self.readout(hidden_BH, attended.context_BM, embedded_BE)
        next_state = State(cell_state, attended.state, attentional_BF[:, : self.num_fed].to(fed_BF.dtype))
        return StepOutput.of(attentional_BF, hidden_BH, embedded_BE, attended, next_state)

    def readout(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """h~_t [..., F]. It does not see the embedding."""
        joined = torch.cat([context.to(hidden.dtype), hidden], dim=-1)
        attentional: Tensor = self.dropout(torch.tanh(self.attentional(joined)))
        return attentional
