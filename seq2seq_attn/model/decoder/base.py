"""The contract of decoders, and two parts that they share: the initial state, and the readout,
which computes the features that predict the next token (Bahdanau, Cho, Bengio 2015, appendix
A.2.2).

    s_0 = tanh(W h_final + b)      features_i = f([s_i ; c_i ; E y_{i-1}])

The paper's s_0 reads the backward state of the first word alone; h_final is the encoder's summary
of both directions. The appendix reads out s_{i-1}; we read s_i, as the paper's equation 4 does.

A variant is a file in this folder with one final class, built of `DecoderSettings` and options of
its own.

Shapes: B rows (sentence pairs, or rows in search), S source positions, K steps so far, E embedding
size, H hidden size, M context size, F features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, Attention
from seq2seq_attn.model.cell.base import Cell, CellBuilder, Stack
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide


@dataclass(frozen=True)
class DecoderSettings:
    """The builders and sizes that every decoder is constructed with."""

    build_cell: CellBuilder
    build_attention: Callable[..., Attention]
    """called with `query_size`"""
    embedding_size: int
    hidden_size: int
    memory_size: int
    """M of the encoder's values and summary"""
    readout_size: int | None
    """None: the features are state, context and embedding as they are"""
    num_layers: int
    dropout: float
    """rate on the features, and between layers"""

    def build_stack(self, input_sizes: Sequence[int], *, is_residual: bool) -> Cell:
        """`num_layers` layers as one cell, of which the first reads inputs of these sizes; a single
        layer is the cell itself."""
        layers: list[Cell] = []
        for _ in range(self.num_layers):
            layers.append(self.build_cell(input_sizes=input_sizes, hidden_size=self.hidden_size))
            input_sizes = [self.hidden_size]
        if len(layers) == 1:
            return layers[0]
        return Stack(layers, dropout=self.dropout, is_residual=is_residual)


class Memory(NamedTuple):
    """The data that all steps of a source batch share; batch-first."""

    attention: Any
    """the attention's memory; None in `DecoderOutputs.rows`"""
    source_ids_BS: Tensor
    """int64"""
    extended_ids_BS: Tensor
    """int64, for outputs that copy source tokens"""
    output: Any = None
    """the output's memory"""


class History(NamedTuple):
    """The decoder's steps so far, this one included, for outputs that point to past target
    tokens."""

    ids_BK: Tensor
    """int64, the token that each step has read, BOS at first; PAD where there is no step"""
    hidden_BKH: Tensor
    """the decoder's state after each step"""


class StepOutput(NamedTuple):
    """One decoder step."""

    features_BF: Tensor
    """features used to predict the next token"""
    hidden_BH: Tensor
    """the state after the step"""
    context_BM: Tensor
    embedded_BE: Tensor
    """embedding of the previous token"""
    weights_BS: Tensor
    """attention, in float32 or wider"""
    state: Any
    """state of the decoder for the next step"""
    history: History | None = None
    """None: the output does not ask for it (`Output.needs_history`)"""
    extra: Any = None
    """the attention's, see `Attended.extra`"""

    @classmethod
    def of(
        cls,
        features_BF: Tensor,
        hidden_BH: Tensor,
        embedded_BE: Tensor,
        attended: Attended,
        state: Any,
    ) -> StepOutput:
        """The step of a decoder that has queried its attention once."""
        context_BM, weights_BS, _, extra = attended
        return cls(features_BF, hidden_BH, context_BM, embedded_BE, weights_BS, state, extra=extra)


class State(NamedTuple):
    """The state of most decoders: those of the cell and of the attention."""

    cell: Any
    attention: Any


class Readout(nn.Module):
    """The features f([s ; c ; E y]).

    The output also reads context and embedding directly, not only through the recurrence. f is the
    identity, or tanh of a linear layer where `readout_size` is given (the paper takes a maxout
    layer).
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
        """States [..., H], contexts [..., M] and embeddings [..., E] to features [..., F]."""
        joined = torch.cat([hidden, context.to(hidden.dtype), embedded.to(hidden.dtype)], dim=-1)
        if self.projection is not None:
            joined = torch.tanh(self.projection(joined))
        features: Tensor = self.dropout(joined)
        return features


ReadOut = Callable[[Tensor, Tensor, Tensor], Tensor]
"""states [..., H], contexts [..., M] and embeddings [..., E] to features [..., F]"""


class Decoder(nn.Module, ABC):
    """A variant adds its `cell` to `attention` and `bridge`."""

    cell: Cell
    feature_size: int
    """F, the width of its features"""
    queries_with_token: bool = True
    """whether the query depends on the previous token"""
    read_out: ReadOut | None = None
    """the features as a function of state, context and embedding, if they depend on nothing else;
    the output `marginal` calls it with each source value as the context"""

    def __init__(self, settings: DecoderSettings) -> None:
        super().__init__()
        self.attention = settings.build_attention(query_size=settings.hidden_size)
        projection = nn.Linear(settings.memory_size, settings.hidden_size)
        self.bridge = nn.Sequential(OrderedDict(projection=projection, tanh=nn.Tanh()))

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Memory, Any]:
        """The memory of a source batch, and the state before the first step: as it is, a
        `State`."""
        memory, attention_state = self.attention.prepare(encoded, source)
        hidden_BH = wide(self.bridge(encoded.final_BM))  # the recurrence keeps its dtype
        state = State(self.cell.start(hidden_BH), attention_state)
        return Memory(memory, source.ids_BS, source.extended_ids_BS), state

    @abstractmethod
    def step(self, embedded_BE: Tensor, state: Any, memory: Memory) -> StepOutput:
        """One step, from the previous token's embedding."""
