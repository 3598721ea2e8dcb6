"""The translation model: an encoder, a target embedding, an attention decoder, an output.

Shapes: B sentence pairs, R rows in search, V target vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import Batch, SourceBatch
from seq2seq_attn.model import speed
from seq2seq_attn.model.decoder.base import Decoder, History, Memory, StepOutput
from seq2seq_attn.model.embedding import Embedding
from seq2seq_attn.model.encoder.base import Encoder, zeroed
from seq2seq_attn.model.output.base import Output, Outputs
from seq2seq_attn.model.unroll import unroll
from seq2seq_attn.text.vocab import UNK


class Recorded(NamedTuple):
    """The decoder's state and its steps so far: the state of a model whose output needs the history."""

    decoder: Any
    history: History | None
    """None before the first step"""


class Seq2Seq(nn.Module):
    """Encoder and decoder as one module: `forward` for training, `prepare` and `step` for search."""

    def __init__(self, encoder: Encoder, embedding: Embedding, decoder: Decoder, output: Output) -> None:
        super().__init__()
        self.encoder = encoder
        self.embedding = embedding
        self.decoder = decoder
        self.output = output

    def forward(self, batch: Batch, teacher_forcing_ratio: float = 1.0) -> Outputs:
        """All decoder steps of a batch (see `unroll`). Dropout and fed-back tokens draw from the global generator."""
        fast = speed.find("unroll", self, teacher_forcing_ratio)
        return fast(self, batch) if fast else unroll(self, batch, teacher_forcing_ratio)

    def prepare(self, source: SourceBatch) -> tuple[Memory, Any]:
        """Encode a source batch: the decoder's memory, and its state before the first step."""
        encoded = zeroed(self.encoder(source))
        memory, state = self.decoder.prepare(encoded, source)
        if self.output.needs_history:
            state = Recorded(state, None)
        return memory._replace(output=self.output.prepare(encoded, source)), state

    def step(self, prev_ids_R: Tensor, state: Any, memory: Memory) -> StepOutput:
        """One decoder step after the previous tokens (BOS at first)."""
        read_ids_R = self.replace_copied(prev_ids_R)
        if not isinstance(state, Recorded):
            return self.decoder.step(self.embedding(read_ids_R), state, memory)
        step = self.decoder.step(self.embedding(read_ids_R), state.decoder, memory)
        history = History(read_ids_R.unsqueeze(1), step.hidden_BH.unsqueeze(1))
        if state.history is not None:
            history = History(*(torch.cat(parts, dim=1) for parts in zip(state.history, history, strict=True)))
        return step._replace(state=Recorded(step.state, history), history=history)

    def replace_copied(self, prev_ids: Tensor) -> Tensor:
        """Previous target tokens as the decoder reads them: UNK for those beyond the target vocabulary, which were
        copied from the source."""
        return prev_ids.masked_fill(prev_ids >= self.embedding.num_embeddings, UNK)

    @property
    def has_attention(self) -> bool:
        """Whether there is attention over source positions (`Attention.is_positional`)."""
        return self.decoder.attention.is_positional
