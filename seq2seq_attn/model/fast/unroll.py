"""The teacher-forced pass of the decoders `bahdanau` and `conditional` with GRUs, with as much work as possible outside
the recurrence.

Shapes: B sentence pairs, T steps, E embedding size, H hidden size, M context size, S source positions,
N target tokens, padded to a multiple.
"""

from collections.abc import Callable
from typing import cast

from torch import Tensor, nn

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.decoder.bahdanau import Bahdanau
from seq2seq_attn.model.decoder.base import Memory, State
from seq2seq_attn.model.decoder.conditional import Conditional
from seq2seq_attn.model.fast.attention_gru import FirstGRU, unroll_attention_gru, weighted_sums
from seq2seq_attn.model.fast.gru import gru_unroll
from seq2seq_attn.model.fast.known import FixedContext, context_cell, has_known_cells, known_score, token_cell
from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.model.seq2seq import Recorded, Seq2Seq
from seq2seq_attn.model.speed import offer

Unroll = Callable[[Seq2Seq, Batch], DecoderOutputs]


@offer("unroll")
def offer_unroll(model: Seq2Seq, teacher_forcing_ratio: float) -> Unroll | None:
    """Offer the fast pass if it supports the decoder, cells and scores, and every step reads the reference token."""
    decoder, score = model.decoder, known_score(model.decoder.attention)
    if teacher_forcing_ratio < 1.0 or score is None:
        return None
    if isinstance(score, FixedContext) and type(decoder) is Conditional:
        return None
    return unroll if has_known_cells(decoder) else None


def unroll(model: Seq2Seq, batch: Batch) -> DecoderOutputs:
    """The same as `seq2seq.unroll` with a ratio of 1, faster."""
    decoder = cast(Bahdanau | Conditional, model.decoder)
    memory, state = model.prepare(batch.source)
    if isinstance(state, Recorded):
        state = state.decoder
    read_ids_TB = model.replace_copied(batch.tgt_in_BT.t())
    embedded_TBE = model.embedding(read_ids_TB)
    hidden_TBH, contexts_TBM, weights_TBS = unroll_decoder(decoder, embedded_TBE, state, memory)
    steps = (hidden_TBH, contexts_TBM, embedded_TBE)
    rows = (tensor.flatten(0, 1).index_select(0, batch.positions_N) for tensor in steps)
    features_NF = decoder.readout(*rows)
    positions_N, targets_N = batch.positions_N, batch.targets_N
    outputs = DecoderOutputs(
        features_NF, positions_N, targets_N, *steps, weights_TBS, memory, output=model.output, batch=batch
    )
    return outputs._replace(read_ids_TB=read_ids_TB) if model.output.needs_history else outputs


def unroll_decoder(
    decoder: Bahdanau | Conditional, embedded_TBE: Tensor, state: State, memory: Memory
) -> tuple[Tensor, Tensor, Tensor]:
    """`hidden_TBH`, `contexts_TBM` and `weights_TBS` of all steps."""
    score, cell = known_score(decoder.attention), context_cell(decoder)
    hidden_BH, context_weight_PM = cell.hidden(state.cell), cell.input_weights[-1]
    # the embeddings' part of the gates of the cell that reads them: the first of two, or the only one
    reader, first = token_cell(decoder) or cell, None
    gates_TBP = nn.functional.linear(embedded_TBE, reader.input_weights[0], reader.input_bias_P)
    if reader is not cell:
        first = FirstGRU(gates_TBP, reader.recurrent_weight_PH, reader.recurrent_bias_P)
        gates_TBP = cell.input_bias_P.expand(gates_TBP.shape)
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
        score, gates_TBP, hidden_BH, keys.keys_BSA, projected_BSP, keys.mask_BS, *recurrent, first
    )
    return states_TBH, weighted_sums(weights_TBS, keys.values_BSM), weights_TBS
