"""Fast paths: quicker versions of plain functions of `model/` for some combinations of variants.

Each file registers its fast paths with `model/speed.py`. Without this folder, everything except
int8 works, but more slowly.
"""

from seq2seq_attn.model.fast import cross_entropy, step, unroll

__all__ = ["cross_entropy", "step", "unroll"]
