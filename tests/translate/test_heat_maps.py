"""Heat maps of attention: one cell size, sentences as titles, one colour bar, labels that can be
read."""

from itertools import pairwise

import numpy as np
from fontTools.fontBuilder import FontBuilder
from fontTools.ttLib.tables._g_l_y_f import Glyph
from matplotlib.font_manager import fontManager

from seq2seq_attn.translate.attention_map import MAP_NOTE, AttentionMap
from seq2seq_attn.translate.figure import new_figure, save_figure
from seq2seq_attn.translate.heat_maps import attention_figure
from tests.report.conftest import make_map
from tests.report.test_plots import size_of


def plot_attention(path, maps, titles=()):
    save_figure(attention_figure(maps, titles), path)


def test_heat_map_grows_with_the_sentence_and_stays_readable(tmp_path, figures):
    plot_attention(tmp_path / "p.png", [make_map(31, 28)])
    width, height = size_of(tmp_path / "p.png")
    assert width > 31 * 30  # pixels to a token: room for a label of 8 points at 150 dpi (17 pixels)
    assert height > 28 * 30
    axes = figures[0].axes[0]
    figures[0].canvas.draw()
    assert [label.get_text() for label in axes.get_xticklabels()][:2] == ["Der", "kleine"]
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert all(upper.y0 > lower.y1 for upper, lower in pairwise(boxes))


def test_several_maps_are_a_grid(tmp_path, figures):
    sizes = [(8, 7), (15, 12), (3, 20), (11, 11), (25, 6)]
    titles = [f"Der Satz mit der Nummer {number}, der $5 kostet." for number in range(5)]
    plot_attention(tmp_path / "p.png", [make_map(*size) for size in sizes], titles)
    width, height = size_of(tmp_path / "p.png")
    assert 0.6 < width / height < 2.5
    figure = figures[0]
    figure.canvas.draw()
    *maps, bar = figure.axes
    assert len(maps) == 5
    assert bar.get_ylabel() == "attention weight"
    for axes, title in zip(maps, titles, strict=True):
        assert axes.get_title(loc="left").replace("\n", " ") == title
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("source", "translation")
        assert axes.images[0].get_clim() == (0.0, 1.0)
    boxes = [axes.get_tightbbox() for axes in (*maps, bar)]
    for place, box in enumerate(boxes):
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
        assert 0 <= box.y0 < box.y1 <= figure.bbox.height
        assert not [other for other in boxes[place + 1 :] if box.overlaps(other)]


def test_the_map_is_explained_under_it_and_the_explanation_fits(tmp_path, figures):
    plot_attention(tmp_path / "p.png", [make_map(4, 3)], ["Kurz."])
    [note] = figures[0].texts
    assert note.get_text().replace("\n", " ") == MAP_NOTE
    box = note.get_window_extent()
    assert box.x1 < figures[0].bbox.width
    assert not [axes for axes in figures[0].axes if axes.get_tightbbox().overlaps(box)]


def test_a_figure_for_hundreds_of_tokens_has_a_bounded_number_of_pixels(tmp_path):
    save_figure(new_figure(90.0, 3.0), tmp_path / "p.png")  # inches
    assert size_of(tmp_path / "p.png") == (9_000, 300)


def test_tokens_are_never_formulas_and_missing_glyphs_are_named(tmp_path, caplog):
    tokens = ["$x_1$", "$\\frac{$", "\ua500", "\U00012000", "_^", "<eos>"]  # Vai, cuneiform
    map = AttentionMap(tokens, tokens, np.full((6, 6), 1 / 6))
    plot_attention(tmp_path / "p.svg", [map], ["$\\frac{$"])
    assert "\U00012000</text>" in (tmp_path / "p.svg").read_text(encoding="utf-8")
    assert not caplog.records
    plot_attention(tmp_path / "p.png", [map], ["$\\frac{$"])
    size_of(tmp_path / "p.png")
    [warning] = caplog.records
    assert "p.png" in warning.getMessage()
    assert "\ua500\U00012000" in warning.getMessage()


def test_an_installed_font_that_has_the_glyphs_is_used(tmp_path, monkeypatch, caplog, figures):
    font = FontBuilder(1000)
    font.setupGlyphOrder([".notdef", "vai"])
    font.setupCharacterMap({0xA500: "vai"})
    font.setupGlyf({name: Glyph() for name in (".notdef", "vai")})
    font.setupHorizontalMetrics(dict.fromkeys((".notdef", "vai"), (600, 0)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": "Vai", "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    font.save(tmp_path / "vai.ttf")
    monkeypatch.setattr(fontManager, "ttflist", [*fontManager.ttflist])
    fontManager.addfont(tmp_path / "vai.ttf")
    plot_attention(tmp_path / "p.png", [AttentionMap(["\ua500\ua500"], ["a"], np.ones((1, 1)))])
    assert not caplog.records
    assert figures[0].axes[0].get_xticklabels()[0].get_fontfamily() == ["sans-serif", "Vai"]


def test_unknown_source_tokens_are_marked(tmp_path, figures):
    plot_attention(
        tmp_path / "p.png", [AttentionMap(["Hallo", "Hund", "<eos>"], ["dog"], np.eye(1, 3), (0,))]
    )
    axes = figures[0].axes[0]
    assert [label.get_fontstyle() for label in axes.get_xticklabels()] == [
        "italic",
        "normal",
        "normal",
    ]
    assert axes.get_xlabel() == "source (in italics: unknown to the model)"
