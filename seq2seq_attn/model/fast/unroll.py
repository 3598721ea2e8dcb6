"""The models that fast paths support, and the teacher-forced pass of their decoders, with as much
work as possible outside the recurrence.

Fast paths support the decoders `bahdanau` and `conditional` with GRUs of one layer; `conditional`
has two cells. Subclasses are not supported, because their steps may differ.

Shapes: B sentence pairs, T steps, E embedding size, H hidden size, M context size, S source
positions.
"""

from collections.abc import Callable
from typing import cast

from torch import Tensor, nn

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.attention.additive import Additive
from seq2seq_attn.model.attention.base import Attended, Attention
from seq2seq_attn.model.attention.bilinear import Bilinear
from seq2seq_attn.model.attention.dot import Dot
from seq2seq_attn.model.attention.fixed import Fixed
from seq2seq_attn.model.attention.initial import InitialOnly
from seq2seq_attn.model.attention.key_value import KeyValue
from seq2seq_attn.model.attention.scaled_dot import ScaledDot
from seq2seq_attn.model.attention.slots import Slots
from seq2seq_attn.model.attention.uniform import Uniform
from seq2seq_attn.model.cell.base import run_cell
from seq2seq_attn.model.cell.gru import GRU
from seq2seq_attn.model.decoder.bahdanau import Bahdanau
from seq2seq_attn.model.decoder.base import Decoder, Memory, State
from seq2seq_attn.model.decoder.conditional import Conditional
from seq2seq_attn.model.fast.attention_gru import Score, unroll_attention_gru, weighted_sums
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.model.seq2seq import Recorded, Seq2Seq
from seq2seq_attn.model.speed import offer

CONSTANT = (Fixed, InitialOnly, Uniform)
"""attentions whose context is the same at every step"""
SCORED = (Additive, Bilinear, Dot, KeyValue, ScaledDot, Slots)
Unroll = Callable[[Seq2Seq, Batch], DecoderOutputs]


def known_score(attention: Attention) -> Score | None:
    """Return the score of an attention. The score is empty if the context is constant. Return None
    if there is no fast path for the attention, or its normalizer is not softmax."""
    if type(attention) in CONSTANT:
        return Score()
    if (
        type(attention) not in SCORED
        or getattr(attention, "normalizer", None) is not softmax.weights
    ):
        return None
    if isinstance(attention, Additive | KeyValue | Slots):
        return Score(attention.query_projection.weight, attention.score_weight_A)
    if isinstance(attention, ScaledDot):
        return Score(attention.query_projection.weight, scale=attention.scale)
    return Score()


def known_parts(decoder: Decoder) -> tuple[GRU | None, GRU, Score] | None:
    """Return the GRU that reads the previous token before attention is queried, or None if there is
    no such GRU; the GRU that reads the context; and the score of the attention. Return None if fast
    paths do not support the decoder, a cell or the attention."""
    if type(decoder) is Conditional:
        cells = [decoder.first_cell, decoder.second_cell]
    elif type(decoder) is Bahdanau:
        cells = [decoder.cell]
    else:
        return None
    score = known_score(decoder.attention)
    if score is None or any(type(cell) is not GRU for cell in cells):
        return None
    *first, cell = cast(list[GRU], cells)
    return (first[0] if first else None), cell, score


@offer("unroll")
def offer_unroll(model: Seq2Seq, teacher_forcing_ratio: float) -> Unroll | None:
    """Offer the fast pass if it supports the decoder, cells and scores, and every step reads the
    reference token."""
    parts = known_parts(model.decoder)
    if teacher_forcing_ratio < 1.0 or parts is None or not model.encoder.keeps_positions:
        return None
    return None if parts[0] is not None and type(model.decoder.attention) in CONSTANT else unroll


def unroll(model: Seq2Seq, batch: Batch) -> DecoderOutputs:
    """Compute the results of `seq2seq.unroll` with a ratio of 1, faster."""
    decoder = cast(Bahdanau | Conditional, model.decoder)
    memory, state = model.prepare(batch.source)
    if isinstance(state, Recorded):
        state = state.decoder
    read_ids_TB = model.replace_copied(batch.tgt_in_BT.t())
    embedded_TBE = model.embedding(read_ids_TB)
    hidden_TBH, contexts_TBM, weights_TBS = unroll_decoder(decoder, embedded_TBE, state, memory)
    steps = (hidden_TBH, contexts_TBM, embedded_TBE)
    return DecoderOutputs(
        decoder.readout(*steps).flatten(0, 1),
        *steps,
        weights_TBS,
        memory,
        output=model.output,
        batch=batch,
        read_ids_TB=read_ids_TB if model.output.needs_history else None,
    )


def unroll_decoder(
    decoder: Bahdanau | Conditional, embedded_TBE: Tensor, state: State, memory: Memory
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `hidden_TBH`, `contexts_TBM` and `weights_TBS` of all steps."""
    parts = known_parts(decoder)
    assert parts is not None
    first, cell, score = parts
    hidden_BH = cell.hidden(state.cell)
    context_weight_PM = cell.input_weights[-1]
    # The embeddings enter the gates of the cell that reads them: the first of two cells, or the
    # only cell.
    reader = first or cell
    gates_TBP = nn.functional.linear(embedded_TBE, reader.input_weights[0], reader.input_bias_P)
    first_gru: tuple[Tensor, ...] = ()
    if first is not None:
        first_gru = (gates_TBP, first.recurrent_weight_PH, first.recurrent_bias_P)
        gates_TBP = cell.input_bias_P.expand(gates_TBP.shape)
    keys = memory.attention
    if isinstance(keys, Attended):  # attention gives this result at every step
        gates_TBP = gates_TBP + nn.functional.linear(keys.context_BM, context_weight_PM)
        states_TBH = run_cell(cell, gates_TBP, hidden_BH)
        contexts_TBM = keys.context_BM.expand(len(states_TBH), -1, -1)
        return states_TBH, contexts_TBM, keys.weights_BS.expand(len(states_TBH), -1, -1)
    states_TBH, weights_TBS = unroll_attention_gru(
        score,
        hidden_BH,
        keys.keys_BSA,
        nn.functional.linear(keys.values_BSM, context_weight_PM),
        keys.mask_BS,
        (gates_TBP, cell.recurrent_weight_PH, cell.recurrent_bias_P),
        first_gru,
    )
    return states_TBH, weighted_sums(weights_TBS, keys.values_BSM), weights_TBS
