"""Heat maps of attention: a grid of sentences, with cells of one size and one color scale from 0 to 1.

Each map is first drawn in a corner and measured with its labels; then the maps are arranged in columns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from seq2seq_attn.text.normalize import visible
from seq2seq_attn.translate.attention_map import MAP_COLORS, MAP_NOTE, UNKNOWN_COLOR, AttentionMap
from seq2seq_attn.translate.figure import any_script, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELL = 0.21
"""inches; fits a label of 8 points"""
_GAP = 0.3
_BAR_WIDTH, _BAR_HEIGHT, _BAR_ROOM = 0.12, 1.6, 0.75
_CHARACTERS_PER_INCH = 15.5
"""average for text of 8 points"""
_ASPECT = 1.4
"""target width / height of the grid"""


class _Box(NamedTuple):
    """The size of a map in inches: its cells, and the margins for labels on the left, top, right and bottom."""

    width: float
    height: float
    left: float
    top: float
    right: float
    bottom: float


class _Grid:
    """Maps in `num_columns` columns, row by row; sizes in inches."""

    def __init__(self, num_columns: int, boxes: Sequence[_Box]) -> None:
        self.num_columns, self.boxes = num_columns, boxes
        columns = [boxes[index::num_columns] for index in range(min(num_columns, len(boxes)))]
        rows = [boxes[start : start + num_columns] for start in range(0, len(boxes), num_columns)]
        self.widths = [(max(box.left for box in one), max(box.width + box.right for box in one)) for one in columns]
        """for each column, the left margin and the rest"""
        self.heights = [(max(box.top for box in one), max(box.height + box.bottom for box in one)) for one in rows]
        """for each row, the top margin and the rest"""
        self.size = tuple(sum(a + b + _GAP for a, b in edges) for edges in (self.widths, self.heights))


def attention_figure(maps: Sequence[AttentionMap], titles: Sequence[str] = ()) -> Figure:
    """Heat maps: source tokens on top, target tokens on the left, the title (the sentence) above each.

    Raises:
        ValueError: there are no maps.
    """
    if not maps:
        raise ValueError("no attention to draw")
    figure = new_figure(10.0, 10.0)
    every = [
        _draw(figure, attention, title)
        for attention, title in zip(maps, [*titles, *[""] * (len(maps) - len(titles))], strict=True)
    ]
    with any_script(figure):
        boxes = [_measure(figure, axes) for axes in every]
    candidates = [_Grid(num_columns, boxes) for num_columns in range(1, len(maps) + 1)]
    _arrange(figure, every, min(candidates, key=lambda grid: max(grid.size[0] / _ASPECT, grid.size[1])))
    return figure


def _draw(figure: Figure, attention: AttentionMap, title: str) -> Axes:
    from matplotlib.colors import LinearSegmentedColormap

    num_target, num_source = attention.weights_TS.shape
    width, height = figure.get_size_inches()
    axes = figure.add_axes((0, 0, _CELL * num_source / width, _CELL * num_target / height))
    colors = LinearSegmentedColormap.from_list("attention", MAP_COLORS)
    axes.imshow(attention.weights_TS, cmap=colors, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    # parse_math=False: a `$` in a token would start a formula
    source_tokens, target_tokens = (
        [*map(visible, tokens)] for tokens in (attention.source_tokens, attention.target_tokens)
    )
    axes.set_xticks(range(num_source), source_tokens, rotation=90, fontsize=8, parse_math=False)
    axes.set_yticks(range(num_target), target_tokens, fontsize=8, parse_math=False)
    axes.set_xlabel("source", fontsize=8, color="0.35")
    axes.set_ylabel("translation", fontsize=8, color="0.35")
    for position in attention.unknown:
        axes.get_xticklabels()[position].set(color=UNKNOWN_COLOR, fontstyle="italic")
    if attention.unknown:
        axes.set_xlabel("source (in italics: unknown to the model)", fontsize=8, color=UNKNOWN_COLOR)
    axes.set_xticks(np.arange(num_source + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(num_target + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="0.9", linewidth=0.5)
    axes.tick_params(which="both", length=0)
    lines = textwrap.wrap(
        visible(" ".join(title.split())), max(24, int(_CELL * num_source * _CHARACTERS_PER_INCH)), max_lines=3
    )
    axes.set_title("\n".join(lines), loc="left", fontsize=9, parse_math=False)
    return axes


def _measure(figure: Figure, axes: Axes) -> _Box:
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    whole, cells = axes.get_tightbbox(renderer), axes.get_window_extent(renderer)
    if whole is None:
        raise ValueError("the map is not visible")
    edges = (cells.x0 - whole.x0, whole.y1 - cells.y1, whole.x1 - cells.x1, cells.y0 - whole.y0)
    return _Box(*(inches / figure.dpi for inches in (cells.width, cells.height, *edges)))


def _arrange(figure: Figure, every: Sequence[Axes], grid: _Grid) -> None:
    """Arrange the maps in the grid, with the color bar on its right and the explanation below."""
    room, height = grid.size
    width = max(room, 4.0) + _BAR_ROOM
    note = textwrap.wrap(MAP_NOTE, int((width - _GAP) * _CHARACTERS_PER_INCH))
    height = max(height, _BAR_HEIGHT + 2 * _GAP) + 0.16 * len(note) + _GAP
    figure.set_size_inches(width, height)

    def place(axes: Axes, left: float, top: float, size: tuple[float, float]) -> None:
        axes.set_position((left / width, 1 - (top + size[1]) / height, size[0] / width, size[1] / height))

    top = _GAP / 2
    for number, (above, below) in enumerate(grid.heights):
        left = _GAP / 2
        for column, (before, after) in enumerate(grid.widths):
            if (which := number * grid.num_columns + column) < len(every):
                box = grid.boxes[which]
                place(every[which], left + before, top + above, (box.width, box.height))
            left += before + after + _GAP
        top += above + below + _GAP
    bar = figure.add_axes((0, 0, 1, 1))
    figure.colorbar(every[0].images[0], cax=bar)
    place(bar, width - _BAR_ROOM, _GAP, (_BAR_WIDTH, _BAR_HEIGHT))
    bar.set_ylabel("attention weight", fontsize=8)
    bar.tick_params(labelsize=7)
    figure.text(_GAP / 2 / width, _GAP / 2 / height, "\n".join(note), fontsize=8, color="0.35", va="bottom")
