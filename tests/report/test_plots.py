"""Plots: real PNG files of the expected size, with the labels they need."""

import struct
from dataclasses import replace

import pytest
from matplotlib.collections import LineCollection

from seq2seq_attn.report.plots import plot_by_length


def size_of(path):
    """Width and height in pixels, from a PNG's header."""
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])


@pytest.fixture
def plot(tmp_path, figures):
    """Plot scores; returns the axes."""

    def plot_axes(scores, **options):
        plot_by_length(tmp_path / "p.png", scores, "bleu", **options)
        return figures[-1].axes[0]

    return plot_axes


def texts(labels):
    return [label.get_text() for label in labels]


def line_names(axes):
    return [line.get_label() for line in axes.get_lines()]


def test_by_length_has_lines_bands_and_n(plot, tmp_path, two_systems):
    axes = plot(two_systems)
    width, height = size_of(tmp_path / "p.png")
    assert width >= 800
    assert height >= 500
    assert line_names(axes) == ["additive", "none"]
    bands_and_hollow_points = axes.collections
    assert len(bands_and_hollow_points) == 4
    assert "* fewer than 50" in axes.get_xlabel()
    assert "n of 150" in axes.get_xlabel()
    sizes = [len(row.bucket) for row in two_systems.buckets]
    labels = axes.get_xticklabels()
    assert texts(labels)[1:3] == [f"6-11\nn={sizes[1]}*", f"12-18\nn={sizes[2]}"]
    means = [row.scores["bleu"][1].interval.value for row in two_systems.buckets]
    assert axes.get_lines()[1].get_ydata() == pytest.approx(means)
    assert "reference tokens" in axes.get_xlabel()
    assert axes.get_title() == "BLEU by sentence length, made-up"
    axes.figure.canvas.draw()
    frame = axes.get_window_extent()
    for label in labels:  # none touches the edge
        box = label.get_window_extent()
        assert frame.x0 < box.x0 < box.x1 < frame.x1


@pytest.mark.parametrize("as_retention", [False, True])
def test_the_legend_names_a_run_that_begins_with_an_underscore(plot, three_systems, as_retention):
    hidden = [arm._replace(name=f"_{arm.name}") for arm in three_systems.arms]
    axes = plot(replace(three_systems, arms=hidden), as_retention=as_retention)
    assert texts(axes.get_legend().get_texts())[-2:] == ["_none", "_initial"]


def test_arms_have_a_line_with_the_seeds_extremes(plot, grouped):
    axes = plot(grouped)
    assert line_names(axes) == ["additive", "none", "initial"]
    bars_of_arms = [lines for lines in axes.collections if isinstance(lines, LineCollection)]
    assert len(bars_of_arms) == 2  # the third arm has one seed
    bars = bars_of_arms[1].get_segments()
    for bar, mean, row in zip(bars, axes.get_lines()[1].get_ydata(), grouped.buckets, strict=True):
        score = row.scores["bleu"][1]
        assert mean == pytest.approx(score.interval.value)
        assert tuple(bar[:, 1]) == (min(score.values), max(score.values))


def test_the_share_of_each_arm_is_its_retention(plot, grouped):
    axes = plot(grouped, as_retention=True)
    assert line_names(axes)[:2] == ["none", "initial"]
    shares = [row.scores["bleu"][1].retention.value for row in grouped.buckets]
    assert axes.get_lines()[0].get_ydata() == pytest.approx(shares)
    assert axes.get_title() == "BLEU by sentence length, as a share of additive's,\nmade-up"
