"""Heat maps of attention: one cell size, sentences as titles, one colour bar, labels that can be
read."""

from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from seq2seq_attn.translate.attention_map import MAP_NOTE, AttentionMap, pack_map
from seq2seq_attn.translate.figure import new_figure, save_figure
from seq2seq_attn.translate.heat_maps import attention_figure
from tests.report.conftest import make_map
from tests.report.test_plots import size_of, texts


@pytest.fixture
def path(tmp_path):
    return tmp_path / "p.png"


def draw(path, *maps, titles=()):
    """Save the figure of maps, and return it."""
    figure = attention_figure(maps, titles)
    save_figure(figure, path)
    return figure


def boxes_of(artists):
    return [artist.get_window_extent() for artist in artists]


def test_heat_map_grows_with_the_sentence_and_stays_readable(path):
    figure = draw(path, make_map(31, 28))
    figure.canvas.draw()
    axes = figure.axes[0]
    width, height = size_of(path)
    assert width > 31 * 30  # pixels to a token: room for a label of 8 points at 150 dpi (17 pixels)
    assert height > 28 * 30
    assert texts(axes.get_xticklabels())[:2] == ["Der", "kleine"]
    for left, right in pairwise(boxes_of(axes.get_xticklabels())):
        assert left.x1 < right.x0
    for upper, lower in pairwise(boxes_of(axes.get_yticklabels())):
        assert upper.y0 > lower.y1


def test_weights_above_1_share_a_scale_that_holds_them(path):
    large = AttentionMap(["a", "b"], ["c"], np.array([[4.0, 1.0]]))
    figure = draw(path, large, make_map(2, 2))
    for axes in figure.axes[:2]:
        assert axes.collections[0].get_clim() == (0.0, 4.0)
    assert pack_map(large).levels_TS().tolist() == [[255, 64]]
    assert 'title="4.00"' in large._repr_html_()


def test_several_maps_are_a_grid(path):
    maps = [make_map(8, 7), make_map(15, 12), make_map(3, 20), make_map(11, 11), make_map(25, 6)]
    titles = [f"Der Satz mit der Nummer {number}, der $5 kostet." for number in range(5)]
    figure = draw(path, *maps, titles=titles)
    figure.canvas.draw()
    width, height = size_of(path)
    assert 0.6 < width / height < 2.5
    *grid, bar = figure.axes
    assert bar.get_ylabel() == "attention weight"
    for axes, title in zip(grid, titles, strict=True):
        assert axes.get_title(loc="left").replace("\n", " ") == title
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("source", "translation")
        assert axes.collections[0].get_clim() == (0.0, 1.0)
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    for box in boxes:
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
        assert 0 <= box.y0 < box.y1 <= figure.bbox.height
    for first, second in combinations(boxes, 2):
        assert not first.overlaps(second)


def test_the_map_is_explained_under_it_and_the_explanation_fits(path):
    figure = draw(path, make_map(4, 3), titles=["Kurz."])
    [note] = figure.texts
    assert note.get_text().replace("\n", " ") == MAP_NOTE
    box = note.get_window_extent()
    assert box.x1 < figure.bbox.width
    for axes in figure.axes:
        assert not axes.get_tightbbox().overlaps(box)


def test_a_figure_for_hundreds_of_tokens_has_a_bounded_number_of_pixels(path):
    save_figure(new_figure(90.0, 3.0), path)  # inches
    assert size_of(path) == (9_000, 300)


FORMULAS = ["$x_1$", "$\\frac{$", "\ua500", "\U00012000", "_^", "<eos>"]  # Vai, cuneiform
FORMULA_MAP = AttentionMap(FORMULAS, FORMULAS, np.full((6, 6), 1 / 6))


def test_tokens_are_never_formulas(tmp_path, caplog):
    draw(tmp_path / "p.svg", FORMULA_MAP, titles=["$\\frac{$"])
    assert "\U00012000</text>" in (tmp_path / "p.svg").read_text("utf-8")
    assert not caplog.records


def test_missing_glyphs_are_named(path, caplog):
    draw(path, FORMULA_MAP, titles=["$\\frac{$"])
    [warning] = caplog.messages
    assert "p.png" in warning
    assert "\ua500\U00012000" in warning


def test_unknown_source_tokens_are_marked(path):
    unknown = AttentionMap(["Hallo", "Hund", "<eos>"], ["dog"], np.eye(1, 3), (0,))
    axes = draw(path, unknown).axes[0]
    styles = [label.get_fontstyle() for label in axes.get_xticklabels()]
    assert styles == ["italic", "normal", "normal"]
    assert axes.get_xlabel() == "source (in italics: unknown to the model)"


@pytest.mark.parametrize("character", ["\ufffe", "\uffff", "\ufdd0", "\x01"])
def test_a_picture_of_characters_that_xml_forbids_is_well_formed(character, tmp_path):
    tokens = [f"a{character}"]
    map = AttentionMap(tokens, tokens, np.ones((1, 1)))
    figure = attention_figure([map], tokens)
    save_figure(figure, tmp_path / "map.svg")
    ElementTree.parse(tmp_path / "map.svg")
