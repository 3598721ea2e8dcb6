"""The HTML pages that `evaluate --report` and `translate --attention` write, from small real
runs."""

import base64

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.api import writers
from seq2seq_attn.translate.attention_map import PackedMap
from tests.report.test_html import payload
from tests.toy_requests import evaluate, translate
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config

LINES = [*SOURCE, "Ein ✈ Hund", ""]


@pytest.fixture(scope="module")
def runs(module_path):
    make_toy_run(module_path / "additive")
    make_toy_run(module_path / "fixed", toy_config(attention="fixed"), seed=4)
    measured = (
        '{"event": "validation", "update": 20, "epoch": 1, "bleu": 1.25, "perplexity": 33.0}\n'
    )
    (module_path / "fixed" / "metrics.jsonl").write_text(measured, "utf-8")
    (module_path / "src").write_text("\n".join(LINES) + "\n", "utf-8")
    (module_path / "ref").write_text("\n".join([*TARGET, "A plane.", "Nothing."]) + "\n", "utf-8")
    return module_path


def inside_page(path):
    return payload(path.read_text("utf-8"))


def evaluate_page(runs, *names, **options):
    """The report, and the data inside its page."""
    files = {"source": runs / "src", "reference": [runs / "ref"], "report": runs / "report.html"}
    report = evaluate([runs / name for name in names], **files, json=runs / "r.json", **options)
    return report, inside_page(runs / "report.html")


def assert_map(inside, stored, translation):
    """Assert that a map on the page is the attention of a translation."""
    source, target, packed, unknown = stored
    tokens = inside["tokens"]
    shown = PackedMap(tuple(tokens[source]), tuple(tokens[target]), base64.b64decode(packed))
    np.testing.assert_array_equal(shown.levels_TS(), np.rint(translation.attention * 255))
    assert unknown == list(translation.unknown_positions)


def test_evaluate_keeps_attention_unknown_words_and_learning_curves(runs):
    report, inside = evaluate_page(runs, "additive", "fixed")
    assert inside["report"]["sets"] == report.data["sets"]
    sentences = inside["sentences"]
    translations = load(runs / "additive", "cpu").translate(LINES)
    assert sentences["hypotheses"][0] == [translation.text for translation in translations]
    with_maps, without = sentences["maps"]
    for stored, translation in zip(with_maps[:-1], translations[:-1], strict=True):
        assert_map(inside, stored, translation)
    assert with_maps[-1] is None
    assert without == [None] * 7
    for unknown in sentences["unknown"]:  # also that of the run without attention
        tokens, positions = unknown["5"]
        assert [inside["tokens"][tokens][position] for position in positions] == ["✈"]
    additive, fixed = inside["runs"]
    assert fixed["no_map"]
    assert fixed["config"]["model"]["attention"]["name"] == "fixed"
    assert (additive["validations"], fixed["validations"]) == ([], [[20, 1.25, 33.0]])


def test_saved_hypotheses_have_no_maps_and_the_page_says_so(runs):
    evaluate_page(runs, "additive")
    _, inside = evaluate_page(runs, "additive", reuse_hypotheses=True)
    assert inside["sentences"]["maps"] == [[None] * 7]
    assert "saved" in inside["runs"][0]["no_map"]


def test_translate_writes_the_maps_of_its_lines(runs, tmp_path):
    lines = [SOURCE[0], "", "Ein ✈ Hund"]
    path = tmp_path / "a.html"
    translate(lines, attention=path, run=runs / "additive", output=tmp_path / "out")
    inside = inside_page(path)
    first, _, last = load(runs / "additive", "cpu").translate(lines)
    assert last.unknown_positions
    assert [line["number"] for line in inside["lines"]] == [1, 3]
    for line, translation in zip(inside["lines"], (first, last), strict=True):
        assert line["hypothesis"] == translation.text
        assert_map(inside, line["map"], translation)


def test_translate_bounds_the_lines_of_a_page(runs, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(writers, "MAX_PAGE_LINES", 2)
    options = {"run": runs / "additive", "output": tmp_path / "out"}
    page = tmp_path / "b.html"
    with caplog.at_level("WARNING"):
        translate(SOURCE, attention=page, **options)
        translate([""], attention=tmp_path / "blank.html", **options)
    assert len(inside_page(page)["lines"]) == 2
    assert any(message.startswith(f"{page}: ") for message in caplog.messages)
    assert not (tmp_path / "blank.html").exists()
