"""The training pass of the decoder `bahdanau` with a GRU, with as much work as possible outside the recurrence.

Scheduled sampling takes two passes: the first, without gradients, chooses the tokens that are fed back; the second is
teacher-forced on the mixed inputs. This computes the same function as one loop with feedback. The logits of the tokens
that were fed back are reused in the loss.

Shapes: B sentence pairs, T steps, E embedding size, H hidden size, M context size, F features, S source positions,
V target vocabulary, N target tokens, padded to a multiple, G of them with cached logits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import ROW_MULTIPLE, Batch
from seq2seq_attn.model.cell.gru import GRU
from seq2seq_attn.model.decoder.bahdanau import Bahdanau, State
from seq2seq_attn.model.decoder.base import Memory
from seq2seq_attn.model.dropout import dropout_mask
from seq2seq_attn.model.fast.aligned import aligned_empty
from seq2seq_attn.model.fast.attention_gru import unroll_attention_gru
from seq2seq_attn.model.fast.gru import compute_dtype, gru_unroll
from seq2seq_attn.model.fast.scores import FixedContext, known_score
from seq2seq_attn.model.output.base import Outputs
from seq2seq_attn.model.output.softmax import Softmax
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.speed import offer
from seq2seq_attn.model.unroll import draw_forcing
from seq2seq_attn.text.vocab import PAD

MAX_CACHED_CELLS = 32 * 1024 * 1024
"""max. number of logits cached from the first pass for the loss: 128 MB in float32"""

Unroll = Callable[[Seq2Seq, Batch, float], Outputs]


class CachedOutputs(Outputs):
    """`Outputs` with the rows that have cached logits first."""

    logits_GV: Tensor
    """logits of the first G rows, without gradient"""


class _FedBack(NamedTuple):
    """The steps whose choice is fed back, and their logits."""

    positions_G: Tensor
    """int64, in a flattened [T, B]"""
    logits_GV: Tensor


@offer("unroll")
def offer_unroll(model: Seq2Seq) -> Unroll | None:
    """The fast pass for the decoder, cell, output and scores that it knows."""
    decoder, is_softmax = model.decoder, type(model.output) is Softmax
    is_known = type(decoder) is Bahdanau and type(decoder.cell) is GRU and is_softmax
    return unroll if is_known and known_score(decoder.attention) is not None else None


def unroll(model: Seq2Seq, batch: Batch, teacher_forcing_ratio: float) -> Outputs:
    """The same as `model.unroll.unroll`, faster."""
    decoder = cast(Bahdanau, model.decoder)
    memory, state = model.prepare(batch.source)
    tgt_in_TB = batch.tgt_in_BT.t().contiguous()
    embedding_factors = model.embedding.draw_mask(tgt_in_TB)
    feature_factors = _feature_factors(decoder, tgt_in_TB)
    positions_N, targets_N, logits_GV = batch.positions_N, batch.targets_N, None
    keep_TB = draw_forcing(tgt_in_TB, teacher_forcing_ratio)
    if keep_TB is not None:
        with torch.no_grad():
            pass_ = _FirstPass(model, decoder, memory, embedding_factors, feature_factors)
            tgt_in_TB, fed_back = pass_.mix_inputs(tgt_in_TB, keep_TB, state)
        if fed_back is not None:
            positions_N, targets_N = _brought_forward(fed_back.positions_G, batch)
            logits_GV = fed_back.logits_GV
    embedded_TBE = _times(nn.functional.embedding(tgt_in_TB, model.embedding.weight), embedding_factors)
    hidden_TBH, contexts_TBM, weights_TBS = unroll_decoder(decoder, embedded_TBE, state, memory)
    rows = (tensor.flatten(0, 1).index_select(0, positions_N) for tensor in (hidden_TBH, contexts_TBM, embedded_TBE))
    features_NF = decoder.readout.features(*rows)
    if feature_factors is not None:
        features_NF = features_NF * feature_factors.flatten(0, 1).index_select(0, positions_N)
    found = (features_NF, positions_N, targets_N, hidden_TBH, contexts_TBM, embedded_TBE, weights_TBS, memory)
    if logits_GV is None:
        return Outputs(*found)
    outputs = CachedOutputs(*found)
    outputs.logits_GV = logits_GV
    return outputs


def unroll_decoder(
    decoder: Bahdanau, embedded_TBE: Tensor, state: State, memory: Memory
) -> tuple[Tensor, Tensor, Tensor]:
    """`hidden_TBH`, `contexts_TBM` and `weights_TBS` of all steps."""
    cell, score = cast(GRU, decoder.cell), known_score(decoder.attention)
    hidden_BH = cell.hidden(state.cell)
    embedding_weight, context_weight_PM = cell.input_weights
    gates_TBP = nn.functional.linear(embedded_TBE, embedding_weight, cell.input_bias_P)
    recurrent = (cell.recurrent_weight_PH, cell.recurrent_bias_P)
    if isinstance(score, FixedContext):
        attended = decoder.attention.step(hidden_BH, memory.attention, state.attention)
        gates_TBP = gates_TBP + nn.functional.linear(attended.context_BM, context_weight_PM)
        states_TBH = gru_unroll(
            gates_TBP.unsqueeze(1), hidden_BH.unsqueeze(0), recurrent[0].unsqueeze(0), recurrent[1].unsqueeze(0)
        ).squeeze(1)
        num_steps = len(states_TBH)
        contexts_TBM = attended.context_BM.expand(num_steps, -1, -1)
        return states_TBH, contexts_TBM, attended.weights_BS.expand(num_steps, -1, -1)
    assert score is not None
    keys = memory.attention
    projected_BSP = nn.functional.linear(keys.values_BSM, context_weight_PM)
    states_TBH, weights_TBS = unroll_attention_gru(
        score, gates_TBP, hidden_BH, keys.keys_BSA, projected_BSP, keys.mask_BS, *recurrent
    )
    weights_BTS = weights_TBS.transpose(0, 1).to(keys.values_BSM.dtype)
    return states_TBH, torch.bmm(weights_BTS, keys.values_BSM).transpose(0, 1), weights_TBS


class _FirstPass:
    """The first pass of scheduled sampling, which feeds back its own choices."""

    def __init__(
        self,
        model: Seq2Seq,
        decoder: Bahdanau,
        memory: Memory,
        embedding_factors: Tensor | None,
        feature_factors: Tensor | None,
    ) -> None:
        self._embedding_weight, self._decoder, self._memory = model.embedding.weight, decoder, memory
        self._embedding_factors, self._feature_factors = embedding_factors, feature_factors
        projection = cast(Softmax, model.output).projection
        # cast once: without gradients, autocast does not cache cast weights, and this is the largest matrix
        self._weight, self._bias = (t.to(compute_dtype(t)) for t in (projection.weight, projection.bias))

    def mix_inputs(self, tgt_in_TB: Tensor, keep_TB: Tensor, state: State) -> tuple[Tensor, _FedBack | None]:
        """The mixed inputs, and the logits for the loss (None on a GPU, or if they would take too much memory)."""
        mixed_TB = tgt_in_TB.clone()
        rows_by_step = _feeding_back(keep_TB)
        cached_GV = _memory_for_logits(sum(map(len, rows_by_step)), self._weight)
        num_done = 0
        for t, rows_R in enumerate(rows_by_step):
            features_RF, state = self._step(t, mixed_TB[t], state, rows_R)
            if cached_GV is None:
                logits_RV = aligned_empty(len(rows_R), len(self._weight), like=self._weight)
            else:
                logits_RV = cached_GV[num_done : num_done + len(rows_R)]
            num_done += len(rows_R)
            torch.addmm(self._bias, features_RF.to(self._weight.dtype), self._weight.t(), out=logits_RV)
            next_R = torch.where(keep_TB[t + 1][rows_R], mixed_TB[t + 1][rows_R], logits_RV.argmax(dim=-1))
            mixed_TB[t + 1].index_copy_(0, rows_R, next_R)
        if cached_GV is None:
            return mixed_TB, None
        positions_G = torch.cat([t * tgt_in_TB.shape[1] + rows_R for t, rows_R in enumerate(rows_by_step)])
        num_whole = num_done - num_done % ROW_MULTIPLE  # the rest is recomputed, for few shapes of products
        return mixed_TB, _FedBack(positions_G[:num_whole], cached_GV[:num_whole])

    def _step(self, t: int, ids_B: Tensor, state: State, rows_R: Tensor) -> tuple[Tensor, State]:
        """The features of some rows, and the next state of all rows."""
        decoder = self._decoder
        embedded_BE = nn.functional.embedding(ids_B, self._embedding_weight)
        embedded_BE = _times(embedded_BE, None if self._embedding_factors is None else self._embedding_factors[t])
        attended = decoder.attention.step(decoder.cell.hidden(state.cell), self._memory.attention, state.attention)
        inputs_BP = decoder.cell.project_inputs(embedded_BE, attended.context_BM)
        cell_state: Any = decoder.cell.step(inputs_BP, state.cell)
        tensors = (decoder.cell.hidden(cell_state), attended.context_BM, embedded_BE)
        features_RF = decoder.readout.features(*(tensor.index_select(0, rows_R) for tensor in tensors))
        if self._feature_factors is not None:
            features_RF = features_RF * self._feature_factors[t].index_select(0, rows_R)
        return features_RF, State(cell_state, attended.state)


def _feature_factors(decoder: Bahdanau, ids_TB: Tensor) -> Tensor | None:
    rate = decoder.readout.dropout.rate
    if not decoder.training or rate == 0.0:
        return None
    return dropout_mask((*ids_TB.shape, decoder.feature_size), rate, ids_TB.device)


def _times(embedded: Tensor, factors: Tensor | None) -> Tensor:
    return embedded if factors is None else embedded * factors


def _feeding_back(keep_TB: Tensor) -> list[Tensor]:
    """The rows that go through the output layer, which is most of the work, at each step but the last: on a CPU those
    whose choice is fed back; on a GPU all rows, since selecting them would synchronize."""
    if keep_TB.device.type == "cpu":
        return [(~keep_B).nonzero().squeeze(1) for keep_B in keep_TB[1:]]
    return [torch.arange(keep_TB.shape[1], device=keep_TB.device)] * (len(keep_TB) - 1)


def _memory_for_logits(num_rows: int, weight: Tensor) -> Tensor | None:
    """Memory for the logits, [num_rows, V]; None if there are none or too many, or on a GPU, where selecting the rows
    would synchronize."""
    if num_rows == 0 or num_rows * len(weight) > MAX_CACHED_CELLS or weight.device.type != "cpu":
        return None
    return aligned_empty(num_rows, len(weight), like=weight)


def _brought_forward(positions_G: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """`batch.positions_N` and `batch.targets_N`, reordered to start with these positions."""
    targets = batch.tgt_out_BT.t().flatten()
    is_first = torch.zeros_like(targets, dtype=torch.bool).index_fill_(0, positions_G, True)
    # padding rows stay, whatever their position is
    is_other_N = (batch.targets_N == PAD) | ~is_first[batch.positions_N]
    positions = torch.cat([positions_G, batch.positions_N[is_other_N]])
    return positions, torch.cat([targets[positions_G], batch.targets_N[is_other_N]])
