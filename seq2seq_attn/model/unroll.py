"""Ways through the decoder, one function: all steps of target sentences whose inputs are known.

`unroll_plain` is the reference, step after step, for every variant; `unroll_fast` takes what can leave the recurrence
out of it, for the variants whose score it knows (`Attention.fast_score`); `unroll_deferred` is the plain loop with
weight gradients at its end, for those it does not know. `unroll` chooses.

Shapes: T steps, B sentence pairs, S source positions, H hidden size, M memory size, E embedding size.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.model.attention.base import FixedContext, Memory, State
from seq2seq_attn.model.decoder import Decoder, DecoderState
from seq2seq_attn.model.deferred import deferred_weight_gradients
from seq2seq_attn.model.fast_unroll import unroll_attention_gru
from seq2seq_attn.model.gru import gru_unroll


class Unrolled(NamedTuple):
    """What the steps made; `states_TBH[t]` is the state after step t, which predicts token t."""

    states_TBH: Tensor
    contexts_TBM: Tensor
    weights_TBS: Tensor


def unroll(decoder: Decoder, embedded_TBE: Tensor, hidden_BH: Tensor, memory: Memory, state: State) -> Unrolled:
    """The fastest way that the decoder's attention allows."""
    way = unroll_deferred if decoder.attention.fast_score() is None else unroll_fast
    return way(decoder, embedded_TBE, hidden_BH, memory, state)


def unroll_plain(decoder: Decoder, embedded_TBE: Tensor, hidden_BH: Tensor, memory: Memory, state: State) -> Unrolled:
    """`Decoder.step` after `Decoder.step`: what search does."""
    decoder_state = DecoderState(hidden_BH, state)
    states, contexts, weights = [], [], []
    for embedded_BE in embedded_TBE:
        context_BM, decoder_state = decoder.step(embedded_BE, decoder_state, memory)
        states.append(decoder_state.hidden_BH)
        contexts.append(context_BM)
        weights.append(decoder_state.attention.weights_BS)
    return Unrolled(torch.stack(states), torch.stack(contexts), torch.stack(weights))


def unroll_deferred(
    decoder: Decoder, embedded_TBE: Tensor, hidden_BH: Tensor, memory: Memory, state: State
) -> Unrolled:
    """The plain loop, each weight's gradient one product over all steps."""
    with deferred_weight_gradients():
        return unroll_plain(decoder, embedded_TBE, hidden_BH, memory, state)


def unroll_fast(decoder: Decoder, embedded_TBE: Tensor, hidden_BH: Tensor, memory: Memory, state: State) -> Unrolled:
    """The same with the work of all steps done at once wherever no step waits for another."""
    score = decoder.attention.fast_score()
    assert score is not None
    gates_TBP = decoder.embedding_projection(embedded_TBE)
    recurrent = (decoder.recurrent_weight_PH, decoder.recurrent_bias_P)
    if isinstance(score, FixedContext):
        context_BM, fixed = decoder.attention.attend(hidden_BH, memory, state)
        gates_TBP = gates_TBP + decoder.project_contexts(context_BM)
        states_TBH = gru_unroll(
            gates_TBP.unsqueeze(1), hidden_BH.unsqueeze(0), recurrent[0].unsqueeze(0), recurrent[1].unsqueeze(0)
        ).squeeze(1)
        num_steps = len(states_TBH)
        return Unrolled(states_TBH, context_BM.expand(num_steps, -1, -1), fixed.weights_BS.expand(num_steps, -1, -1))
    assert memory.keys_BSA is not None
    projected_BSP = decoder.project_contexts(memory.values_BSM)
    states_TBH, weights_TBS = unroll_attention_gru(
        score, gates_TBP, hidden_BH, memory.keys_BSA, projected_BSP, memory.mask_BS, *recurrent
    )
    weights_BTS = weights_TBS.transpose(0, 1).to(memory.values_BSM.dtype)
    contexts_TBM = torch.bmm(weights_BTS, memory.values_BSM).transpose(0, 1)
    return Unrolled(states_TBH, contexts_TBM, weights_TBS)
