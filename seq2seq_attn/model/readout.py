"""The decoder's initial state, and the readout: the features that predict the next token (Bahdanau, Cho, Bengio 2015,
appendix A.2.2).

    s_0 = tanh(W h_final + b)      features_i = f([s_i ; c_i ; E y_{i-1}])

The paper's s_0 reads the backward state of the first word alone; h_final is the encoder's summary of both directions.
The appendix reads out s_{i-1}; we read s_i, as the paper's equation 4 does.

Shapes: B rows, E embedding size, H hidden size, M context size, F features.
"""

import torch
from torch import Tensor, nn

from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import Dropout
from seq2seq_attn.model.tensors import wide


class Bridge(nn.Module):
    """The initial hidden state, tanh(W h_final + b)."""

    def __init__(self, memory_size: int, hidden_size: int) -> None:
        super().__init__()
        self.projection = nn.Linear(memory_size, hidden_size)

    def forward(self, encoded: Encoded) -> Tensor:
        """`hidden_BH`, in float32 or wider: the recurrence keeps its dtype."""
        return wide(torch.tanh(self.projection(encoded.final_BM)))


class Readout(nn.Module):
    """The features f([s ; c ; E y]).

    The output also reads context and embedding directly, not only through the recurrence. f is the identity, or tanh
    of a linear layer where `readout_size` is given (the paper takes a maxout layer).
    """

    def __init__(
        self, hidden_size: int, context_size: int, embedding_size: int, readout_size: int | None, dropout: float
    ) -> None:
        super().__init__()
        joined_size = hidden_size + context_size + embedding_size
        self.projection = None if readout_size is None else nn.Linear(joined_size, readout_size)
        self.size = readout_size or joined_size
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """States [..., H], contexts [..., M] and embeddings [..., E] to features [..., F]."""
        joined = torch.cat([hidden, context.to(hidden.dtype), embedded.to(hidden.dtype)], dim=-1)
        features: Tensor = self.dropout(joined if self.projection is None else torch.tanh(self.projection(joined)))
        return features
