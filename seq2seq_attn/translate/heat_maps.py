"""Heat maps of attention: a figure with a grid of attention maps, one for each sentence.

All maps have cells of the same size and the same color scale, from 0 to 1 or to the largest weight
above 1. Each map is first drawn
in a corner of the figure and measured with its labels. Then the maps are arranged in columns.

Shapes: N maps (in `_extent` and `_starts`, columns or rows of the grid).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text.normalize import visible
from seq2seq_attn.translate.attention_map import MAP_COLORS, MAP_NOTE, UNKNOWN_COLOR, AttentionMap
from seq2seq_attn.translate.figure import any_script, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = npt.NDArray[np.float64]

_CELL = 0.21
"""side of a weight's cell in inches, which leaves room for a label of 8 points"""
_GAP = 0.3
"""inches between maps"""
_BAR_WIDTH = 0.12
"""inches"""
_BAR_HEIGHT = 1.6
"""inches"""
_BAR_ROOM = 0.75
"""width in inches that the color bar takes with its labels"""
_CHARACTERS_PER_INCH = 15.5
"""average for text of 8 points"""
_ASPECT = 1.4
"""wanted width / height of the grid"""


def attention_figure(maps: Sequence[AttentionMap], titles: Sequence[str] = ()) -> Figure:
    """Draw heat maps, with source tokens on top and target tokens on the left.

    The title of each map is drawn above it, for example the translated sentence.

    Raises:
        ValueError: there are no maps.
    """
    if not maps:
        raise ValueError("no attention to draw")
    figure = new_figure(10.0, 10.0)
    scale = max(attention.scale for attention in maps)
    all_axes = []
    for number, attention in enumerate(maps):
        title = titles[number] if number < len(titles) else ""
        all_axes.append(_draw(figure, attention, title, scale))
    with any_script(figure):
        boxes_N4 = np.array([_measure(figure, axes) for axes in all_axes])
    grids = [_grid(boxes_N4, num_columns) for num_columns in range(1, len(maps) + 1)]
    _arrange(figure, all_axes, min(grids, key=_size))
    return figure


def _size(grid: tuple[FloatArray, FloatArray]) -> float:
    """Return the height in inches of the smallest area with the wanted aspect that holds a grid."""
    columns, rows = grid
    return max(_extent(columns) / _ASPECT, _extent(rows))


def _extent(edges_N2: FloatArray) -> float:
    """Return the width of all columns, or the height of all rows, with the gaps."""
    return float((edges_N2.sum(axis=1) + _GAP).sum())


def _grid(boxes_N4: FloatArray, num_columns: int) -> tuple[FloatArray, FloatArray]:
    """Return the sizes of the columns and rows of a grid whose rows are filled in order.

    Args:
        boxes_N4: the sizes of each map that `_measure` returns.
        num_columns: the number of maps in a row of the grid.

    Returns:
        For each column, [columns, 2], the widths left of the cells and from their left edge on.
        For each row, [rows, 2], the heights above the cells and from their top edge down.
    """
    columns = [boxes_N4[column::num_columns, :2].max(axis=0) for column in range(num_columns)]
    rows = [
        boxes_N4[start : start + num_columns, 2:].max(axis=0)
        for start in range(0, len(boxes_N4), num_columns)
    ]
    return np.array(columns), np.array(rows)


def _starts(edges_N2: FloatArray) -> FloatArray:
    """Return the positions in inches where the cells of each column, or of each row, begin."""
    ends = (edges_N2.sum(axis=1) + _GAP).cumsum()
    return np.asarray(_GAP / 2 + ends - _GAP - edges_N2[:, 1])


