"""Unroll the decoder over a batch of target sentences, for training.

Shapes: B sentence pairs, T steps, N target tokens, padded to a multiple.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.output.base import Outputs
from seq2seq_attn.text.vocab import PAD

if TYPE_CHECKING:
    from seq2seq_attn.model.seq2seq import Seq2Seq


def unroll(model: Seq2Seq, batch: Batch, teacher_forcing_ratio: float) -> Outputs:
    """All decoder steps, with teacher forcing or scheduled sampling.

    With a ratio below 1, each input token but the first is replaced by the model's greedy choice with probability
    1 - ratio, drawn per token (Bengio et al. 2015, section 2.4). Padding stays padding.
    """
    memory, state = model.prepare(batch.source)
    tgt_in_TB = batch.tgt_in_BT.t()
    keep_TB = _draw_forcing(tgt_in_TB, teacher_forcing_ratio)
    steps: list[StepOutput] = []
    read: list[Tensor] = []
    ids_B = tgt_in_TB[0]
    for t in range(len(tgt_in_TB)):
        step = model.step(ids_B, state, memory)
        state = step.state
        steps.append(step._replace(state=None, history=None))
        read.append(model.replace_copied(ids_B))
        if t + 1 < len(tgt_in_TB):
            ids_B = tgt_in_TB[t + 1]
            if keep_TB is not None:
                choice_B = model.output.log_probs(step, memory).argmax(dim=-1)  # without gradient, as any index
                ids_B = torch.where(keep_TB[t + 1], ids_B, choice_B)
    outputs = _outputs(model, steps, batch, memory)
    if model.output.needs_history:
        outputs = outputs._replace(read_ids_TB=torch.stack(read))
    return outputs


def _draw_forcing(tgt_in_TB: Tensor, ratio: float) -> Tensor | None:
    """Bool [T, B], True = feed the reference token; None: always."""
    if ratio >= 1.0:
        return None
    return (torch.rand(tgt_in_TB.shape, device=tgt_in_TB.device) < ratio) | (tgt_in_TB == PAD)


def _outputs(model: Seq2Seq, steps: list[StepOutput], batch: Batch, memory: Memory) -> Outputs:
    features_TBF = torch.stack([step.features_BF for step in steps])
    return Outputs(
        features_NF=features_TBF.flatten(0, 1).index_select(0, batch.positions_N),
        positions_N=batch.positions_N,
        targets_N=batch.targets_N,
        hidden_TBH=torch.stack([step.hidden_BH for step in steps]),
        contexts_TBM=torch.stack([step.context_BM for step in steps]),
        embedded_TBE=torch.stack([step.embedded_BE for step in steps]),
        weights_TBS=torch.stack([step.weights_BS for step in steps]),
        memory=memory,
        output=model.output,
        batch=batch,
        extra=_stacked([step.extra for step in steps]),
    )


def _stacked(extras: list[Any]) -> Any:
    """The named tuples of all steps as one, whose tensors are [T, B, ...]; None if there are none."""
    return None if extras[0] is None else type(extras[0])(*map(torch.stack, zip(*extras, strict=True)))
