"""Attention maps: the attention weights of a translation, labeled with its tokens.

Pictures, pages and notebooks show the maps. HTML files with thousands of maps store them packed: 8
bits per weight, and zeros run-length-encoded.

Shapes: T target positions, S source positions.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.floating[Any]]
Bytes = npt.NDArray[np.uint8]
MAP_NOTE = (
    "Each row is a token of the translation, in order. The darker a cell, the more attention the "
    "model paid to that source token. Punctuation marks are tokens too; <eos> marks the end of a "
    "sentence."
)

MAX_CELLS = 10_000
"""maximum number of cells in a notebook's table; larger tables make a notebook slow"""
MAP_COLORS = ("#f4f6f9", "#0a3c7a")
"""colors of weights 0 and 1 in all attention maps; colors in between are interpolated linearly. If
weights are not normalized, the largest weight of a map has the color of 1"""
LEVELS = 255
"""a packed level n stands for the share n / 255 of the map's scale"""
UNKNOWN_COLOR = "#b04020"
_UNKNOWN = f"color:{UNKNOWN_COLOR};font-style:italic;"
_UPRIGHT = (
    "writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:2px;"
    "font-weight:normal;"
)
_LABEL = "text-align:right;padding:0 6px;font-weight:normal"
_SQUARE = "min-width:1.3em;height:1.3em;border:1px solid #fff;padding:0"


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Attention weights with a label for each row (a target token) and column (a source token).

    >>> [translation] = load("runs/quickstart").translate(["Der Hund schläft."])
    >>> attention = translation.attention_map()
    >>> weights = attention.weights_TS[attention.target_tokens.index("dog")]
    >>> attention.source_tokens[weights.argmax()], weights.shape
    ('Hund', (5,))

    A notebook shows the map as a table.
    """

    source_tokens: list[str]
    """source tokens as the model read them; `<eos>` is last, and ends each of several sources"""
    target_tokens: list[str]
    """target tokens; `<eos>` is last if the translation ended with EOS"""
    weights_TS: Weights
    """the attention weights [target tokens, source tokens] of each target token; rows sum to 1,
    unless the attention is no distribution over the source"""
    unknown: tuple[int, ...] = ()
    """positions of source tokens outside the vocabulary"""

    @property
    def scale(self) -> float:
        """The weight that has the darkest color, 1 or the largest weight if it is above 1."""
        largest = float(np.nan_to_num(self.weights_TS, posinf=0.0).max(initial=0.0))
        return largest if largest > 1.001 else 1.0

    @property
    def shares_TS(self) -> Weights:
        """The weights divided by `scale`, from 0 to 1. A weight of NaN counts as 0."""
        return np.asarray(np.clip(np.nan_to_num(self.weights_TS) / self.scale, 0.0, 1.0))

    def __repr__(self) -> str:
        num_target, num_source = self.weights_TS.shape
        return f"AttentionMap({num_target} target x {num_source} source tokens)"

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows.

        Source tokens are on top, target tokens on the left. The title of a cell is its weight.
        """
        if self.weights_TS.size > MAX_CELLS:
            num_target, num_source = self.weights_TS.shape
            return (
                f"<p>{num_target} x {num_source} weights are too many for a table; use plot().</p>"
            )
        head = ""
        for position, token in enumerate(self.source_tokens):
            style = _UPRIGHT + (_UNKNOWN if position in self.unknown else "")
            head += f'<th style="{style}">{html.escape(token)}</th>'
        rows = ""
        for token, shares_S in zip(self.target_tokens, self.shares_TS, strict=True):
            rows += f'<tr><th style="{_LABEL}">{html.escape(token)}</th>'
            for share, color in zip(shares_S.tolist(), map_colors(shares_S).tolist(), strict=True):
                background = "background:rgb({},{},{})".format(*color)
                title = f"{share * self.scale:.2f}"
                rows += f'<td title="{title}" style="{background};{_SQUARE}"></td>'
            rows += "</tr>"
        table = '<table style="border-collapse:collapse;font-size:small">'
        return f"{table}<tr><td></td>{head}</tr>{rows}</table>"


def map_colors(shares: Weights) -> Bytes:
    """Return the RGB color of each share of the scale, [..., 3]."""
    low, high = (np.array(list(bytes.fromhex(color[1:]))) for color in MAP_COLORS)
    colors: Bytes = np.rint(low + shares[..., None] * (high - low)).astype(np.uint8)
    return colors


@dataclass(frozen=True)
class PackedMap:
    """An attention map whose weights, as shares of `scale`, are rounded to 255 levels and stored
    row by row in bytes.

    A level from 1 to 255 takes one byte. A run of n zeros takes the two bytes 0 and n.
    """

    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    packed: bytes
    unknown: tuple[int, ...] = ()
    """positions of source tokens outside the vocabulary"""
    scale: float = 1.0

    def levels_TS(self) -> Bytes:
        """Return the weights as levels: divided by `scale`, multiplied by 255 and rounded."""
        levels = []
        packed = iter(self.packed)
        for level in packed:
            if level:
                levels.append(level)
            else:  # the next byte is the length of a run of zeros
                levels += [0] * next(packed)
        shape = (len(self.target_tokens), len(self.source_tokens))
        return np.array(levels, dtype=np.uint8).reshape(shape)

    def without_below(self, level: int) -> PackedMap:
        """Return a copy of the map in which every weight below `level` / 255 is 0."""
        levels_TS = self.levels_TS()
        levels_TS[levels_TS < level] = 0
        return replace(self, packed=_pack(levels_TS))


def pack_map(attention: AttentionMap) -> PackedMap:
    """Round the weights to multiples of `scale` / 255 and pack them."""
    return PackedMap(
        tuple(attention.source_tokens),
        tuple(attention.target_tokens),
        _pack(np.rint(attention.shares_TS * LEVELS).astype(np.uint8)),
        attention.unknown,
        attention.scale,
    )


def _pack(levels_TS: Bytes) -> bytes:
    """Return levels in the form of `PackedMap.packed`."""
    packed = bytearray()
    for level, run in groupby(levels_TS.ravel().tolist()):
        count = len(list(run))
        if level:
            packed += bytes([level]) * count
            continue
        full_runs, rest = divmod(count, LEVELS)
        packed += bytes([0, LEVELS]) * full_runs
        if rest:
            packed += bytes([0, rest])
    return bytes(packed)
