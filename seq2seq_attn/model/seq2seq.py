"""The translation model: an encoder, a bridge, an attention decoder. It is what training unrolls and search steps.

Shapes: B sentence pairs, K rows of a sentence in search, R = B * K, S source positions, T steps, E embedding size,
H hidden size, F readout features, V target vocabulary, N target tokens, rounded up, G of them with logits at hand.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import ROW_MULTIPLE, Batch, SourceBatch
from seq2seq_attn.model.aligned import aligned_empty
from seq2seq_attn.model.attention.base import Memory, State
from seq2seq_attn.model.decoder import Decoder, DecoderState
from seq2seq_attn.model.dropout import keep_factors
from seq2seq_attn.model.encoder.base import Encoded, Encoder
from seq2seq_attn.model.gru import compute_dtype
from seq2seq_attn.model.unroll import unroll
from seq2seq_attn.text.vocab import PAD

Fields = TypeVar("Fields", Memory, State)
MOST_KEPT_CELLS = 32 * 1024 * 1024
"""Logits kept from the pass that feeds back for the loss: 128 MB in float32."""


class SearchState(NamedTuple):
    """What search carries: the decoder's state and the memory, both with R rows."""

    decoder: DecoderState
    memory: Memory
    rows_per_sentence: int


class Predictions(NamedTuple):
    """What the loss is made of, a row for each target token."""

    features_NF: Tensor
    targets_N: Tensor
    """int64; PAD in the rows that round N up, which count for nothing"""
    logits_GV: Tensor | None = None
    """of the first G rows, without gradient, where they have been found on the way"""


class _FedBack(NamedTuple):
    """The steps whose choice is the next input, and their logits."""

    positions_G: Tensor
    """int64, in a flattened [T, B]"""
    logits_GV: Tensor


class Dropouts(NamedTuple):
    """Rates between 0 and 1: on embeddings (both sides), of whole input tokens, on the readout's features."""

    embedding: float
    token: float
    readout: float


