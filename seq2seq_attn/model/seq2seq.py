"""The translation model: an encoder, a target embedding, an attention decoder, an output.

Shapes: B sentence pairs, T steps, R rows in search, V target vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import Batch, SourceBatch
from seq2seq_attn.model import speed
from seq2seq_attn.model.decoder.base import Decoder, History, Memory, StepOutput
from seq2seq_attn.model.encoder.base import Encoder, zeroed
from seq2seq_attn.model.layers import Embedding
from seq2seq_attn.model.output.base import DecoderOutputs, Output
from seq2seq_attn.text.vocab import PAD, UNK


class Recorded(NamedTuple):
    """The state of a model whose output reads the history: the decoder's state, and the decoder's
    steps so far."""

    decoder: Any
    history: History | None
    """None before the first step"""


class Seq2Seq(nn.Module):
    """The encoder, the decoder and the output as one module. Training calls `forward`; search calls
    `prepare` and `step`."""

    def __init__(
        self, encoder: Encoder, embedding: Embedding, decoder: Decoder, output: Output
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.embedding = embedding
        self.decoder = decoder
        self.output = output

    def forward(self, batch: Batch, teacher_forcing_ratio: float = 1.0) -> DecoderOutputs:
        """Run all decoder steps of a batch (see `unroll`). Dropout and scheduled sampling draw from
        the global random generator."""
        fast = speed.find("unroll", self, teacher_forcing_ratio)
        return fast(self, batch) if fast else unroll(self, batch, teacher_forcing_ratio)

    def prepare(self, source: SourceBatch) -> tuple[Memory, Any]:
        """Encode a source batch. Return the decoder's memory, and the state before the first
        step."""
        encoded = zeroed(self.encoder(source))
        memory, state = self.decoder.prepare(encoded, source)
        if self.output.needs_history:
            state = Recorded(state, None)
        memory = memory._replace(output=self.output.prepare(encoded, source))
        if self.has_attention:
            memory = memory._replace(spread_BPS=encoded.spread_BPS)
        return memory, state

    def step(self, prev_ids_R: Tensor, state: Any, memory: Memory) -> StepOutput:
        """Run one decoder step, which reads the previous tokens (BOS at the first step)."""
        read_ids_R = self.replace_copied(prev_ids_R)
        decoder_state = state.decoder if isinstance(state, Recorded) else state
        step = self.decoder.step(self.embedding(read_ids_R), decoder_state, memory)
        if memory.spread_BPS is not None:
            weights_B1P = step.weights_BS.unsqueeze(1)
            spread_BPS = memory.spread_BPS.to(weights_B1P.dtype)
            step = step._replace(weights_BS=torch.bmm(weights_B1P, spread_BPS).squeeze(1))
        if not isinstance(state, Recorded):
            return step
        history = History(read_ids_R.unsqueeze(1), step.hidden_BH.unsqueeze(1))
        if state.history is not None:
            ids_BK = torch.cat([state.history.ids_BK, history.ids_BK], dim=1)
            hidden_BKH = torch.cat([state.history.hidden_BKH, history.hidden_BKH], dim=1)
            history = History(ids_BK, hidden_BKH)
        return step._replace(state=Recorded(step.state, history), history=history)

    def replace_copied(self, prev_ids: Tensor) -> Tensor:
        """Return the previous target tokens as the decoder reads them. Ids beyond the target
        vocabulary stand for tokens copied from the source, and become UNK."""
        return prev_ids.masked_fill(prev_ids >= self.embedding.num_embeddings, UNK)

    @property
    def has_attention(self) -> bool:
        """Whether the model has attention over source positions (`Attention.is_positional`)."""
        return self.decoder.attention.is_positional

    @property
    def keeps_positions(self) -> bool:
        """Whether the encoder has a value for each source token (`Encoder.keeps_positions`)."""
        return self.encoder.keeps_positions


def unroll(model: Seq2Seq, batch: Batch, teacher_forcing_ratio: float) -> DecoderOutputs:
    """Run all decoder steps, with teacher forcing or scheduled sampling.

    With a ratio below 1, each input token but the first is replaced by the model's greedy choice
    with probability 1 - ratio, drawn per token (Bengio et al. 2015, section 2.4). Padding stays
    padding.
    """
    memory, state = model.prepare(batch.source)
    tgt_in_TB = batch.tgt_in_BT.t()
    keep_TB = None  # True = the step reads the reference token
    if teacher_forcing_ratio < 1.0:
        is_drawn_TB = torch.rand(tgt_in_TB.shape, device=tgt_in_TB.device) < teacher_forcing_ratio
        keep_TB = is_drawn_TB | (tgt_in_TB == PAD)
    steps = []
    read = []
    ids_B = tgt_in_TB[0]
    for t in range(len(tgt_in_TB)):
        step = model.step(ids_B, state, memory)
        state = step.state
        steps.append(step._replace(state=None, history=None))
        read.append(model.replace_copied(ids_B))
        if t + 1 < len(tgt_in_TB):
            ids_B = tgt_in_TB[t + 1]
            if keep_TB is not None:
                # the index of a maximum has no gradient
                choice_B = model.output.log_probs(step, memory).argmax(dim=-1)
                ids_B = torch.where(keep_TB[t + 1], ids_B, choice_B)
    extra = steps[0].extra
    if extra is not None:
        fields = zip(*[step.extra for step in steps], strict=True)
        extra = type(extra)(*map(torch.stack, fields))
    features_TBF = torch.stack([step.features_BF for step in steps])
    return DecoderOutputs(
        features_NF=features_TBF.flatten(0, 1),
        hidden_TBH=torch.stack([step.hidden_BH for step in steps]),
        contexts_TBM=torch.stack([step.context_BM for step in steps]),
        embedded_TBE=torch.stack([step.embedded_BE for step in steps]),
        weights_TBS=torch.stack([step.weights_BS for step in steps]),
        memory=memory,
        output=model.output,
        batch=batch,
        extra=extra,
        read_ids_TB=torch.stack(read) if model.output.needs_history else None,
    )
