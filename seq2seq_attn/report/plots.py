"""Plots of scores by sentence length."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from seq2seq_attn.evaluation.scores import SetScores
from seq2seq_attn.metrics.significance import Interval
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.translate.figure import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Okabe and Ito's palette (black and yellow left out): told apart with any color vision, and by marker and dash too.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_TITLE_CHARACTERS_PER_INCH = 9
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))


class _Point(NamedTuple):
    """A bucket: its position, a value with its band, and the extremes of the seeds."""

    x: int
    interval: Interval
    least: float
    most: float


def plot_by_length(path: Path, scores: SetScores, *, metric: str = "bleu", unit: str = "source tokens") -> None:
    """Write the score by length: a line per arm with its 95 % band, n under each bucket.

    Of several seeds the line is the mean, the band covers the choice of sentences, and bars show the seeds' extremes.
    """
    lines: dict[str, list[_Point]] = {arm.name: [] for arm in scores.arms}
    for x, row in enumerate(scores.buckets):
        for points, score in zip(lines.values(), row.scores[metric], strict=True):
            points.append(_Point(x, score.interval, score.spread.min, score.spread.max))
    title = METRICS[metric].title
    label = f"{title} (95 % bootstrap band"
    _plot(path, scores, lines, label=label, title=f"{title} by sentence length, {scores.name}", unit=unit)


def plot_retention(path: Path, scores: SetScores, *, metric: str = "bleu", unit: str = "source tokens") -> None:
    """Write the share of the first arm's score that each other arm keeps, by length, with its paired band.

    Of several seeds it is the share of the first arm's mean; bars show the seeds' extremes.
    """
    first, *others = scores.arms
    lines: dict[str, list[_Point]] = {arm.name: [] for arm in others}
    for x, row in enumerate(scores.buckets):
        baseline, *arm_scores = row.scores[metric]
        for points, score in zip(lines.values(), arm_scores, strict=True):
            if score.retention is not None:
                mean = baseline.interval.value
                points.append(_Point(x, score.retention, score.spread.min / mean, score.spread.max / mean))
    label = f"share of {first.name}'s {METRICS[metric].title} (95 % paired band"
    title = f"{METRICS[metric].title} by sentence length, as a share of {first.name}'s, {scores.name}"
    _plot(path, scores, lines, label=label, title=title, unit=unit, line_at=1.0)


def _plot(
    path: Path,
    scores: SetScores,
    arms: Mapping[str, Sequence[_Point]],
    *,
    label: str,
    title: str,
    unit: str,
    line_at: float | None = None,
) -> None:
    width = max(6.0, 1.1 * len(scores.buckets) + 2)  # inches, with room for the label of each bucket
    figure = new_figure(width, 4.5)
    axes = figure.add_subplot()
    figure.set_layout_engine("constrained")
    lines = [
        line
        for position, (name, points) in enumerate(arms.items(), start=len(scores.arms) - len(arms))
        for line in _draw_band(axes, position, name, points)
    ]
    if line_at is not None:
        axes.axhline(line_at, color="0.4", linewidth=1)
    axes.set_ylabel(label + ("; bars: seeds)" if scores.is_grouped else ")"), parse_math=False)
    axes.set_ylim(bottom=0)
    labels = [f"{row.bucket.label}\nn={len(row.bucket):,}{'*' * row.bucket.is_thin}" for row in scores.buckets]
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlim(-0.6, len(labels) - 0.4)  # so that no label reaches the edge
    axes.set_xlabel(f"length in {unit}")
    columns = int(width * _TITLE_CHARACTERS_PER_INCH)
    axes.set_title(textwrap.fill(title, columns, break_on_hyphens=False), parse_math=False)
    axes.grid(axis="y", color="0.88")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if lines:  # named, because matplotlib leaves out labels that begin with _
        for text in axes.legend(handles=lines, frameon=False).get_texts():
            text.set_parse_math(False)
    save_figure(figure, path)


def _draw_band(axes: Axes, position: int, label: str, points: Sequence[_Point]) -> list[Line2D]:
    """Draw an arm's line and band. Returns the line in a list, which is empty without points."""
    if not points:
        return []
    # After six lines the colors repeat, with other markers and dashes.
    color, other = position % len(_COLORS), (position + position // len(_COLORS)) % len(_MARKERS)
    x, intervals, least, most = zip(*points, strict=True)
    low, high = [interval.low for interval in intervals], [interval.high for interval in intervals]
    axes.fill_between(x, low, high, color=_COLORS[color], alpha=0.18, linewidth=0)
    values = [interval.value for interval in intervals]
    line = axes.plot(
        x, values, color=_COLORS[color], marker=_MARKERS[other], linestyle=_DASHES[other], lw=1.8, label=label
    )
    if any(low < high for low, high in zip(least, most, strict=True)):
        axes.vlines(x, least, most, color=_COLORS[color], linewidth=1.2)
    return line
