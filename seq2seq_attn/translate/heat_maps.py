"""Heat maps of attention: a figure with a grid of attention maps, one for each sentence.

All maps have cells of the same size and the same color scale, from 0 to 1 or to the largest weight
above 1.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seq2seq_attn.text.normalize import display_width, visible
from seq2seq_attn.translate.attention_map import MAP_COLORS, MAP_NOTE, UNKNOWN_COLOR, AttentionMap
from seq2seq_attn.translate.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELL = 0.21
"""side of a weight's cell in inches, which leaves room for a label of 8 points"""
_CHARACTERS_PER_INCH = 15.5
"""average for text of 8 points"""
_LINE = 0.16
"""height of a line of text in inches"""
_MARGIN = 0.6
"""inches for the axis label of a map and its distance to the next map"""
_BAR = 0.9
"""inches for the color bar and its labels"""
_MIN_WIDTH = 10
"""minimum number of cells in the width of a column, so that the explanation fits"""


def attention_figure(maps: Sequence[AttentionMap], titles: Sequence[str] = ()) -> Figure:
    """Draw heat maps, with source tokens on top and target tokens on the left.

    The title of each map is drawn above it, for example the translated sentence.

    Raises:
        ValueError: there are no maps.
    """
    if not maps:
        raise ValueError("no attention to draw")
    num_columns = math.ceil(math.sqrt(len(maps)))
    widths = [_MIN_WIDTH] * num_columns  # cells of each column
    heights = [1] * math.ceil(len(maps) / num_columns)  # cells of each row
    for number, attention in enumerate(maps):
        row, column = divmod(number, num_columns)
        num_target, num_source = attention.weights_TS.shape
        widths[column] = max(widths[column], num_source)
        heights[row] = max(heights[row], num_target)
    label = _longest_label(maps) / _CHARACTERS_PER_INCH
    width = _CELL * sum(widths) + (label + _MARGIN) * len(widths) + _BAR
    height = _CELL * sum(heights) + (label + _MARGIN + 3 * _LINE) * len(heights)
    note = textwrap.wrap(MAP_NOTE, int(width * _CHARACTERS_PER_INCH))
    figure = new_figure(width, height + _LINE * len(note))
    figure.set_layout_engine("constrained")
    grid = figure.add_gridspec(
        len(heights), len(widths), width_ratios=widths, height_ratios=heights
    )
    scale = max(attention.scale for attention in maps)
    for number, attention in enumerate(maps):
        row, column = divmod(number, num_columns)
        axes = figure.add_subplot(grid[row, column])
        _draw(axes, attention, titles[number] if titles else "", scale)
        # Axes of the size of their column and row give all maps cells of the same size.
        axes.set(xlim=(0, widths[column]), ylim=(heights[row], 0))
    bar = figure.colorbar(
        axes.collections[0], ax=figure.axes, anchor=(0.0, 1.0), aspect=13, shrink=0.5
    )
    bar.set_label("attention weight", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    figure.supxlabel("\n".join(note), x=0.01, ha="left", fontsize=8, color="0.35")
    return figure


def _longest_label(maps: Sequence[AttentionMap]) -> int:
    """Return the width in characters of the longest token."""
    longest = 0
    for attention in maps:
        for token in (*attention.source_tokens, *attention.target_tokens):
            longest = max(longest, display_width(visible(token)))
    return longest


def _draw(axes: Axes, attention: AttentionMap, title: str, scale: float) -> None:
    """Draw a heat map with its labels and title. `scale` is the weight of the darkest color."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("attention", MAP_COLORS)
    axes.pcolormesh(
        attention.weights_TS, cmap=colors, vmin=0.0, vmax=scale, edgecolors="0.9", linewidth=0.5
    )
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    # Without parse_math=False, a `$` in a token would start a formula.
    style: dict[str, Any] = {"fontsize": 8, "parse_math": False}
    num_target, num_source = attention.weights_TS.shape
    source_tokens = [visible(token) for token in attention.source_tokens]
    target_tokens = [visible(token) for token in attention.target_tokens]
    axes.set_xticks(np.arange(num_source) + 0.5, source_tokens, rotation=90, **style)
    axes.set_yticks(np.arange(num_target) + 0.5, target_tokens, **style)
    axes.set_xlabel("source", loc="left", fontsize=8, color="0.35")
    axes.set_ylabel("translation", loc="top", fontsize=8, color="0.35")
    for position in attention.unknown:
        axes.get_xticklabels()[position].set(color=UNKNOWN_COLOR, fontstyle="italic")
    if attention.unknown:
        axes.xaxis.label.set(text="source (in italics: unknown to the model)", color=UNKNOWN_COLOR)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    num_characters = max(24, int(_CELL * num_source * _CHARACTERS_PER_INCH))
    lines = textwrap.wrap(visible(" ".join(title.split())), num_characters, max_lines=3)
    axes.set_title("\n".join(lines), loc="left", fontsize=9, parse_math=False)
