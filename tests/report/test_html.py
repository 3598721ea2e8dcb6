"""The HTML report without a browser: what is inside the file, how large it is, that it stays text
and stays alone."""

import json
import re

import numpy as np
import pytest
import sacrebleu

from seq2seq_attn.report import html
from seq2seq_attn.report.html import FLOORS, MAP_CHARACTERS, MAX_VALIDATIONS, html_maps
from seq2seq_attn.report.template import embedded_json
from seq2seq_attn.translate.attention_map import AttentionMap, pack_map
from tests.report.conftest import make_map
from tests.report.html_reports import make_report

HOSTILE = (
    "</script><script>alert('1')</script><img src=x onerror=alert(2)> & <!-- \u2028 \u202e \x00 \"'"
)
DATA = re.compile(r'<script id="data" type="application/json">(.*?)</script>', re.DOTALL)


def payload(page):
    [text] = DATA.findall(page)
    return json.loads(text)


@pytest.fixture(scope="module")
def two_runs():
    """Two sets of 60 sentences; the second run has no attention."""
    names = ("additive", HOSTILE)
    sets = ("flickr", "coco")
    return make_report(60, names, sets=sets, hostile=HOSTILE, num_validations=(3, 1000))


@pytest.fixture(scope="module")
def inside(two_runs):
    return payload(two_runs[0])


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (3, 400), (60, 60)])
def test_a_packed_map_is_the_map_in_255ths(shape):
    num_target, num_source = shape
    weights_TS = np.random.default_rng(0).dirichlet(np.full(num_source, 0.05), num_target)
    packed = pack_map(AttentionMap(["s"] * num_source, ["t"] * num_target, weights_TS))
    expected = np.rint(weights_TS * 255)
    np.testing.assert_array_equal(packed.levels_TS(), expected)
    floored = packed.without_below(20).levels_TS()
    np.testing.assert_array_equal(floored, np.where(expected < 20, 0, expected))


def test_the_report_inside_is_report_json(two_runs, inside):
    assert inside["report"] == json.loads(json.dumps(two_runs[1].data))
    assert [run["name"] for run in inside["runs"]] == ["additive", HOSTILE]
    assert inside["sentences"]["sets"] == [
        {"name": "flickr", "num_pairs": 60, "num_concatenated": 1},
        {"name": "coco", "num_pairs": 60, "num_concatenated": 1},
    ]
    assert inside["sentences"]["source"][2] == HOSTILE


def test_lengths_are_cut_like_the_table(inside):
    lengths = np.array(inside["sentences"]["length"])
    for bucket in inside["report"]["sets"][-1]["buckets"]:
        upper = bucket["upper"] or 10**9
        num_inside = np.sum((bucket["lower"] <= lengths) & (lengths < upper))
        assert num_inside == bucket["num_pairs"]


def test_sentence_scores_are_sacrebleus_chrf(inside):
    sentences = inside["sentences"]
    for hypotheses, chrf in zip(sentences["hypotheses"], sentences["chrf"], strict=True):
        expected = []
        for hypothesis, reference in zip(hypotheses, sentences["reference"], strict=True):
            expected.append(sacrebleu.sentence_chrf(hypothesis, [reference]).score)
        assert chrf == pytest.approx(expected, abs=0.006)


def test_maps_belong_to_their_sentences(inside):
    sentences = inside["sentences"]
    with_maps, without = sentences["maps"]
    assert without == [None] * 120
    tokens = inside["tokens"]
    for number in (0, 2, 119):
        source, target, _, _ = with_maps[number]
        assert tokens[source] == [*sentences["source"][number].split(), "<eos>"]
        assert tokens[target] == [*sentences["hypotheses"][0][number].split(), "<eos>"]
    assert len(set(map(tuple, tokens))) == len(tokens)


def test_hostile_text_stays_inside_its_element(two_runs):
    page, _ = two_runs
    assert page.count("<script") == page.count("</script") == 2
    assert "<img" not in page
    assert "<!--" not in page
    assert "\u2028" not in DATA.findall(page)[0]
    assert "alert(2)" in page  # as text
    title = page.partition("<title>")[2].partition("</title>")[0]
    assert "&lt;/script&gt;" in title


LOADS = r"(?:src|href)=|url\(|@import|@font-face|fetch\(|XMLHttp|import\("
RUNS_TEXT = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function"


def test_nothing_is_fetched(two_runs):
    for page in (two_runs[0], html_maps([(1, "A dog.", pack_map(make_map(3, 3)))])):
        without_data = re.sub("<title>.*?</title>", "", DATA.sub("", page), flags=re.DOTALL)
        # an element's namespace is a name; an address that something loads from would be another
        addresses = set(re.findall(r"https?://[^\s'\"]*", without_data))
        assert addresses <= {"http://www.w3.org/2000/svg"}
        assert re.findall(LOADS, without_data) == []
        assert "default-src 'none'" in page
        assert not re.findall(RUNS_TEXT, page)


def test_numbers_that_json_lacks_and_half_characters():
    numbers = {"a": [float("nan"), float("inf"), 1.5]}
    assert json.loads(embedded_json(numbers)) == {"a": [None, None, 1.5]}
    assert json.loads(embedded_json("\udc80")) == "?"


def test_two_hundred_sentences_of_two_runs_stay_under_600_kilobytes():
    page, _ = make_report(200, without_maps=())
    inside = payload(page)
    for maps in inside["sentences"]["maps"]:
        assert None not in maps
    assert inside["floor"] == 1
    assert len(page.encode()) < 600_000


def pages_maps(weights):
    """The page of one-word translations with these weights, and the maps in it."""
    tokens = ["word"] * 60
    lines = [(1, "a", pack_map(AttentionMap(tokens, tokens, weights_TS))) for weights_TS in weights]
    inside = payload(html_maps(lines))
    return inside, [line["map"] for line in inside["lines"]]


def test_maps_that_do_not_fit_are_thinned():
    draw = np.random.default_rng(1)
    inside, maps = pages_maps(draw.dirichlet(np.ones(60), (60, 60)))
    assert inside["floor"] in FLOORS[1:]
    assert sum(len(stored[2]) for stored in maps) <= MAP_CHARACTERS * 60 * 1.01


def test_maps_that_cannot_be_thinned_are_left_out_from_the_end():
    _, maps = pages_maps([np.full((60, 60), 0.9)] * 120)
    num_kept = maps.index(None)
    assert num_kept > 0
    assert maps[num_kept:] == [None] * (120 - num_kept)
    assert sum(len(stored[2]) for stored in maps[:num_kept]) <= MAP_CHARACTERS * 120 * 1.01


def test_runs_share_the_room_for_maps(monkeypatch):
    monkeypatch.setattr(html, "MAP_CHARACTERS", 12)
    for maps in payload(make_report(60, without_maps=())[0])["sentences"]["maps"]:
        sizes = [len(stored[2]) for stored in maps if stored]
        assert 0 < len(sizes) < 60
        assert 0.8 * 60 * 12 < sum(sizes) <= 1.1 * 60 * 12


def test_learning_curves_are_thinned(inside):
    short, long = (run["validations"] for run in inside["runs"])
    assert short == [[100, 10.0, 152.0], [200, 16.0, 102.0], [300, 20.0, 77.0]]
    updates = [update for update, *_ in long]
    assert len(updates) == MAX_VALIDATIONS
    assert (updates[0], updates[-1]) == (100, 100_000)
    assert updates == sorted(set(updates))