class Seq2Seq(nn.Module):
    """Encoder and decoder; satisfies `search.hypothesis.StepModel`."""

    def __init__(self, encoder: Encoder, decoder: Decoder, dropouts: Dropouts) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.dropouts = dropouts

    # ---- training ----

    def forward(self, batch: Batch, teacher_forcing_ratio: float = 1.0) -> Predictions:
        """Features of the target positions `batch.positions_N`, in another order where tokens are fed back.

        The output layer is left to the loss, which works in chunks: no B x T x V tensor is made. With a ratio below 1,
        each input token but the first is the model's own greedy choice with probability 1 - ratio, drawn per token
        (Bengio et al. 2015, section 2.4). The choices are found in a first pass without gradient; the second one is
        teacher-forced on the mixed inputs: the same function as a loop that feeds back as it goes. The logits of the
        choices, up to `MOST_KEPT_CELLS`, are kept for the loss.
        """
        hidden_BH, memory, state = self.encode(batch.source)
        tgt_in_TB = batch.tgt_in_BT.t().contiguous()
        embedding_mask = self._embedding_mask(tgt_in_TB)
        features_mask = self._features_mask(tgt_in_TB)
        positions_N, targets_N, logits_GV = batch.positions_N, batch.targets_N, None
        if teacher_forcing_ratio < 1.0:
            keep_TB = torch.rand(tgt_in_TB.shape, device=tgt_in_TB.device) < teacher_forcing_ratio
            with torch.no_grad():
                tgt_in_TB, fed_back = self._mix_inputs(
                    tgt_in_TB, keep_TB, DecoderState(hidden_BH, state), memory, embedding_mask, features_mask
                )
            if fed_back is not None:
                positions_N, targets_N = _brought_forward(fed_back.positions_G, batch)
                logits_GV = fed_back.logits_GV
        embedded_TBE = _masked(self.decoder.embedding(tgt_in_TB), embedding_mask)
        unrolled = unroll(self.decoder, embedded_TBE, hidden_BH, memory, state)
        features_NF = self.decoder.features(
            _rows(unrolled.states_TBH, positions_N),
            _rows(unrolled.contexts_TBM, positions_N),
            _rows(embedded_TBE, positions_N),
        )
        if features_mask is not None:
            features_NF = features_NF * _rows(features_mask, positions_N)
        return Predictions(features_NF, targets_N, logits_GV)

    def _mix_inputs(
        self,
        tgt_in_TB: Tensor,
        keep_TB: Tensor,
        state: DecoderState,
        memory: Memory,
        embedding_mask: Tensor | None,
        features_mask: Tensor | None,
    ) -> tuple[Tensor, _FedBack | None]:
        """The inputs of a pass that feeds back its own choices where `keep_TB` is False, and what the loss can use of
        it: nothing on a GPU, or where it would take much memory. Padding stays padding."""
        mixed_TB = tgt_in_TB.clone()
        keep_TB = keep_TB | (tgt_in_TB == PAD)
        rows_by_step = _feeding_back(keep_TB)
        # cast once, not at every step: without gradient, autocast keeps no cast weights, and this is the largest matrix
        output = self.decoder.output
        weight, bias = (tensor.to(compute_dtype(tensor)) for tensor in (output.weight, output.bias))
        kept_GV = _memory_for_logits(sum(map(len, rows_by_step)), weight)
        num_done = 0
        for t, rows_R in enumerate(rows_by_step):
            embedded_BE = self.decoder.embedding(mixed_TB[t])
            if embedding_mask is not None:
                embedded_BE = embedded_BE * embedding_mask[t]
            context_BM, state = self.decoder.step(embedded_BE, state, memory)
            fed_back = (tensor.index_select(0, rows_R) for tensor in (state.hidden_BH, context_BM, embedded_BE))
            features_RF = self.decoder.features(*fed_back)
            if features_mask is not None:
                features_RF = features_RF * features_mask[t].index_select(0, rows_R)
            if kept_GV is None:
                logits_RV = aligned_empty(len(rows_R), len(weight), like=weight)
            else:
                logits_RV = kept_GV[num_done : num_done + len(rows_R)]
            num_done += len(rows_R)
            choice_R = torch.addmm(bias, features_RF.to(weight.dtype), weight.t(), out=logits_RV).argmax(dim=-1)
            mixed_TB[t + 1].index_copy_(
                0, rows_R, torch.where(keep_TB[t + 1][rows_R], mixed_TB[t + 1][rows_R], choice_R)
            )
        if kept_GV is None:
            return mixed_TB, None
        positions_G = torch.cat([t * tgt_in_TB.shape[1] + rows_R for t, rows_R in enumerate(rows_by_step)])
        num_whole = num_done - num_done % ROW_MULTIPLE  # the others are made again: products of few shapes
        return mixed_TB, _FedBack(positions_G[:num_whole], kept_GV[:num_whole])

    def encode(self, source: SourceBatch) -> tuple[Tensor, Memory, State]:
        """The decoder's first state, the attention's memory and first state of a source batch."""
        encoded = self.encode_source(source)
        memory, state = self.decoder.attention.prepare(encoded.values_BSM, source.mask_BS)
        return self.decoder.start(encoded.final_BM), memory, state

    def encode_source(self, source: SourceBatch) -> Encoded:
        """What the encoder makes of a source batch: one value per position, and the summary."""
        ids_SB = source.ids_BS.t()
        embedded_SBE = _masked(self.encoder.embedding(ids_SB), self._embedding_mask(ids_SB))
        encoded: Encoded = self.encoder(embedded_SBE.transpose(0, 1), source.mask_BS.sum(dim=1))
        return encoded

    def _embedding_mask(self, ids_TB: Tensor) -> Tensor | None:
        """Factors of embedding and token dropout, [T, B, E], drawn from the global generator; None: no dropout."""
        rates = self.dropouts
        if not self.training or (rates.embedding == 0.0 and rates.token == 0.0):
            return None
        size = self.encoder.embedding.embedding_dim
        mask_TBE = keep_factors((*ids_TB.shape, size), rates.embedding, ids_TB.device)
        if rates.token > 0.0:
            mask_TBE *= keep_factors((*ids_TB.shape, 1), rates.token, ids_TB.device)
        return mask_TBE

    def _features_mask(self, ids_TB: Tensor) -> Tensor | None:
        if not self.training or self.dropouts.readout == 0.0:
            return None
        return keep_factors((*ids_TB.shape, self.decoder.output.in_features), self.dropouts.readout, ids_TB.device)

    # ---- search ----

    def start(self, source: SourceBatch, rows_per_sentence: int) -> SearchState:
        """See `StepModel.start`."""
        hidden_BH, memory, state = self.encode(source)
        decoder = DecoderState(hidden_BH, state)
        if rows_per_sentence > 1:
            rows_R = torch.arange(len(hidden_BH), device=hidden_BH.device).repeat_interleave(rows_per_sentence)
            decoder, memory = _select_state(decoder, rows_R), _select(memory, rows_R)
        return SearchState(decoder, memory, rows_per_sentence)

    def step(self, prev_ids_R: Tensor, state: SearchState) -> tuple[Tensor, SearchState]:
        """See `StepModel.step`."""
        embedded_RE = self.decoder.embedding(prev_ids_R)
        context_RM, decoder = self.decoder.step(embedded_RE, state.decoder, state.memory)
        features_RF = self.decoder.features(decoder.hidden_BH, context_RM, embedded_RE)
        return features_RF, state._replace(decoder=decoder)

    def logits(self, features_NF: Tensor) -> Tensor:
        """See `StepModel.logits`."""
        logits_NV: Tensor = self.decoder.output(features_NF)
        return logits_NV.float()

    def reorder(self, state: SearchState, index_R: Tensor) -> SearchState:
        """See `StepModel.reorder`. The memory is the same for all rows of a sentence: it moves only when sentences
        leave."""
        memory, rows = state.memory, state.rows_per_sentence
        sentences = index_R[::rows] // rows
        if not torch.equal(sentences, torch.arange(len(memory.mask_BS) // rows, device=index_R.device)):
            memory = _select(memory, index_R)
        return SearchState(_select_state(state.decoder, index_R), memory, rows)

    def weights(self, state: SearchState) -> Tensor | None:
        """See `StepModel.weights`."""
        return state.decoder.attention.weights_BS if self.decoder.attention.is_positional else None


def _masked(embedded: Tensor, mask: Tensor | None) -> Tensor:
    return embedded if mask is None else embedded * mask


def _feeding_back(keep_TB: Tensor) -> list[Tensor]:
    """For each step but the last, the rows that go through the output layer, which is most of its work: on a CPU those
    whose choice is the next input; on a GPU all, as to know which would be to wait for it."""
    if keep_TB.device.type == "cpu":
        return [(~keep_B).nonzero().squeeze(1) for keep_B in keep_TB[1:]]
    return [torch.arange(keep_TB.shape[1], device=keep_TB.device)] * (len(keep_TB) - 1)


def _memory_for_logits(num_rows: int, weight: Tensor) -> Tensor | None:
    """To keep the logits of that many rows in, [num_rows, V]; None: there are none, or too many, or they lie on a GPU,
    which would have to be waited for to know which they are."""
    if num_rows == 0 or num_rows * len(weight) > MOST_KEPT_CELLS or weight.device.type != "cpu":
        return None
    return aligned_empty(num_rows, len(weight), like=weight)


def _brought_forward(positions_G: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """`batch.positions_N` and `batch.targets_N` with these positions first."""
    targets = batch.tgt_out_BT.t().flatten()
    is_first = torch.zeros_like(targets, dtype=torch.bool).index_fill_(0, positions_G, True)
    # the rows that round N up stay, whatever position they have
    is_other_N = (batch.targets_N == PAD) | ~is_first[batch.positions_N]
    positions = torch.cat([positions_G, batch.positions_N[is_other_N]])
    return positions, torch.cat([targets[positions_G], batch.targets_N[is_other_N]])


def _rows(tensor_TBX: Tensor, positions_N: Tensor) -> Tensor:
    return tensor_TBX.flatten(0, 1).index_select(0, positions_N)


def _select_state(state: DecoderState, index_R: Tensor) -> DecoderState:
    return DecoderState(state.hidden_BH.index_select(0, index_R), _select(state.attention, index_R))


def _select(fields: Fields, index_R: Tensor) -> Fields:
    """Rows of every tensor of a named tuple, whatever fields a variant's own has."""
    rows = {name: field.index_select(0, index_R) for name, field in fields._asdict().items() if field is not None}
    return fields._replace(**rows)
