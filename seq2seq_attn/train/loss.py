"""The loss of a batch."""

from __future__ import annotations

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.output.base import BatchLoss
from seq2seq_attn.model.seq2seq import Seq2Seq


def batch_loss(
    model: Seq2Seq, batch: Batch, *, label_smoothing: float = 0.0, teacher_forcing_ratio: float = 1.0
) -> BatchLoss:
    """Run the model on a batch and sum its loss. Dropout and fed-back tokens draw from the global generator."""
    outputs = model(batch, teacher_forcing_ratio)
    return model.output.loss(outputs, batch, label_smoothing=label_smoothing)
