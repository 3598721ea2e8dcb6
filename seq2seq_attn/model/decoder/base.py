"""The contract of decoders, and two computations that decoders share: the initial state, and the
readout, which computes the features that predict the next token (Bahdanau, Cho, Bengio 2015,
appendix A.2.2).

    s_0 = tanh(W h_final + b)      features_i = f([s_i ; c_i ; E y_{i-1}])

The paper's s_0 reads the backward state of the first word alone; h_final is the encoder's summary
of both directions. The features in the paper's appendix depend on s_{i-1}; our features depend on
s_i, as in the paper's equation 4.

A variant is a file in this folder with one final class, whose constructor takes `DecoderSettings`
and the variant's options.

Shapes: B rows (sentence pairs, or rows in search), S source positions, K steps so far, E embedding
size, H hidden size, M context size, F features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, Attention
from seq2seq_attn.model.cell.base import Cell, CellBuilder, Stack
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide


class DecoderSettings(NamedTuple):
    """The builders and sizes that every decoder is constructed with."""

    build_cell: CellBuilder
    build_attention: Callable[..., Attention]
    """a function of `query_size` that builds the attention"""
    embedding_size: int
    hidden_size: int
    memory_size: int
    """M, the size of the encoder's values and summary"""
    readout_size: int | None
    """size of the readout's layer; None if there is no layer, and state, context and embedding are
    the features"""
    num_layers: int
    dropout: float
    """rate on the features, and between layers"""

    def build_stack(self, input_sizes: Sequence[int], *, is_residual: bool) -> Cell:
        """Build `num_layers` layers as one cell, whose first layer reads inputs of the sizes
        `input_sizes`. A single layer is not wrapped in a `Stack`."""
        layers = []
        for _ in range(self.num_layers):
            layers.append(self.build_cell(input_sizes=input_sizes, hidden_size=self.hidden_size))
            input_sizes = [self.hidden_size]
        if len(layers) == 1:
            return layers[0]
        return Stack(layers, dropout=self.dropout, is_residual=is_residual)


class Memory(NamedTuple):
    """The tensors that all steps of a source batch share; batch-first."""

    attention: Any
    """the attention's memory; like `spread_BPS`, None in `DecoderOutputs.rows`"""
    source_ids_BS: Tensor
    """int64"""
    extended_ids_BS: Tensor
    """int64, for outputs that copy source tokens"""
    output: Any = None
    """the output's memory"""
    spread_BPS: Tensor | None = None
    """`Encoded.spread_BPS`, by which the weights of a step are mapped to source tokens"""


class History(NamedTuple):
    """The decoder's steps so far, the current step included, for outputs that point to past target
    tokens."""

    ids_BK: Tensor
    """int64, the token that each step has read, which is BOS at the first step; PAD where there is
    no step"""
    hidden_BKH: Tensor
    """the decoder's state after each step"""


class StepOutput(NamedTuple):
    """The result of one decoder step."""

    features_BF: Tensor
    """features used to predict the next token"""
    hidden_BH: Tensor
    """the state after the step"""
    context_BM: Tensor
    embedded_BE: Tensor
    """embedding of the previous token"""
    weights_BS: Tensor
    """attention weights, in float32 or wider"""
    state: Any
    """the decoder's state for the next step"""
    history: History | None = None
    """None if the output does not read the history (`Output.needs_history`)"""
    extra: Any = None
    """`Attended.extra` of the attention"""

    @classmethod
    def of(
        cls,
        features_BF: Tensor,
        hidden_BH: Tensor,
        embedded_BE: Tensor,
        attended: Attended,
        state: Any,
    ) -> StepOutput:
        """Return the result of a step in which the decoder has queried its attention once."""
        context_BM, weights_BS, _, extra = attended
        return cls(features_BF, hidden_BH, context_BM, embedded_BE, weights_BS, state, extra=extra)


class State(NamedTuple):
    """The state of most decoders: the cell's state and the attention's state."""

    cell: Any
    attention: Any


class Readout(nn.Module):
    """Compute the features f([s ; c ; E y]).

    Through the features, the output reads context and embedding directly, not only through the
    recurrence. f is the identity if `readout_size` is None, otherwise tanh of a linear layer (the
    paper takes a maxout layer).
    """

    def __init__(self, settings: DecoderSettings, context_size: int) -> None:
        super().__init__()
        joined_size = settings.hidden_size + context_size + settings.embedding_size
        self.size = settings.readout_size or joined_size
        self.projection: nn.Linear | None = None
        if settings.readout_size is not None:
            self.projection = nn.Linear(joined_size, self.size)
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Return the features [..., F] of states [..., H], contexts [..., M] and embeddings [...,
        E]."""
        joined = torch.cat([hidden, context.to(hidden.dtype), embedded.to(hidden.dtype)], dim=-1)
        if self.projection is not None:
            joined = torch.tanh(self.projection(joined))
        features: Tensor = self.dropout(joined)
        return features


ReadOut = Callable[[Tensor, Tensor, Tensor], Tensor]
"""a function of states [..., H], contexts [..., M] and embeddings [..., E] that returns features
[..., F]"""


class Decoder(nn.Module, ABC):
    """The base class of decoders, with `attention` and `bridge`. A variant adds its `cell`."""

    cell: Cell
    feature_size: int
    """F, the width of the features"""
    queries_with_token: bool = True
    """whether the query depends on the previous token"""
    read_out: ReadOut | None = None
    """the features as a function of state, context and embedding; None if the features depend on
    anything else. The output `marginal` calls this function with each source value as the
    context"""

    def __init__(self, settings: DecoderSettings) -> None:
        super().__init__()
        self.attention = settings.build_attention(query_size=settings.hidden_size)
        projection = nn.Linear(settings.memory_size, settings.hidden_size)
        self.bridge = nn.Sequential(OrderedDict(projection=projection, tanh=nn.Tanh()))

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Memory, Any]:
        """Return the memory of a source batch, and the state before the first step, which is a
        `State` unless a variant overrides this method."""
        memory, attention_state = self.attention.prepare(encoded, source)
        hidden_BH = wide(self.bridge(encoded.final_BM))  # the recurrence keeps this dtype
        state = State(self.cell.start(hidden_BH), attention_state)
        return Memory(memory, source.ids_BS, source.extended_ids_BS), state

    @abstractmethod
    def step(self, embedded_BE: Tensor, state: Any, memory: Memory) -> StepOutput:
        """Run one step, which reads the embedding of the previous token."""
