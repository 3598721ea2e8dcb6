"""Plots: real PNG files of the expected size, with the labels they need."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import pytest

from seq2seq_attn.report import plots
from seq2seq_attn.report.plots import plot_attention, plot_by_length, plot_retention
from seq2seq_attn.translate.attention_map import AttentionMap
from tests.report.conftest import make_map


def size_of(path):
    """Width and height in pixels, from a PNG's header."""
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])


@pytest.fixture
def figures(monkeypatch):
    """The figures that were drawn, to look into."""
    drawn = []
    make = plots._figure
    monkeypatch.setattr(plots, "_figure", lambda *size: drawn.append(make(*size)) or drawn[-1])
    return drawn


def test_by_length_has_lines_bands_and_n(tmp_path, two_systems, figures):
    plot_by_length(tmp_path / "p.png", two_systems)
    width, height = size_of(tmp_path / "p.png")
    assert width >= 800
    assert height >= 500
    [axes] = figures[0].axes
    assert [line.get_label() for line in axes.get_lines()] == ["additive", "none"]
    assert len(axes.collections) == 2
    labels = [label.get_text() for label in axes.get_xticklabels()]
    sizes = [len(row.bucket) for row in two_systems.buckets]
    assert labels[1] == f"6-11\nn={sizes[1]}*"
    assert labels[2] == f"12-18\nn={sizes[2]}"
    expected = [row.scores["bleu"][1].interval.value for row in two_systems.buckets]
    assert axes.get_lines()[1].get_ydata() == pytest.approx(expected)
    assert "source tokens" in axes.get_xlabel()
    assert axes.get_title() == "BLEU by sentence length, made-up"


def test_retention_has_a_line_for_each_run_but_the_first(tmp_path, three_systems, figures):
    plot_retention(tmp_path / "p.png", three_systems)
    size_of(tmp_path / "p.png")
    [axes] = figures[0].axes
    assert [line.get_label() for line in axes.get_lines()][:2] == ["none", "initial"]


def test_heat_map_grows_with_the_sentence_and_stays_readable(tmp_path, figures):
    plot_attention(tmp_path / "p.png", [make_map(61, 58)])
    width, height = size_of(tmp_path / "p.png")
    assert width > 61 * 30  # pixels to a token: room for a label of 8 points at 150 dpi (17 pixels)
    assert height > 58 * 30
    axes = figures[0].axes[0]
    figures[0].canvas.draw()
    assert [label.get_text() for label in axes.get_xticklabels()][:2] == ["Der", "kleine"]
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert all(upper.y0 > lower.y1 for upper, lower in pairwise(boxes))


def test_several_heat_maps_share_a_file(tmp_path, figures):
    plot_attention(tmp_path / "p.png", [make_map(8, 7), make_map(15, 12)])
    size_of(tmp_path / "p.png")
    assert len(figures[0].axes) == 4  # two maps, two colour bars
    with pytest.raises(ValueError, match="no attention to draw"):
        plot_attention(tmp_path / "q.png", [])


def test_tokens_are_never_formulas_and_missing_glyphs_do_not_stop(tmp_path):
    tokens = ["$x_1$", "$\\frac{$", "日本", "🐕", "_^", "<eos>"]
    plot_attention(tmp_path / "p.png", [AttentionMap(tokens, tokens, np.full((6, 6), 1 / 6))])
    size_of(tmp_path / "p.png")


def test_unknown_source_tokens_are_marked(tmp_path, figures):
    plot_attention(tmp_path / "p.png", [AttentionMap(["Hallo", "Hund", "<eos>"], ["dog"], np.eye(1, 3), (0,))])
    axes = figures[0].axes[0]
    assert [label.get_fontstyle() for label in axes.get_xticklabels()] == ["italic", "normal", "normal"]
    assert axes.get_xlabel() == "source tokens in italics: unknown to the model"
