"""Plots as PNG files, by matplotlib's objects (no pyplot: no global state, no display)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seq2seq_attn.files import atomic_path
from seq2seq_attn.metrics.bleu import TITLES, MeasureName
from seq2seq_attn.report.attention_map import AttentionMap
from seq2seq_attn.report.scores import SetScores, SystemScore

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette (black and yellow left out): told apart with any colour vision, and by marker and dash too.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
_CELL_INCHES = 0.21  # of a heat map: a label of 8 points fits
_MAX_INCHES = 60.0


def plot_by_length(
    path: Path, scores: SetScores, *, measure: MeasureName = "bleu", unit: str = "source tokens", title: str = ""
) -> None:
    """Write the score by length: a line a run with its 95 % band, n under each bucket."""
    figure = _figure(max(6.0, 1.1 * len(scores.buckets) + 2), 4.5)
    axes = figure.add_subplot()
    _draw_runs(axes, scores, measure)
    axes.set_ylabel(f"{TITLES[measure]} (sacreBLEU, 95 % bootstrap band)")
    axes.set_ylim(bottom=0)
    _finish(axes, scores, unit, title or f"{TITLES[measure]} by sentence length, {scores.name}")
    _save(figure, path)


def plot_retention(
    path: Path, scores: SetScores, *, measure: MeasureName = "bleu", unit: str = "source tokens"
) -> None:
    """Write the share of the first run's score that each other run keeps, by length, with its paired band."""
    figure = _figure(max(6.0, 1.1 * len(scores.buckets) + 2), 4.5)
    axes = figure.add_subplot()
    for position in range(1, len(scores.systems)):
        kept = [(x, row.scores[measure][position].retention) for x, row in enumerate(scores.buckets)]
        points = [(x, r.value, r.low, r.high) for x, r in kept if r is not None]
        _draw_band(axes, position, scores.systems[position], points)
    axes.axhline(1.0, color="0.4", linewidth=1)
    axes.set_ylabel(f"{TITLES[measure]} / that of {scores.systems[0]} (95 % paired band)", parse_math=False)
    axes.set_ylim(bottom=0)
    _finish(axes, scores, unit, f"Share of {scores.systems[0]}'s score kept, {scores.name}")
    _save(figure, path)


def plot_attention(path: Path, maps: Sequence[AttentionMap]) -> None:
    """Write heat maps of sentences, one under the other: source tokens on top, target tokens at the left.

    Raises:
        ValueError: no map at all.
    """
    if not maps:
        raise ValueError("no attention to draw")
    heights = [_CELL_INCHES * len(attention.target_tokens) + 1.6 for attention in maps]
    width = _CELL_INCHES * max(len(attention.source_tokens) for attention in maps) + 3.2
    figure = _figure(width, sum(heights))
    rows = figure.subplots(len(maps), 1, squeeze=False, height_ratios=heights)
    for axes, attention in zip(rows[:, 0], maps, strict=True):
        _draw_heat_map(axes, attention)
    _save(figure, path)


def _draw_runs(axes: Axes, scores: SetScores, measure: MeasureName) -> None:
    for position, system in enumerate(scores.systems):
        of_buckets: list[SystemScore] = [row.scores[measure][position] for row in scores.buckets]
        points = [(x, s.interval.value, s.interval.low, s.interval.high) for x, s in enumerate(of_buckets)]
        _draw_band(axes, position, system, points)


def _draw_band(axes: Axes, position: int, label: str, points: Sequence[tuple[int, float, float, float]]) -> None:
    if not points:
        return
    style = position % len(_COLORS)
    x, values, low, high = (list(column) for column in zip(*points, strict=True))
    axes.fill_between(x, low, high, color=_COLORS[style], alpha=0.18, linewidth=0)
    axes.plot(
        x, values, color=_COLORS[style], marker=_MARKERS[style], linestyle=_DASHES[style], linewidth=1.8, label=label
    )


def _finish(axes: Axes, scores: SetScores, unit: str, title: str) -> None:
    labels = [f"{row.bucket.label}\nn={len(row.bucket):,}{'*' * row.bucket.is_thin}" for row in scores.buckets]
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlabel(f"length in {unit}")
    axes.set_title(title, parse_math=False)
    axes.grid(axis="y", color="0.88")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        for text in axes.legend(frameon=False).get_texts():
            text.set_parse_math(False)


def _draw_heat_map(axes: Axes, attention: AttentionMap) -> None:
    image = axes.imshow(attention.weights_TS, cmap="Blues", vmin=0.0, vmax=1.0, aspect="equal", interpolation="nearest")
    axes.xaxis.tick_top()
    # A token may hold `$`, which would start a formula: hence parse_math.
    num_target, num_source = attention.weights_TS.shape
    axes.set_xticks(range(num_source), attention.source_tokens, rotation=90, fontsize=8, parse_math=False)
    axes.set_yticks(range(num_target), attention.target_tokens, fontsize=8, parse_math=False)
    axes.set_xticks(np.arange(num_source + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(num_target + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="0.9", linewidth=0.5)
    axes.tick_params(which="both", length=0)
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.03, pad=0.02)
    bar.set_label("attention weight", fontsize=8)
    bar.ax.tick_params(labelsize=7)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(min(width, _MAX_INCHES), min(height, _MAX_INCHES)), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, path: Path) -> None:
    with atomic_path(path) as temporary, warnings.catch_warnings():
        # A token in a script that the font lacks is drawn as a box: no reason to stop or to fill stderr.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        figure.savefig(temporary, format="png")
