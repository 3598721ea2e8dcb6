"""Plots of scores by sentence length."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from seq2seq_attn.evaluation.scores import SetScores
from seq2seq_attn.metrics.bleu import TITLES, MeasureName
from seq2seq_attn.metrics.significance import Interval
from seq2seq_attn.translate.figure import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette (black and yellow left out): told apart with any colour vision, and by marker and dash too.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_TITLE_CHARACTERS_PER_INCH = 9
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))


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
    figure = new_figure(_width(scores), 4.5)
    axes = figure.add_subplot()
    figure.set_layout_engine("constrained")
    if scores.arms:
        _draw_arms(axes, scores, measure)
    else:
        _draw_runs(axes, scores, measure)
    axes.set_ylabel(f"{TITLES[measure]} (sacreBLEU, 95 % bootstrap band{_bars_note(scores)})")
    axes.set_ylim(bottom=0)
    _finish(axes, scores, unit, title or f"{TITLES[measure]} by sentence length, {scores.name}")
    save_figure(figure, path)


def plot_retention(
    path: Path, scores: SetScores, *, measure: MeasureName = "bleu", unit: str = "source tokens"
) -> None:
    """Write the share of the first run's score that each other run keeps, by length, with its paired band.

    Where runs are grouped, of arms: the share of the first one's mean, the extremes of the seeds as bars.
    """
    figure = new_figure(_width(scores), 4.5)
    axes = figure.add_subplot()
    figure.set_layout_engine("constrained")
    names = [arm.name for arm in scores.arms] or scores.systems
    for position in range(1, len(names)):
        if scores.arms:
            points = _kept_by_arm(scores, measure, position)
        else:
            kept = [row.scores[measure][position].retention for row in scores.buckets]
            points = [_Point(x, r.value, r.low, r.high) for x, r in enumerate(kept) if r is not None]
        _draw_band(axes, position, names[position], points)
    axes.axhline(1.0, color="0.4", linewidth=1)
    axes.set_ylabel(f"share of {names[0]}'s {TITLES[measure]} (95 % paired band{_bars_note(scores)})", parse_math=False)
    axes.set_ylim(bottom=0)
    title = f"{TITLES[measure]} by sentence length, as a share of {names[0]}'s, {scores.name}"
    _finish(axes, scores, unit, title)
    save_figure(figure, path)


def _width(scores: SetScores) -> float:
    """In inches, with room for the label of each bucket."""
    return max(6.0, 1.1 * len(scores.buckets) + 2)


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
    axes.set_xlim(-0.6, len(labels) - 0.4)  # so that no label reaches the edge
    axes.set_xlabel(f"length in {unit}")
    width = int(_width(scores) * _TITLE_CHARACTERS_PER_INCH)
    axes.set_title(textwrap.fill(title, width, break_on_hyphens=False), parse_math=False)
    axes.grid(axis="y", color="0.88")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        for text in axes.legend(frameon=False).get_texts():
            text.set_parse_math(False)
