"""The decoder that asks the attention with its previous state (Bahdanau, Cho, Bengio 2015, section 3.1 and
appendix A.2.2).

    c_i = attend(s_{i-1})      s_i = cell([E y_{i-1} ; c_i], s_{i-1})      features_i = f([s_i ; c_i ; E y_{i-1}])

The features see context and embedding beside the state, past the recurrence. f is the identity, or tanh of a linear
layer where `readout_size` is given (the paper takes a maxout layer).
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
    """The states of the cell and of the attention."""

    cell: Any
    attention: Any


class Bahdanau(Decoder):
    """Query s_{i-1}, one cell, a readout."""

    def __init__(
        self,
        cell: Cell,
        attention: Attention,
        *,
        embedding_size: int,
        memory_size: int,
        readout_size: int | None,
        dropout: float,
    ) -> None:
        joined_size = cell.hidden_size + attention.context_size + embedding_size
        super().__init__(attention, readout_size or joined_size)
        self.bridge = Bridge(memory_size, cell.hidden_size)
        self.cell = cell
        self.readout = None if readout_size is None else nn.Linear(joined_size, readout_size)
        self.dropout = Dropout(dropout)

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Memory, State]:
        """See `Decoder.prepare`."""
        memory, attention_state = self.attention.prepare(encoded, source)
        return Memory(memory, source.ids_BS), State(self.cell.start(self.bridge(encoded)), attention_state)

    def step(self, embedded_BE: Tensor, state: State, memory: Memory) -> StepOutput:
        """Attend with the previous state, then update it."""
        attended = self.attention.step(self.cell.hidden(state.cell), memory.attention, state.attention)
        context_BM = attended.context_BM
        cell_state = self.cell.step(self.cell.project_inputs(embedded_BE, context_BM), state.cell)
        hidden_BH = self.cell.hidden(cell_state)
        features_BF = self.dropout(self.features(hidden_BH, context_BM, embedded_BE))
        return StepOutput(
            features_BF, hidden_BH, context_BM, embedded_BE, attended.weights_BS, State(cell_state, attended.state)
        )

    def features(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """f of states [..., H], contexts [..., M] and embeddings [..., E]: [..., F]."""
        joined = torch.cat([hidden, context.to(hidden.dtype), embedded.to(hidden.dtype)], dim=-1)
        return joined if self.readout is None else torch.tanh(self.readout(joined))


def build(
    *,
    build_cell: CellBuilder,
    attention: Attention,
    embedding_size: int,
    hidden_size: int,
    memory_size: int,
    readout_size: int | None,
    dropout: float,
) -> Bahdanau:
    """No options."""
    cell = build_cell(input_sizes=[embedding_size, attention.context_size], hidden_size=hidden_size)
    return Bahdanau(
        cell,
        attention,
        embedding_size=embedding_size,
        memory_size=memory_size,
        readout_size=readout_size,
        dropout=dropout,
    )
