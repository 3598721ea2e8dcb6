"""The decoder that queries the attention with its previous state (Bahdanau, Cho, Bengio 2015, section 3.1 and
appendix A.2.2).

    c_i = attend(s_{i-1})      s_i = cell([E y_{i-1} ; c_i], s_{i-1})      features_i = f([s_i ; c_i ; E y_{i-1}])

f is the readout of `model/decoder/base.py`. With several layers (`Stack`) s is the state of the top layer, which
is the query and is read by f; the first layer reads embedding and context.
"""

from torch import Tensor

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import AttentionBuilder
from seq2seq_attn.model.cell.base import CellBuilder, build_stack
from seq2seq_attn.model.decoder.base import Bridge, Decoder, Memory, Readout, State, StepOutput
from seq2seq_attn.model.encoder.base import Encoded


class Bahdanau(Decoder):
    """Query s_{i-1}, one cell, a readout. `residual`: each layer but the first adds its input to its output."""

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
        residual: bool = False,
    ) -> None:
        attention = build_attention(query_size=hidden_size)
        inputs = [embedding_size, attention.context_size]
        cell = build_stack(build_cell, inputs, hidden_size, num_layers, dropout=dropout, is_residual=residual)
        readout = Readout(hidden_size, attention.context_size, embedding_size, readout_size, dropout)
        super().__init__(attention, readout.size)
        self.bridge = Bridge(memory_size, cell.hidden_size)
        self.cell = cell
        self.readout = readout

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Memory, State]:
        memory, attention_state = self.attention.prepare(encoded, source)
        return Memory.of(memory, source), State(self.cell.start(self.bridge(encoded)), attention_state)

    def step(self, embedded_BE: Tensor, state: State, memory: Memory) -> StepOutput:
        """Attend with the previous state, then update it."""
        attended = self.attention.step(self.cell.hidden(state.cell), memory.attention, state.attention)
        context_BM = attended.context_BM
        cell_state = self.cell.step(self.cell.project_inputs(embedded_BE, context_BM), state.cell)
        hidden_BH = self.cell.hidden(cell_state)
        features_BF = self.readout(hidden_BH, context_BM, embedded_BE)
        return StepOutput.of(features_BF, hidden_BH, embedded_BE, attended, State(cell_state, attended.state))