def _draw(figure: Figure, attention: AttentionMap, title: str, scale: float) -> Axes:
    from matplotlib.colors import LinearSegmentedColormap

    num_target, num_source = attention.weights_TS.shape
    width, height = figure.get_size_inches()
    axes = figure.add_axes((0, 0, _CELL * num_source / width, _CELL * num_target / height))
    colors = LinearSegmentedColormap.from_list("attention", MAP_COLORS)
    axes.imshow(
        attention.weights_TS,
        cmap=colors,
        vmin=0.0,
        vmax=scale,
        aspect="auto",
        interpolation="nearest",
    )
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    # Without parse_math=False, a `$` in a token would start a formula.
    style: dict[str, Any] = {"fontsize": 8, "parse_math": False}
    source_tokens = [visible(token) for token in attention.source_tokens]
    target_tokens = [visible(token) for token in attention.target_tokens]
    axes.set_xticks(range(num_source), source_tokens, rotation=90, **style)
    axes.set_yticks(range(num_target), target_tokens, **style)
    axes.set_xlabel("source", fontsize=8, color="0.35")
    axes.set_ylabel("translation", fontsize=8, color="0.35")
    for position in attention.unknown:
        axes.get_xticklabels()[position].set(color=UNKNOWN_COLOR, fontstyle="italic")
    if attention.unknown:
        axes.set_xlabel(
            "source (in italics: unknown to the model)", fontsize=8, color=UNKNOWN_COLOR
        )
    axes.set_xticks(np.arange(num_source + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(num_target + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="0.9", linewidth=0.5)
    axes.tick_params(which="both", length=0)
    num_characters = max(24, int(_CELL * num_source * _CHARACTERS_PER_INCH))
    lines = textwrap.wrap(visible(" ".join(title.split())), num_characters, max_lines=3)
    axes.set_title("\n".join(lines), loc="left", fontsize=9, parse_math=False)
    return axes


def _measure(figure: Figure, axes: Axes) -> tuple[float, float, float, float]:
    """Return four sizes of a map with its labels, in inches.

    They are the width left of the cells, the width from their left edge on, the height above the
    cells, and the height from their top edge down.
    """
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    whole = axes.get_tightbbox(renderer)
    cells = axes.get_window_extent(renderer)
    assert whole is not None  # the map is visible
    edges = (cells.x0 - whole.x0, whole.x1 - cells.x0, whole.y1 - cells.y1, cells.y1 - whole.y0)
    left, right, above, below = (pixels / figure.dpi for pixels in edges)
    return left, right, above, below


def _arrange(figure: Figure, all_axes: Sequence[Axes], grid: tuple[FloatArray, FloatArray]) -> None:
    """Arrange the maps in a grid, with the color bar right of it and the explanation below."""
    columns, rows = grid
    extents = [axes.get_position().size * figure.get_size_inches() for axes in all_axes]
    width = max(_extent(columns), 4.0) + _BAR_ROOM
    note = textwrap.wrap(MAP_NOTE, int((width - _GAP) * _CHARACTERS_PER_INCH))
    height = max(_extent(rows), _BAR_HEIGHT + 2 * _GAP) + 0.16 * len(note) + _GAP
    figure.set_size_inches(width, height)

    def place(axes: Axes, left: float, top: float, size: Sequence[float]) -> None:
        axes.set_position(
            (left / width, 1 - (top + size[1]) / height, size[0] / width, size[1] / height)
        )

    lefts = _starts(columns)
    tops = _starts(rows)
    for number, (axes, extent) in enumerate(zip(all_axes, extents, strict=True)):
        row, column = divmod(number, len(lefts))
        place(axes, lefts[column], tops[row], extent)
    bar = figure.add_axes((0, 0, 1, 1))
    figure.colorbar(all_axes[0].images[0], cax=bar)
    place(bar, width - _BAR_ROOM, _GAP, (_BAR_WIDTH, _BAR_HEIGHT))
    bar.set_ylabel("attention weight", fontsize=8)
    bar.tick_params(labelsize=7)
    figure.text(
        _GAP / 2 / width, _GAP / 2 / height, "\n".join(note), fontsize=8, color="0.35", va="bottom"
    )
