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
    from matplotlib.figure import Figure
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


def plot_by_length(
    path: Path, scores: SetScores, *, metric: str = "bleu", unit: str = "source tokens", as_share: bool = False
) -> None:
    """Write the score by length: a line per arm with its 95 % band, n under each bucket. `as_share`: the share of the
    first arm's score that each other arm keeps, with its paired band.

    Of several seeds the line is the mean (the share that of the first arm's mean), the band covers the choice of
    sentences, and bars show the seeds' extremes.
    """
    lines: dict[str, list[_Point]] = {arm.name: [] for arm in scores.arms[as_share:]}
    for x, row in enumerate(scores.buckets):
        mean = row.scores[metric][0].interval.value if as_share else 1.0
        for points, score in zip(lines.values(), row.scores[metric][as_share:], strict=True):
            interval = score.retention if as_share else score.interval
            if interval is not None:
                points.append(_Point(x, interval, score.spread.min / mean, score.spread.max / mean))
    title, first = METRICS[metric].title, scores.arms[0].name
    label = f"share of {first}'s {title} (95 % paired band" if as_share else f"{title} (95 % bootstrap band"
    share = f", as a share of {first}'s" if as_share else ""
    figure, axes = _draw(scores, lines, f"{title} by sentence length{share}, {scores.name}", unit)
    axes.set_ylabel(label + ("; bars: seeds)" if scores.is_grouped else ")"), parse_math=False)
    if as_share:
        axes.axhline(1.0, color="0.4", linewidth=1)
    axes.set_ylim(bottom=0)
    save_figure(figure, path)


def _draw(scores: SetScores, arms: Mapping[str, Sequence[_Point]], title: str, unit: str) -> tuple[Figure, Axes]:
    """A figure with the lines of the arms."""
    width = max(6.0, 1.1 * len(scores.buckets) + 2)  # inches, with room for the label of each bucket
    figure = new_figure(width, 4.5)
    axes = figure.add_subplot()
    figure.set_layout_engine("constrained")
    lines = [
        line
        for position, (name, points) in enumerate(arms.items(), start=len(scores.arms) - len(arms))
        for line in _draw_band(axes, position, name, points)
    ]
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
    return figure, axes


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
