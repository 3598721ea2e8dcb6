"""Plots of the bottleneck experiment, from its records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.bottleneck_experiment.findings import half_quality_length
from scripts.bottleneck_experiment.pages import TITLES
from scripts.laboratory.harness.records import Record

# attention and the plain fixed vector stand out, the slots are one family from light to dark, controls are dashed
STYLES: dict[str, dict[str, Any]] = {
    "additive": {"color": "#0072B2", "marker": "o", "linewidth": 2.2},
    "fixed": {"color": "#D55E00", "marker": "s", "linewidth": 2.2},
    "slots-1": {"color": "#a6dba0", "marker": "1"},
    "slots-2": {"color": "#7fbf7b", "marker": "2"},
    "slots-4": {"color": "#5aae61", "marker": "^"},
    "slots-8": {"color": "#1b7837", "marker": "v"},
    "slots-16": {"color": "#00441b", "marker": "D"},
    "initial": {"color": "#CC79A7", "marker": "x", "linestyle": "--"},
    "uniform": {"color": "#E69F00", "marker": "+", "linestyle": "--"},
    "fixed-reversed": {"color": "#56B4E9", "marker": "<", "linestyle": ":"},
    "fixed-wide": {"color": "#555555", "marker": ">", "linestyle": ":"},
}


def plot(name: str, record: Record, path: Path) -> None:
    """BLEU and retention by length; where there are slots, the half-quality length by their number too."""
    slots = [arm["name"] for arm in record["arms"] if arm["name"].startswith("slots-")]
    figure = Figure(figsize=(5.0 * (2 + bool(slots)), 4.4), layout="constrained")
    axes = figure.subplots(1, 2 + bool(slots))
    _scores(axes[0], name, record)
    _retention(axes[1], name, record)
    if slots:
        _half_quality(axes[2], record, slots)
    figure.suptitle(TITLES[name])
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)), frameon=False)
    figure.savefig(path, dpi=110)


def plot_vectors(vectors: Record, path: Path) -> None:
    """The two principal components of sentence vectors, colored by length."""
    figure = Figure(figsize=(6.0, 4.4), layout="constrained")
    axes = figure.subplots()
    points = np.array(vectors["points"])
    dots = axes.scatter(points[:, 0], points[:, 1], c=vectors["lengths"], cmap="viridis", s=9)
    figure.colorbar(dots, label="source tokens")
    labels = [
        f"principal component {i} ({100 * share:.0f} % of the variance)" for i, share in enumerate(vectors["shares"], 1)
    ]
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.set_title(f"Sentence vectors of {vectors['arm']}, one to six captions")
    figure.savefig(path, dpi=110)


def _scores(axes: Axes, name: str, record: Record) -> None:
    for arm in (one["name"] for one in record["arms"]):
        values = [point["scores"][arm]["bleu"] for point in record["points"]]
        x = range(len(values))
        style = STYLES.get(arm, {})
        axes.plot(x, [value["mean"] for value in values], label=arm, markersize=5, **style)
        axes.fill_between(
            x,
            [v["low"] for v in values],
            [v["high"] for v in values],
            color=style.get("color"),
            alpha=0.12,
            linewidth=0,
        )
        seeds = [v["by_seed"] for v in values]
        axes.vlines(
            x, [min(s) for s in seeds], [max(s) for s in seeds], color=style.get("color"), linewidth=1, alpha=0.6
        )
    _finish(axes, name, record)
    axes.set_ylabel("BLEU: mean, 95 % band; bars: seeds")
    axes.set_ylim(bottom=0)


def _retention(axes: Axes, name: str, record: Record) -> None:
    for arm in (one["name"] for one in record["arms"]):
        kept = [point["scores"][arm]["bleu"].get("retention") for point in record["points"]]
        if any(value is None for value in kept):
            continue
        x = range(len(kept))
        style = STYLES.get(arm, {})
        axes.plot(x, [value["value"] for value in kept], label=arm, markersize=5, **style)
        axes.fill_between(
            x, [v["low"] for v in kept], [v["high"] for v in kept], color=style.get("color"), alpha=0.12, linewidth=0
        )
    axes.axhline(1.0, color=STYLES["additive"]["color"], linewidth=1)
    _finish(axes, name, record)
    axes.set_ylabel("retention: BLEU / BLEU of additive")
    axes.set_ylim(bottom=0)


def _half_quality(axes: Axes, record: Record, slots: list[str]) -> None:
    places = range(len(slots))
    found = [half_quality_length(record, arm) for arm in slots]
    longest = record["points"][-1]["mean_length"]
    reached = [(x, at) for x, at in zip(places, found, strict=True) if at is not None]
    axes.plot([x for x, _ in reached], [at for _, at in reached], color="#1b7837", marker="o")
    for x, at in zip(places, found, strict=True):
        if at is None:
            axes.annotate(f"> {longest:.0f}", (x, longest), ha="center", va="bottom", fontsize=9)
    fixed = half_quality_length(record, "fixed") if "fixed" in record["points"][0]["scores"] else None
    if fixed is not None:
        axes.axhline(fixed, color=STYLES["fixed"]["color"], linestyle="--", label="fixed")
        axes.legend(frameon=False, loc="lower right")
    axes.set_xticks(list(places), [arm.removeprefix("slots-") for arm in slots])
    axes.set_xlabel("K, the pooled vectors of `slots`")
    axes.set_ylabel("source tokens at which half of the\nfirst point's BLEU is left")
    axes.set_xlim(-0.4, len(slots) - 0.6)
    axes.set_ylim(0, longest * 1.15)
    axes.grid(alpha=0.25)


def _finish(axes: Axes, name: str, record: Record) -> None:
    points = record["points"]
    axes.set_xticks(range(len(points)), [f"{point['label']}\nn={point['num_pairs']}" for point in points], fontsize=8)
    axes.set_xlabel("captions joined" if name in ("joined", "single") else "source tokens")
    axes.grid(alpha=0.25)
