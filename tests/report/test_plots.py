"""Plots: real PNG files of the expected size, with the labels they need."""

import struct
from dataclasses import replace

import pytest

from seq2seq_attn.report.plots import plot_by_length


def size_of(path):
    """Width and height in pixels, from a PNG's header."""
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])


def test_by_length_has_lines_bands_and_n(tmp_path, two_systems, figures):
    plot_by_length(tmp_path / "p.png", two_systems, "bleu")
    width, height = size_of(tmp_path / "p.png")
    assert width >= 800
    assert height >= 500
    [axes] = figures[0].axes
    assert [line.get_label() for line in axes.get_lines()] == ["additive", "none"]
    assert len(axes.collections) == 2
    labels = axes.get_xticklabels()
    sizes = [len(row.bucket) for row in two_systems.buckets]
    assert [label.get_text() for label in labels[1:3]] == [
        f"6-11\nn={sizes[1]}*",
        f"12-18\nn={sizes[2]}",
    ]
    expected = [row.scores["bleu"][1].interval.value for row in two_systems.buckets]
    assert axes.get_lines()[1].get_ydata() == pytest.approx(expected)
    assert "reference tokens" in axes.get_xlabel()
    assert axes.get_title() == "BLEU by sentence length, made-up"
    figures[0].canvas.draw()
    frame = axes.get_window_extent()
    for box in (label.get_window_extent() for label in labels):  # none touches the edge
        assert frame.x0 < box.x0 < box.x1 < frame.x1


@pytest.mark.parametrize("as_share", [False, True])
def test_the_legend_names_a_run_that_begins_with_an_underscore(
    tmp_path, three_systems, figures, as_share
):
    hidden = [replace(arm, name=f"_{arm.name}") for arm in three_systems.arms]
    plot_by_length(
        tmp_path / "p.png", replace(three_systems, arms=hidden), "bleu", as_share=as_share
    )
    [axes] = figures[0].axes
    assert [text.get_text() for text in axes.get_legend().get_texts()][-2:] == ["_none", "_initial"]


def test_arms_have_a_line_with_the_seeds_extremes(tmp_path, grouped, figures):
    plot_by_length(tmp_path / "p.png", grouped, "bleu")
    plot_by_length(tmp_path / "q.png", grouped, "bleu", as_share=True)
    scores, kept = (figure.axes[0] for figure in figures)
    assert [line.get_label() for line in scores.get_lines()] == ["additive", "none", "initial"]
    means = [row.scores["bleu"][1] for row in grouped.buckets]
    assert scores.get_lines()[1].get_ydata() == pytest.approx(
        [score.interval.value for score in means]
    )
    bars = scores.collections[3].get_segments()  # two per arm: band and bars
    assert [tuple(bar[:, 1]) for bar in bars] == [
        (min(score.values), max(score.values)) for score in means
    ]
    assert len(scores.collections) == 5  # one seed: no bars
    assert [line.get_label() for line in kept.get_lines()][:2] == ["none", "initial"]
    assert kept.get_lines()[0].get_ydata() == pytest.approx(
        [score.retention.value for score in means]
    )
    assert kept.get_title() == "BLEU by sentence length, as a share of additive's,\nmade-up"
