"""Compressed attention maps for HTML files with thousands of them: 8 bits per weight, run-length-encoded zeros.

Shapes: T target positions, S source positions.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import numpy.typing as npt

from seq2seq_attn.translate.attention_map import AttentionMap

LEVELS = 255
"""a stored weight w stands for w / 255"""


@dataclass(frozen=True)
class PackedMap:
    """An attention map in 8 bits, row by row: weights 1 to 255 as one byte, a run of n zeros as the two bytes 0, n."""

    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    packed: bytes
    unknown: tuple[int, ...] = ()
    """positions of source tokens outside the vocabulary"""

    def levels_TS(self) -> npt.NDArray[np.uint8]:
        """The weights times 255, rounded."""
        values: list[int] = []
        position = 0
        while position < len(self.packed):
            value = self.packed[position]
            values += [value] if value else [0] * self.packed[position + 1]
            position += 1 if value else 2
        return np.array(values, dtype=np.uint8).reshape(len(self.target_tokens), len(self.source_tokens))

    def without_below(self, level: int) -> PackedMap:
        """The map with every weight below level / 255 set to 0."""
        levels_TS = self.levels_TS()
        levels_TS[levels_TS < level] = 0
        return replace(self, packed=_pack(levels_TS))

    def to_base64(self) -> str:
        """The packed bytes as text."""
        return base64.b64encode(self.packed).decode("ascii")


def pack_map(attention: AttentionMap) -> PackedMap:
    """Round the weights to multiples of 1/255 and pack them."""
    levels_TS = np.rint(np.clip(np.nan_to_num(attention.weights_TS), 0.0, 1.0) * LEVELS).astype(np.uint8)
    tokens = tuple(attention.source_tokens), tuple(attention.target_tokens)
    return PackedMap(*tokens, _pack(levels_TS), attention.unknown)


def _pack(levels_TS: npt.NDArray[np.uint8]) -> bytes:
    packed = bytearray()
    for value, run in groupby(levels_TS.ravel().tolist()):
        count = len([*run])
        if value:
            packed += bytes([value]) * count
        else:
            whole, rest = divmod(count, LEVELS)
            packed += bytes((0, LEVELS)) * whole + bytes((0, rest)) * (rest > 0)
    return bytes(packed)
