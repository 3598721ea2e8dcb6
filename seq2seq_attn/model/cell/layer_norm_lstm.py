"""The long short-term memory with layer normalization (Ba, Kiros, Hinton 2016, section 3.1 and
supplementary material).

    [i f g o] = LN(W x) + LN(U h)      c' = sigmoid(f) * c + sigmoid(i) * tanh(g)
    h' = sigmoid(o) * tanh(LN(c'))

The pre-activations i, f, g and o are normalized together. Each of the three LN has its own gain and
bias. The cell's memory c is 0 before the first step.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from seq2seq_attn.model.cell.lstm import LSTM


class LayerNormLSTM(LSTM):
    """A long short-term memory with the gates of `lstm`, whose projections and memory are
    normalized."""

    norm_groups = (4,)

    def __init__(self, input_sizes: Sequence[int], hidden_size: int) -> None:
        super().__init__(input_sizes, hidden_size)
        self.memory_norm = nn.LayerNorm(hidden_size)

    def read_memory(self, memory_BH: Tensor) -> Tensor:
        normalized_BH: Tensor = self.memory_norm(memory_BH)
        return normalized_BH
