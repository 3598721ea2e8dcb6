"""The conditional decoder: two cells with the attention between them (Sennrich et al. 2017, "Nematus", section 2).

    s'_j = cell_1(E y_{j-1}, s_{j-1})      c_j = attend(s'_j)      s_j = cell_2(c_j, s'_j)
    features_j = f([s_j ; c_j ; E y_{j-1}])

f is as in `bahdanau`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attention
from seq2seq_attn.model.cell.base import Cell, CellBuilder
from seq2seq_attn.model.decoder.base import Bridge, Decoder, Memory, StepOutput
from seq2seq_attn.model.dropout import Dropout
from seq2seq_attn.model.encoder.base import Encoded


class State(NamedTuple):
    """The states of the second cell and of the attention."""

    cell: Any
    attention: Any


class Conditional(Decoder):
    """Query s'_j, which has read the previous token but not the source."""

    def __init__(
        self,
        first_cell: Cell,
        second_cell: Cell,
        attention: Attention,
        *,
        embedding_size: int,
        memory_size: int,
        readout_size: int | None,
        dropout: float,
    ) -> None:
        joined_size = first_cell.hidden_size + attention.context_size + embedding_size
        super().__init__(attention, readout_size or joined_size)
        self.bridge = Bridge(memory_size, first_cell.hidden_size)
        self.first_cell = first_cell
        self.second_cell = second_cell
        self.readout = None if readout_size is None else nn.Linear(joined_size, readout_size)
        self.dropout = Dropout(dropout)

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Memory, State]:
        """See `Decoder.prepare`."""
        memory, attention_state = self.attention.prepare(encoded, source)
        return Memory(memory, source.ids_BS), State(self.first_cell.start(self.bridge(encoded)), attention_state)

    def step(self, embedded_BE: Tensor, state: State, memory: Memory) -> StepOutput:
        """Read the token, attend, read the context."""
        between = self.first_cell.step(self.first_cell.project_inputs(embedded_BE), state.cell)
        attended = self.attention.step(self.first_cell.hidden(between), memory.attention, state.attention)
        context_BM = attended.context_BM
        cell_state = self.second_cell.step(self.second_cell.project_inputs(context_BM), between)
        hidden_BH = self.second_cell.hidden(cell_state)
        joined = torch.cat([hidden_BH, context_BM.to(hidden_BH.dtype), embedded_BE.to(hidden_BH.dtype)], dim=-1)
        features_BF = self.dropout(joined if self.readout is None else torch.tanh(self.readout(joined)))
        next_state = State(cell_state, attended.state)
        return StepOutput(features_BF, hidden_BH, context_BM, embedded_BE, attended.weights_BS, next_state)


def build(
    *,
    build_cell: CellBuilder,
    attention: Attention,
    embedding_size: int,
    hidden_size: int,
    memory_size: int,
    readout_size: int | None,
    dropout: float,
) -> Conditional:
    """No options."""
    return Conditional(
        build_cell(input_sizes=[embedding_size], hidden_size=hidden_size),
        build_cell(input_sizes=[attention.context_size], hidden_size=hidden_size),
        attention,
        embedding_size=embedding_size,
        memory_size=memory_size,
        readout_size=readout_size,
        dropout=dropout,
    )
