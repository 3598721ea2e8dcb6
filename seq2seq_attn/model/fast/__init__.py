"""Quicker versions of plain functions of `model/`, for the combinations that they know.

Each file offers its own through `model/speed.py`. Deleting this folder costs speed and nothing else.
"""

from seq2seq_attn.model.fast import cross_entropy, recurrence, step, unroll

__all__ = ["cross_entropy", "recurrence", "step", "unroll"]
