"""The HTML pages that `evaluate --report` and `translate --attention` write, from small real
runs."""

import base64
import logging

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.api import writers
from seq2seq_attn.translate.attention_map import PackedMap
from tests.report.test_html import payload
from tests.toy_requests import evaluate, translate
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    make_toy_run(root / "additive")
    make_toy_run(root / "fixed", toy_config(attention="fixed"), seed=4)
    measured = (
        '{"event": "validation", "update": 20, "epoch": 1, "bleu": 1.25, "perplexity": 33.0}\n'
    )
    (root / "fixed" / "metrics.jsonl").write_text(measured, encoding="utf-8")
    (root / "src").write_text(
        "\n".join([*SOURCE, "Ein ✈ Hund", ""]) + "\n", encoding="utf-8"
    )  # a blank line last
    (root / "ref").write_text("\n".join([*TARGET, "A plane.", "Nothing."]) + "\n", encoding="utf-8")
    return root


def inside_page(path):
    return payload(path.read_text(encoding="utf-8"))


def evaluate_page(runs, *names, **options):
    files = {"source": runs / "src", "reference": [runs / "ref"], "report": runs / "report.html"}
    report = evaluate([runs / name for name in names], **files, json=runs / "r.json", **options)
    return report, inside_page(runs / "report.html")


def levels(inside, stored):
    source, target, packed, _ = stored
    tokens = [tuple(inside["tokens"][index]) for index in (source, target)]
    return PackedMap(*tokens, base64.b64decode(packed)).levels_TS()


def test_evaluate_keeps_attention_unknown_words_and_learning_curves(runs):
    report, inside = evaluate_page(runs, "additive", "fixed")
    assert inside["report"]["sets"] == report.data["sets"]
    translations = load(runs / "additive", "cpu").translate([*SOURCE, "Ein ✈ Hund", ""])
    assert inside["sentences"]["hypotheses"][0] == [
        translation.text for translation in translations
    ]
    *maps, blank = inside["sentences"]["maps"][0]
    assert blank is None
    for stored, translation in zip(maps, translations, strict=False):
        np.testing.assert_array_equal(levels(inside, stored), np.rint(translation.attention * 255))
    assert inside["sentences"]["maps"][1] == [None] * 7
    assert inside["runs"][1]["no_map"]
    assert [run["config"]["model"]["attention"]["name"] for run in inside["runs"]] == [
        "additive",
        "fixed",
    ]
    for unknown in inside["sentences"]["unknown"]:  # also that of the run without attention
        tokens, positions = unknown["5"]
        assert [inside["tokens"][tokens][position] for position in positions] == ["✈"]
    assert [run["validations"] for run in inside["runs"]] == [[], [[20, 1.25, 33.0]]]


def test_saved_hypotheses_have_no_maps_and_the_page_says_so(runs):
    evaluate_page(runs, "additive")
    _, inside = evaluate_page(runs, "additive", reuse_hypotheses=True)
    assert inside["sentences"]["maps"] == [[None] * 7]
    assert "saved" in inside["runs"][0]["no_map"]


def test_translate_writes_the_maps_of_its_lines(runs, tmp_path, monkeypatch, caplog):
    lines = [SOURCE[0], "", "Ein ✈ Hund"]
    options = {"run": runs / "additive", "output": tmp_path / "out", "device": "cpu"}
    translate(lines, attention=tmp_path / "a.html", **options)
    inside = inside_page(tmp_path / "a.html")
    first, _, last = load(runs / "additive", "cpu").translate(lines)
    assert [line["number"] for line in inside["lines"]] == [1, 3]
    for line, translation in zip(inside["lines"], (first, last), strict=True):
        assert line["hypothesis"] == translation.text
        np.testing.assert_array_equal(
            levels(inside, line["map"]), np.rint(translation.attention * 255)
        )
        assert line["map"][3] == list(translation.unknown)
    assert last.unknown
    monkeypatch.setattr(writers, "MAX_PAGE_LINES", 2)
    with caplog.at_level(logging.WARNING):
        translate(SOURCE, attention=tmp_path / "b.html", **options)
        translate([""], attention=tmp_path / "blank.html", **options)
    assert [
        message for message in caplog.messages if message.startswith(f"{tmp_path / 'b.html'}: ")
    ]
    assert len(inside_page(tmp_path / "b.html")["lines"]) == 2
    assert not (tmp_path / "blank.html").exists()
