"""The contract of decoders.

A variant is a file of this folder with one final class and a function `build`, which `decoder/__init__.py` calls.

Shapes: B rows (sentence pairs, or rows in search), S source positions, E embedding size, H hidden size, M context size,
F features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attention
from seq2seq_attn.model.dropout import Dropout
from seq2seq_attn.model.encoder.base import Encoded


class Memory(NamedTuple):
    """What all steps of a source batch share; batch-first."""

    attention: Any
    """what the attention prepared"""
    source_ids_BS: Tensor
    """int64, for outputs that look at source words"""


class StepOutput(NamedTuple):
    """One decoder step."""

    features_BF: Tensor
    """what the output layer predicts the next token from"""
    hidden_BH: Tensor
    context_BM: Tensor
    embedded_BE: Tensor
    """the previous token"""
    weights_BS: Tensor
    """attention, in float32 or wider"""
    state: Any
    """for the next step"""


class Decoder(nn.Module, ABC):
    """`attention` is what it asks, `feature_size` the width F of its features."""

    def __init__(self, attention: Attention, feature_size: int) -> None:
        super().__init__()
        self.attention = attention
        self.feature_size = feature_size

    @abstractmethod
    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Memory, Any]:
        """The memory of a source batch, and the state before the first step."""

    @abstractmethod
    def step(self, embedded_BE: Tensor, state: Any, memory: Memory) -> StepOutput:
        """Read the previous token's embedding and go on by one step."""


class Bridge(nn.Module):
    """The first hidden state, tanh(W h_final) (Bahdanau, Cho, Bengio 2015, appendix A.2.2)."""

    def __init__(self, memory_size: int, hidden_size: int) -> None:
        super().__init__()
        self.projection = nn.Linear(memory_size, hidden_size)

    def forward(self, encoded: Encoded) -> Tensor:
        """`hidden_BH`, in float32 or wider: the recurrence keeps its dtype."""
        hidden_BH = torch.tanh(self.projection(encoded.final_BM))
        return hidden_BH.to(torch.promote_types(hidden_BH.dtype, torch.float32))


class Readout(nn.Module):
    """The features f([s ; c ; E y]) (Bahdanau, Cho, Bengio 2015, appendix A.2.2).

    The output sees context and embedding beside the state, past the recurrence. f is the identity, or tanh of a linear
    layer where `readout_size` is given (the paper takes a maxout layer).
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
        features: Tensor = self.dropout(self.features(hidden, context, embedded))
        return features

    def features(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """The same without dropout."""
        joined = torch.cat([hidden, context.to(hidden.dtype), embedded.to(hidden.dtype)], dim=-1)
        return joined if self.projection is None else torch.tanh(self.projection(joined))
