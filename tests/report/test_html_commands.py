"""The HTML pages that `evaluate --report` and `translate --attention` write, from small real runs."""

from __future__ import annotations

import base64
import logging

import numpy as np
import pytest

from seq2seq_attn.translate.packed_map import PackedMap
from seq2seq_attn.translate.translator import load
from tests.evaluation_requests import evaluate
from tests.report.test_html import payload
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config
from tests.translation_requests import translate


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    (root / "src").write_text("\n".join([*SOURCE, ""]) + "\n", encoding="utf-8")  # a blank line last
    (root / "ref").write_text("\n".join([*TARGET, "Nothing."]) + "\n", encoding="utf-8")
    make_toy_run(root / "additive")
    make_toy_run(root / "fixed", toy_config(attention="fixed"), seed=4)
    return root


def evaluated(runs, *names, **options):
    files = {"source": runs / "src", "reference": [runs / "ref"], "report": runs / "report.html"}
    report = evaluate([runs / name for name in names], **files, json=runs / "r.json", **options)
    return report, payload((runs / "report.html").read_text(encoding="utf-8"))


def levels(inside, stored):
    source, target, packed, _ = stored
    tokens = [tuple(inside["tokens"][place]) for place in (source, target)]
    return PackedMap(*tokens, base64.b64decode(packed)).levels_TS()


def test_evaluate_keeps_the_attention_of_every_line(runs):
    report, inside = evaluated(runs, "additive", "fixed")
    assert inside["report"]["sets"] == report.data["sets"]
    found = load(runs / "additive", "cpu").translate([*SOURCE, ""])
    assert inside["sentences"]["hypotheses"][0] == [one.text for one in found]
    maps = inside["sentences"]["maps"][0]
    assert maps[-1] is None
    for stored, one in zip(maps[:-1], found, strict=False):
        np.testing.assert_array_equal(levels(inside, stored), np.rint(one.attention * 255))
    assert inside["sentences"]["maps"][1] == [None] * 6
    assert inside["runs"][1]["no_map"] == "its attention does not look at source positions"
    assert [run["config"]["model"]["attention"]["name"] for run in inside["runs"]] == ["additive", "fixed"]


def test_evaluate_keeps_unknown_words_and_learning_curves(runs, tmp_path):
    for name, lines in (("src", ["Ein ✈ Hund", SOURCE[0]]), ("ref", ["A plane.", TARGET[0]])):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    measured = '{"event": "validation", "update": 20, "epoch": 1, "bleu": 1.25, "perplexity": 33.0}\n'
    (runs / "fixed" / "metrics.jsonl").write_text(measured, encoding="utf-8")
    files = {"source": tmp_path / "src", "reference": [tmp_path / "ref"], "report": tmp_path / "page.html"}
    evaluate([runs / "additive", runs / "fixed"], **files)
    inside = payload((tmp_path / "page.html").read_text(encoding="utf-8"))
    for of_run in inside["sentences"]["unknown"]:  # also that of the run without attention
        [(row, (place, positions))] = of_run.items()
        assert row == "0"
        assert [inside["tokens"][place][position] for position in positions] == ["✈"]
    assert [run["validations"] for run in inside["runs"]] == [[], [[20, 1.25, 33.0]]]


def test_saved_hypotheses_have_no_maps_and_the_page_says_so(runs):
    evaluated(runs, "additive")
    _, inside = evaluated(runs, "additive", reuse_hypotheses=True)
    assert inside["sentences"]["maps"] == [[None] * 6]
    assert inside["runs"][0]["no_map"] == "its saved hypotheses were used, which come without attention"


def test_translate_writes_the_maps_of_its_lines(runs, tmp_path, monkeypatch, caplog):
    lines = [SOURCE[0], "", "Ein ✈ Hund"]
    to = {"run": runs / "additive", "output": tmp_path / "out", "device": "cpu"}
    translate(lines, attention=tmp_path / "a.html", **to)
    inside = payload((tmp_path / "a.html").read_text(encoding="utf-8"))
    found = load(runs / "additive", "cpu").translate(lines)
    assert [line["number"] for line in inside["lines"]] == [1, 3]
    for line, one in zip(inside["lines"], (found[0], found[2]), strict=True):
        assert line["hypothesis"] == one.text
        np.testing.assert_array_equal(levels(inside, line["map"]), np.rint(one.attention * 255))
    assert [line["map"][3] for line in inside["lines"]] == [[], list(found[2].unknown)]
    assert found[2].unknown
    monkeypatch.setattr("seq2seq_attn.cli.writers.MAX_PAGE_LINES", 2)
    with caplog.at_level(logging.WARNING):
        translate(SOURCE, attention=tmp_path / "b.html", **to)
        translate([""], attention=tmp_path / "blank.html", **to)
    assert f"{tmp_path / 'b.html'}: shows only the first 2 lines; a .npz file holds them all" in caplog.messages
    assert len(payload((tmp_path / "b.html").read_text(encoding="utf-8"))["lines"]) == 2
    assert not (tmp_path / "blank.html").exists()
