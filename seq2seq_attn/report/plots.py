"""Plot scores by sentence length.

An arm is a group of runs that differ only in their seed. A bucket holds the sentence pairs of a
range of lengths.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seq2seq_attn.evaluation.results import SetScores
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.report.tables import THIN_MARK, THIN_NOTE
from seq2seq_attn.translate.figure import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The colors are Okabe and Ito's palette without black and yellow, which readers with any color
# vision can tell apart. Markers and dashes differ as well.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_TITLE_CHARACTERS_PER_INCH = 9
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))


def plot_by_length(
    path: Path, scores: SetScores, metric: str, *, as_retention: bool = False
) -> None:
    """Draw scores by length and save the plot.

    Each arm has a line with its 95 % bootstrap band. Points of buckets with too few sentence pairs
    are hollow. The number of sentence pairs stands under each bucket. If an arm has several seeds,
    the line is the mean over seeds, and bars show the lowest and the highest seed. The band shows
    how scores vary with the choice of test sentences, not with the seed.

    Args:
        as_retention: Whether to draw, instead of scores, each arm's mean score divided by the mean
            score of the first arm, with the paired bootstrap band.
    """
    # The width in inches leaves room for the label of each bucket.
    width = max(6.0, 1.1 * len(scores.buckets) + 2)
    figure = new_figure(width, 4.5)
    figure.set_layout_engine("constrained")
    axes = figure.add_subplot()
    for arm in range(1 if as_retention else 0, len(scores.arms)):
        _draw_arm(axes, scores, arm, metric, as_retention=as_retention)
    _add_legend(axes)
    if as_retention:
        axes.axhline(1.0, color="0.4", linewidth=1)
    heading, label = _describe_axis(scores, metric, as_retention=as_retention)
    columns = int(width * _TITLE_CHARACTERS_PER_INCH)
    axes.set_title(textwrap.fill(heading, columns, break_on_hyphens=False), parse_math=False)
    axes.set_ylabel(label, parse_math=False)
    axes.set_ylim(bottom=0)
    _label_buckets(axes, scores)
    axes.grid(axis="y", color="0.88")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)


def _describe_axis(scores: SetScores, metric: str, *, as_retention: bool) -> tuple[str, str]:
    """Return the title of the plot and the label of its vertical axis."""
    title = METRICS[metric].title
    heading = f"{title} by sentence length, {scores.name}"
    band = "95 % bootstrap band"
    label = title
    if as_retention:
        first = scores.arms[0].name
        heading = f"{title} by sentence length, as a share of {first}'s, {scores.name}"
        band = "95 % paired band"
        label = f"share of {first}'s {title}"
    if scores.is_grouped:
        band += "; bars: seeds"
    return heading, f"{label} ({band})"


def _add_legend(axes: Axes) -> None:
    """Add a legend with the names of the arms."""
    lines = axes.get_lines()
    if lines:
        # Lines are passed as handles: otherwise matplotlib drops labels that begin with _.
        for text in axes.legend(handles=lines, frameon=False).get_texts():
            text.set_parse_math(False)


def _label_buckets(axes: Axes, scores: SetScores) -> None:
    """Write the range and the number of sentence pairs under each bucket."""
    labels = []
    for row in scores.buckets:
        mark = THIN_MARK if row.bucket.is_thin else ""
        labels.append(f"{row.bucket.label}\nn={len(row.bucket):,}{mark}")
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlim(-0.6, len(labels) - 0.4)  # The margins keep labels off the edges.
    label = f"length in {scores.unit}; n of {scores.num_pairs:,} sentence pairs"
    if scores.has_thin_bucket:
        label += f"\n{THIN_NOTE} (hollow)"
    axes.set_xlabel(label)


def _draw_arm(axes: Axes, scores: SetScores, arm: int, metric: str, *, as_retention: bool) -> None:
    """Draw an arm's line, its band, and bars from the lowest to the highest seed.

    With `as_retention`, buckets without a quotient, in which the first arm scores 0, are left out.
    """
    points = []
    is_thin = []
    for x, row in enumerate(scores.buckets):
        score = row.scores[metric][arm]
        interval = score.retention if as_retention else score.interval
        if interval is not None:
            divisor = row.scores[metric][0].interval.value if as_retention else 1.0
            lowest = min(score.values) / divisor
            highest = max(score.values) / divisor
            points.append([x, interval.value, interval.low, interval.high, lowest, highest])
            is_thin.append(row.bucket.is_thin)
    if not points:
        return
    xs, values, low, high, lowest_seeds, highest_seeds = np.array(points).T
    # Colors repeat after six arms, each time with different markers and dashes.
    color = _COLORS[arm % len(_COLORS)]
    style = (arm + arm // len(_COLORS)) % len(_MARKERS)
    marker = _MARKERS[style]
    axes.fill_between(xs, low, high, color=color, alpha=0.18, linewidth=0)
    axes.plot(
        xs,
        values,
        color=color,
        marker=marker,
        linestyle=_DASHES[style],
        linewidth=1.8,
        label=scores.arms[arm].name,
    )
    if any(is_thin):
        axes.scatter(
            xs[is_thin],
            values[is_thin],
            marker=marker,
            facecolor="white",
            edgecolor=color,
            zorder=3,
        )
    if not np.array_equal(lowest_seeds, highest_seeds):
        axes.vlines(xs, lowest_seeds, highest_seeds, color=color, linewidth=1.2)
