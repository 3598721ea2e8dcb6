"""The decoder that queries the attention with its previous state (Bahdanau, Cho, Bengio 2015,
section 3.1 and appendix A.2.2).

    c_i = attend(s_{i-1})      s_i = cell([E y_{i-1} ; c_i], s_{i-1})
    features_i = f([s_i ; c_i ; E y_{i-1}])

f is the readout of `model/decoder/base.py`. With several layers (`Stack`) s is the state of the top
layer: it is the query, and f reads it. The first layer reads embedding and context.
"""

from torch import Tensor

from seq2seq_attn.model.decoder.base import (
    Decoder,
    DecoderSettings,
    Memory,
    Readout,
    State,
    StepOutput,
)


class Bahdanau(Decoder):
    """A decoder with one cell and a readout, whose query is the previous state s_{i-1}.

    Args:
        residual: whether each layer but the first adds its input to its output.
    """

    queries_with_token = False

    def __init__(self, settings: DecoderSettings, residual: bool = False) -> None:
        super().__init__(settings)
        context_size = self.attention.context_size
        self.cell = settings.build_stack(
            [settings.embedding_size, context_size], is_residual=residual
        )
        self.readout = Readout(settings, context_size)
        self.feature_size = self.readout.size

    def step(self, embedded_BE: Tensor, state: State, memory: Memory) -> StepOutput:
        """Attend with the previous state, then update the state."""
        query_BH = self.cell.hidden(state.cell)
        attended = self.attention.step(query_BH, memory.attention, state.attention)
        context_BM = attended.context_BM
        cell_state = self.cell.step(self.cell.project_inputs(embedded_BE, context_BM), state.cell)
        hidden_BH = self.cell.hidden(cell_state)
        features_BF = self.readout(hidden_BH, context_BM, embedded_BE)
        next_state = State(cell_state, attended.state)
        return StepOutput.of(features_BF, hidden_BH, embedded_BE, attended, next_state)

    def read_out(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Return the features f([s ; c ; E y])."""
        features: Tensor = self.readout(hidden, context, embedded)
        return features
