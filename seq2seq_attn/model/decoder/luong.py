"""The decoder that queries the attention with its current state (Luong, Pham, Manning 2015,
sections 3 and 3.3).

    h_t = cell([E y_{t-1} ; h~_{t-1}], h_{t-1})      c_t = attend(h_t)
    h~_t = tanh(W_c [c_t ; h_t])

h~_t is the paper's attentional state, from which the next token is predicted. With input feeding
the cell also reads h~_{t-1} (section 3.3); without input feeding it reads the embedding alone. With
several layers (`Stack`) h_t is the state of the top layer, as in the paper; the first layer reads
embedding and h~_{t-1}.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.decoder.base import Decoder, DecoderSettings, Memory, StepOutput
from seq2seq_attn.model.encoder.base import Encoded


class State(NamedTuple):
    """The states of the cell and of the attention, and the input-feeding vector."""

    cell: Any
    attention: Any
    fed_BF: Tensor
    """h~_{t-1}, which is 0 before the first step; its size is 0 without input feeding"""


class Luong(Decoder):
    """A decoder with one cell, whose query is the current state h_t. The size of the attentional
    state is `readout_size`, or the size of the hidden state if `readout_size` is null.

    Args:
        input_feeding: whether the cell reads the previous attentional state.
        residual: whether each layer but the first adds its input to its output.
    """

    def __init__(
        self, settings: DecoderSettings, input_feeding: bool = True, residual: bool = False
    ) -> None:
        super().__init__(settings)
        self.feature_size = settings.readout_size or settings.hidden_size
        self.num_fed = self.feature_size if input_feeding else 0
        self.cell = settings.build_stack(
            [settings.embedding_size, self.num_fed], is_residual=residual
        )
        joined_size = self.attention.context_size + settings.hidden_size
        self.attentional = nn.Linear(joined_size, self.feature_size, bias=False)
        self.dropout = nn.Dropout(settings.dropout)

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Memory, State]:
        memory, state = super().prepare(encoded, source)
        hidden_BH = self.cell.hidden(state.cell)
        fed_BF = hidden_BH.new_zeros(hidden_BH.shape[0], self.num_fed)
        return memory, State(state.cell, state.attention, fed_BF)

    def step(self, embedded_BE: Tensor, state: State, memory: Memory) -> StepOutput:
        """Update the state, then attend with the new state."""
        fed_BF = state.fed_BF
        cell_state = self.cell.step(self.cell.project_inputs(embedded_BE, fed_BF), state.cell)
        hidden_BH = self.cell.hidden(cell_state)
        attended = self.attention.step(hidden_BH, memory.attention, state.attention)
        attentional_BF = self.read_out(hidden_BH, attended.context_BM, embedded_BE)
        fed_BF = attentional_BF[:, : self.num_fed].to(fed_BF.dtype)
        next_state = State(cell_state, attended.state, fed_BF)
        return StepOutput.of(attentional_BF, hidden_BH, embedded_BE, attended, next_state)

    def read_out(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Return the attentional state h~_t, [..., F]. It does not depend on the embedding."""
        joined = torch.cat([context.to(hidden.dtype), hidden], dim=-1)
        attentional: Tensor = self.dropout(torch.tanh(self.attentional(joined)))
        return attentional
