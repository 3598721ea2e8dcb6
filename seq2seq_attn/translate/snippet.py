"""Attention maps as self-contained HTML tables for notebooks.

Shapes: T target positions, S source positions.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_CELLS = 10_000
"""maximum number of cells in a table; larger tables make a notebook slow"""
MAP_COLORS = ("#f4f6f9", "#0a3c7a")
"""colors of weights 0 and 1 in all attention maps; interpolated linearly in between"""
UNKNOWN_COLOR = "#b04020"
_UNKNOWN = f"color:{UNKNOWN_COLOR};font-style:italic;"


def html_map(
    weights_TS: npt.NDArray[np.floating[Any]],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    unknown: Collection[int] = (),
) -> str:
    """The weights as a table: source tokens on top, target tokens on the left, each weight as its cell's title."""
    if weights_TS.size > MAX_CELLS:
        num_target, num_source = weights_TS.shape
        return f"<p>{num_target} x {num_source} weights are too many for a table; use plot().</p>"
    upright = "writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:2px;font-weight:normal;"
    head = "".join(
        f'<th style="{upright}{_UNKNOWN if position in unknown else ""}">{html.escape(token)}</th>'
        for position, token in enumerate(source_tokens)
    )
    rows = "".join(
        f'<tr><th style="text-align:right;padding:0 6px;font-weight:normal">{html.escape(token)}</th>{_cells(row)}</tr>'
        for token, row in zip(target_tokens, weights_TS, strict=True)
    )
    table = '<table style="border-collapse:collapse;font-size:small">'
    return f"{table}<tr><td></td>{head}</tr>{rows}</table>"


def map_colors(weights: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.uint8]:
    """The color of each weight, [..., 3]."""
    low, high = (np.array(list(bytes.fromhex(color[1:]))) for color in MAP_COLORS)
    colors: npt.NDArray[np.uint8] = np.rint(low + _shares(weights)[..., None] * (high - low)).astype(np.uint8)
    return colors


def _shares(weights: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """The weights from 0 to 1; NaN counts as 0."""
    shares: npt.NDArray[np.floating[Any]] = np.clip(np.nan_to_num(weights), 0.0, 1.0)
    return shares


def _cells(row_S: npt.NDArray[np.floating[Any]]) -> str:
    weights_S = _shares(row_S)
    colors_S3 = map_colors(row_S).tolist()
    size = "min-width:1.3em;height:1.3em;border:1px solid #fff;padding:0"
    return "".join(
        f'<td title="{weight:.2f}" style="background:rgb({red},{green},{blue});{size}"></td>'
        for weight, (red, green, blue) in zip(weights_S.tolist(), colors_S3, strict=True)
    )
