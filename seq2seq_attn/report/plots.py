"""Plots as PNG, SVG or PDF, by the file's name, with matplotlib's objects (no pyplot: no global state, no display)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from seq2seq_attn.evaluation.scores import SetScores
from seq2seq_attn.files import atomic_path
from seq2seq_attn.metrics.bleu import TITLES, MeasureName
from seq2seq_attn.metrics.significance import Interval
from seq2seq_attn.translate.attention_map import AttentionMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette (black and yellow left out): told apart with any colour vision, and by marker and dash too.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
_CELL_INCHES = 0.21  # of a heat map: a label of 8 points fits
_MAX_INCHES = 60.0
_UNKNOWN_COLOR = "#b3261e"


class _Point(NamedTuple):
    """A bucket: its place, a value with its band, and the least and the most that a seed has (0: one seed)."""

    x: int
    value: float
    low: float
    high: float
    least: float = 0.0
    most: float = 0.0


def plot_by_length(
    path: Path, scores: SetScores, *, measure: MeasureName = "bleu", unit: str = "source tokens", title: str = ""
) -> None:
    """Write the score by length: a line a run with its 95 % band, n under each bucket.

    Where runs are grouped, a line an arm: the mean of its seeds, their extremes as bars, the band over sentences.
    """
    figure = _figure(max(6.0, 1.1 * len(scores.buckets) + 2), 4.5)
    axes = figure.add_subplot()
    if scores.arms:
        _draw_arms(axes, scores, measure)
    else:
        _draw_runs(axes, scores, measure)
    axes.set_ylabel(f"{TITLES[measure]} (sacreBLEU, 95 % bootstrap band{_bars_note(scores)})")
    axes.set_ylim(bottom=0)
    _finish(axes, scores, unit, title or f"{TITLES[measure]} by sentence length, {scores.name}")
    _save(figure, path)


def plot_retention(
    path: Path, scores: SetScores, *, measure: MeasureName = "bleu", unit: str = "source tokens"
) -> None:
    """Write the share of the first run's score that each other run keeps, by length, with its paired band.

    Where runs are grouped, of arms: the share of the first one's mean, the extremes of the seeds as bars.
    """
    figure = _figure(max(6.0, 1.1 * len(scores.buckets) + 2), 4.5)
    axes = figure.add_subplot()
    names = [arm.name for arm in scores.arms] or scores.systems
    for position in range(1, len(names)):
        if scores.arms:
            points = _kept_by_arm(scores, measure, position)
        else:
            kept = [row.scores[measure][position].retention for row in scores.buckets]
            points = [_Point(x, r.value, r.low, r.high) for x, r in enumerate(kept) if r is not None]
        _draw_band(axes, position, names[position], points)
    axes.axhline(1.0, color="0.4", linewidth=1)
    axes.set_ylabel(f"{TITLES[measure]} / that of {names[0]} (95 % paired band{_bars_note(scores)})", parse_math=False)
    axes.set_ylim(bottom=0)
    _finish(axes, scores, unit, f"Share of {names[0]}'s score kept, {scores.name}")
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
        intervals = [row.scores[measure][position].interval for row in scores.buckets]
        _draw_band(axes, position, system, [_Point(x, i.value, i.low, i.high) for x, i in enumerate(intervals)])


def _draw_arms(axes: Axes, scores: SetScores, measure: MeasureName) -> None:
    for position, arm in enumerate(scores.arms):
        points = []
        for x, row in enumerate(scores.buckets):
            score = row.arm_scores[measure][position]
            points.append(_Point(x, *_band(score.interval), score.spread.min, score.spread.max))
        _draw_band(axes, position, arm.name, points)


def _kept_by_arm(scores: SetScores, measure: MeasureName, position: int) -> list[_Point]:
    points = []
    for x, row in enumerate(scores.buckets):
        baseline, score = row.arm_scores[measure][0], row.arm_scores[measure][position]
        if score.retention is not None:
            extremes = (score.spread.min / baseline.spread.mean, score.spread.max / baseline.spread.mean)
            points.append(_Point(x, *_band(score.retention), *extremes))
    return points


def _band(interval: Interval) -> tuple[float, float, float]:
    return interval.value, interval.low, interval.high


def _bars_note(scores: SetScores) -> str:
    return "; bars: seeds" if scores.arms else ""


def _draw_band(axes: Axes, position: int, label: str, points: Sequence[_Point]) -> None:
    if not points:
        return
    # Beyond six the colours come again, with other markers and dashes.
    color, other = position % len(_COLORS), (position + position // len(_COLORS)) % len(_MARKERS)
    x, values, low, high, least, most = (list(column) for column in zip(*points, strict=True))
    axes.fill_between(x, low, high, color=_COLORS[color], alpha=0.18, linewidth=0)
    axes.plot(x, values, color=_COLORS[color], marker=_MARKERS[other], linestyle=_DASHES[other], lw=1.8, label=label)
    if any(low < high for low, high in zip(least, most, strict=True)):
        axes.vlines(x, least, most, color=_COLORS[color], linewidth=1.2)


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
    _mark_unknown(axes, attention.unknown)
    axes.set_xticks(np.arange(num_source + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(num_target + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="0.9", linewidth=0.5)
    axes.tick_params(which="both", length=0)
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.03, pad=0.02)
    bar.set_label("attention weight", fontsize=8)
    bar.ax.tick_params(labelsize=7)


def _mark_unknown(axes: Axes, unknown: Sequence[int]) -> None:
    """Show which source tokens the model does not know, and say so under the map."""
    for position in unknown:
        axes.get_xticklabels()[position].set(color=_UNKNOWN_COLOR, fontstyle="italic")
    if unknown:
        note = "source tokens in italics: unknown to the model"
        axes.set_xlabel(note, fontsize=8, color=_UNKNOWN_COLOR, fontstyle="italic")


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
        figure.savefig(temporary, format=path.suffix[1:].lower())
