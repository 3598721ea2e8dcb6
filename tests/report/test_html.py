"""The HTML report without a browser: what is inside the file, how large it is, that it stays text
and stays alone."""

import json
import re

import numpy as np
import pytest
import sacrebleu

from seq2seq_attn.report import html
from seq2seq_attn.report.html import (
    FLOORS,
    MAP_CHARACTERS,
    MAX_VALIDATIONS,
    html_maps,
)
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
    return make_report(60, ("additive", HOSTILE), sets=("flickr", "coco"), texts={2: HOSTILE})


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (3, 400), (60, 60)])
def test_a_packed_map_is_the_map_in_255ths(shape):
    draw = np.random.default_rng(0)
    weights_TS = draw.dirichlet(np.full(shape[1], 0.05), shape[0])
    packed = pack_map(AttentionMap(["s"] * shape[1], ["t"] * shape[0], weights_TS))
    assert packed.levels_TS().shape == shape
    np.testing.assert_array_equal(packed.levels_TS(), np.rint(weights_TS * 255))
    floored = packed.without_below(20).levels_TS()
    np.testing.assert_array_equal(floored, np.where(packed.levels_TS() < 20, 0, packed.levels_TS()))


def test_the_report_inside_is_report_json(two_runs):
    page, report = two_runs
    inside = payload(page)
    assert inside["report"] == json.loads(json.dumps(report.data))
    assert [run["name"] for run in inside["runs"]] == ["additive", HOSTILE]
    assert inside["sentences"]["sets"] == [
        {"name": name, "num_pairs": 60, "num_concatenated": 1} for name in ("flickr", "coco")
    ]
    assert inside["sentences"]["source"][2] == HOSTILE


def test_sentence_scores_and_lengths(two_runs):
    page, report = two_runs
    inside = payload(page)["sentences"]
    assert inside["length"] == [
        int(length) for lengths in report.scored.lengths[:2] for length in lengths
    ]
    for bucket in report.data["sets"][-1]["buckets"]:  # the page's list is cut like the table
        upper = bucket["upper"] or 10**9
        assert (
            sum(bucket["lower"] <= length < upper for length in inside["length"])
            == bucket["num_pairs"]
        )
    for hypotheses, chrf in zip(inside["hypotheses"], inside["chrf"], strict=True):
        pairs = zip(hypotheses, inside["reference"], strict=True)
        expected = [
            sacrebleu.sentence_chrf(hypothesis, [reference]).score
            for hypothesis, reference in pairs
        ]
        assert chrf == pytest.approx(expected, abs=0.006)


def test_maps_belong_to_their_sentences(two_runs):
    page, _ = two_runs
    inside = payload(page)
    with_maps, without = inside["sentences"]["maps"]
    assert without == [None] * 120
    for number in (0, 2, 119):
        source, target, _, _ = with_maps[number]
        assert inside["tokens"][source] == [*inside["sentences"]["source"][number].split(), "<eos>"]
        assert inside["tokens"][target] == [
            *inside["sentences"]["hypotheses"][0][number].split(),
            "<eos>",
        ]
    tokens = [tuple(of) for of in inside["tokens"]]
    assert len(set(tokens)) == len(tokens)


def test_hostile_text_stays_inside_its_element(two_runs):
    page, _ = two_runs
    assert len(re.findall("<script", page)) == 2
    assert len(re.findall("</script", page)) == 2
    assert "<img" not in page
    assert "<!--" not in page
    assert "\u2028" not in DATA.findall(page)[0]
    assert "alert(2)" in page  # as text
    title = page.partition("<title>")[2].partition("</title>")[0]
    assert "&lt;/script&gt;" in title


def test_nothing_is_fetched(two_runs):
    for page in (two_runs[0], html_maps([(1, "A dog.", pack_map(make_map(3, 3)))])):
        without_data = re.sub("<title>.*?</title>", "", DATA.sub("", page), flags=re.DOTALL)
        # an element's namespace is a name; an address that something loads from would be another
        assert set(re.findall(r"https?://[^\s'\"]*", without_data)) <= {
            "http://www.w3.org/2000/svg"
        }
        assert re.findall(
            r"(?:src|href)=|url\(|@import|@font-face|fetch\(|XMLHttp|import\(", without_data
        ) == [
            "href="  # to the content, for the keyboard
        ]
        assert "default-src 'none'" in page
        assert not re.findall(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", page
        )


def test_numbers_that_json_lacks_and_half_characters():
    assert json.loads(embedded_json({"a": [float("nan"), float("inf"), 1.5]})) == {
        "a": [None, None, 1.5]
    }
    assert json.loads(embedded_json("\udc80")) == "?"


def test_two_hundred_sentences_of_two_runs_stay_under_600_kilobytes():
    page, _ = make_report(200, ("additive", "dot"), without_maps=())
    inside = payload(page)
    assert all(one is not None for of_run in inside["sentences"]["maps"] for one in of_run)
    assert inside["floor"] == 1
    assert len(page.encode()) < 600_000


def test_maps_that_do_not_fit_are_thinned_then_left_out():
    draw, tokens = np.random.default_rng(1), ["word"] * 60
    maps = [
        pack_map(AttentionMap(tokens, tokens, draw.dirichlet(np.ones(60), 60))) for _ in range(60)
    ]
    thinned = payload(html_maps([(i, "a", packed) for i, packed in enumerate(maps)]))
    assert thinned["floor"] in FLOORS[1:]
    assert all(line["map"] for line in thinned["lines"])
    assert sum(len(line["map"][2]) for line in thinned["lines"]) <= MAP_CHARACTERS * 60 * 1.01
    dense = pack_map(AttentionMap(tokens, tokens, np.full((60, 60), 0.9)))
    left = payload(html_maps([(i, "a", dense) for i in range(120)]))
    has_map = [line["map"] is not None for line in left["lines"]]
    assert has_map == sorted(has_map, reverse=True)
    assert 0 < sum(has_map) < 120
    assert (
        sum(len(line["map"][2]) for line in left["lines"] if line["map"])
        <= MAP_CHARACTERS * 120 * 1.01
    )


def test_runs_share_the_room_for_maps(monkeypatch):
    monkeypatch.setattr(html, "MAP_CHARACTERS", 12)
    inside = payload(make_report(60, without_maps=())[0])["sentences"]["maps"]
    sizes = [[len(stored[2]) for stored in maps if stored] for maps in inside]
    assert all(0 < len(run_sizes) < 60 for run_sizes in sizes)
    assert all(0.8 * 60 * 12 < sum(run_sizes) <= 1.1 * 60 * 12 for run_sizes in sizes)


def test_learning_curves_are_thinned():
    inside = payload(make_report(10, validations=(3, 1000))[0])
    short, long = (run["validations"] for run in inside["runs"])
    assert short == [[100, 10.0, 152.0], [200, 16.0, 102.0], [300, 20.0, 77.0]]
    assert len(long) == MAX_VALIDATIONS
    assert (long[0][0], long[-1][0]) == (100, 100_000)
    assert [update for update, *_ in long] == sorted({update for update, *_ in long})
