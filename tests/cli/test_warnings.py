"""Warnings of `translate` on stderr about unreliable translations, and its JSON lines."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.__main__ import run as main
from seq2seq_attn.api.translate import Warnings
from seq2seq_attn.data.line_facts import LineFacts
from seq2seq_attn.text.lines import read_lines
from seq2seq_attn.translate import terms
from tests.toy_requests import translate
from tests.toy_run import SOURCE, make_toy_run, toy_config


@pytest.fixture
def run(toy_runs):
    """Words as tokens: those of `SOURCE` are known."""
    return toy_runs["words"]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_probabilities_that_are_not_numbers_are_told(run, beam_size, caplog):
    translator = load(run.path, "cpu")
    for parameter in translator.model.parameters():
        parameter.data.fill_(float("nan"))
    writer = Warnings("in", translator, translator.search)
    for number, line in enumerate(["Ein Hund", "", "Ein"]):
        writer.record(number, line, translator.translate([line], beam_size=beam_size))
    writer.log_totals()
    assert "2 of 3" in caplog.messages[0]


def test_unknown_words_of_a_file_are_told_once(run, tmp_path, caplog):
    words = [f"a{number}b" for number in range(20)]
    (tmp_path / "in").write_text("Hallo Welt Hund\n\nEin Hund\nHallo\n" + " ".join(words))
    translate(input=tmp_path / "in", run=run.path, output=tmp_path / "out", max_length_ratio=9)
    assert caplog.messages[0].startswith(f"{tmp_path / 'in'}: 23 of 26")
    quoted = ", ".join(f"'{word}'" for word in ["Hallo", "Welt", *words[:8]])
    assert caplog.messages[0].endswith(f": {quoted}, …")


def test_unknown_words_of_a_prefix_are_told_once(run, tmp_path, caplog):
    translate(
        ["Hund", "Ein Hund"],
        run=run.path,
        output=tmp_path / "out",
        prefix="A zzz yyy",
        max_length_ratio=9,
    )
    [message] = [message for message in caplog.messages if "--prefix" in message]
    assert message.endswith(": 'zzz', 'yyy'")


def test_tabs_are_told_once(run, tmp_path, caplog, capfd):
    (tmp_path / "in.txt").write_text("Ein Hund\tEine Wiese\nHund\n\tHund\t\n")
    options = {"run": run.path, "max_length_ratio": 9.0}
    translate(input=tmp_path / "in.txt", **options)
    [message] = caplog.messages
    assert message.startswith(f"{tmp_path / 'in.txt'}: tabs, on 2 lines")
    texts = capfd.readouterr().out
    caplog.clear()
    translate(["Ein Hund Eine Wiese", "Hund", "Hund"], **options)
    assert (capfd.readouterr().out, caplog.messages) == (texts, [])
    translate(["Ein Hund\tHund"], **options)
    [message] = caplog.messages
    assert "on 1 line" in message


def test_lines_cut_at_the_limit_are_counted(run, tmp_path, caplog):
    (tmp_path / "in").write_text("\n".join([*SOURCE, ""]))
    translations = load(run.path).translate(SOURCE, max_length_ratio=0.01)
    is_cut = [translation.is_cut for translation in translations]
    assert sum(is_cut) > 1
    options = {"format": "json", "max_length_ratio": 0.01}
    translate(input=tmp_path / "in", run=run.path, output=tmp_path / "out", **options)
    [message] = caplog.messages
    assert f"{sum(is_cut)} of 5" in message
    assert message.endswith("--max-length-ratio")
    assert [line["is_cut"] for line in map(json.loads, read_lines(tmp_path / "out"))] == is_cut


def test_lines_that_may_lack_text_are_named(tmp_path, caplog):
    facts = LineFacts(one_sentence=True, ratio=20.0)  # so that each translation is too short
    run = make_toy_run(tmp_path / "run", toy_config(tokenizer="spacy"), facts=facts)
    (tmp_path / "in").write_text("\n".join([SOURCE[0], "", *SOURCE * 3]))
    options = {"run": run.path, "input": tmp_path / "in", "format": "json"}
    translate(output=tmp_path / "out", max_length_ratio=9, **options)
    [message] = caplog.messages
    assert message.startswith(f"{tmp_path / 'in'}: 16 of 17 lines")
    assert re.search(r"lines 1, 3, 4, .* 11 and 6 more \(line 1: .*\)$", message)
    warnings = [line["warnings"] for line in map(json.loads, read_lines(tmp_path / "out"))]
    assert [len(each) for each in warnings] == [1, 0, *[1] * 15]


def test_lines_that_lack_a_term_of_the_glossary_are_counted(run, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(terms, "MAX_TOKENS", 0)
    (tmp_path / "terms").write_text("Hund\twater\n")
    options = {"format": "json", "glossary": tmp_path / "terms"}
    translate(["Ein Hund", "Wiese"], run=run.path, output=tmp_path / "out", **options)
    assert any(re.search(r"1 of 2 .* line 1 \(.*'water'.*\)$", text) for text in caplog.messages)
    warnings = [line["warnings"] for line in map(json.loads, read_lines(tmp_path / "out"))]
    assert ["'water'" in str(each) for each in warnings] == [True, False]


def test_a_line_of_json_has_what_a_translation_has(run, tmp_path):
    lines = [SOURCE[0], "", "Hallo Hund"]
    options = {"run": run.path, "output": tmp_path / "out", "format": "json", "n_best": 2}
    for attention in (None, tmp_path / "maps.html"):
        translate(lines, attention=attention, **options)
        objects = [json.loads(line) for line in read_lines(tmp_path / "out")]
        assert [(found["line"], found["source"]) for found in objects] == [*enumerate(lines)]
        assert all(("weights" in found) == (attention is not None) for found in objects)
    expected = load(run.path).translate_n_best(lines, n_best=2)
    for found, translations in zip(objects, expected, strict=True):
        best = translations[0]
        for key in ("text", "tokens", "source_tokens"):
            assert found[key] == getattr(best, key)
        assert found["unknown_positions"] == list(best.unknown_positions)
        assert found["score"] == pytest.approx(best.score, abs=1e-5)
        assert [tuple(link) for link in found["links"]] == best.links()
        assert [each["text"] for each in found["n_best"]] == [each.text for each in translations]
        weights = np.array(found["weights"]).reshape(best.attention.shape)
        np.testing.assert_array_equal(weights, best.attention.astype(float).round(4))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_is_drawn_on_a_terminal_only(run, tmp_path, is_terminal, monkeypatch, capfd):
    (tmp_path / "in").write_text("Hund\nEin Hund\nHund\n")
    monkeypatch.setattr("seq2seq_attn.api.translate.EVERY_S", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    translate(input=tmp_path / "in", run=run.path, max_length_ratio=9.0)
    assert ("3/3" in capfd.readouterr().err) == is_terminal


@pytest.mark.parametrize(
    "command", ["translate Hund --run", "export -o page.html", "serve --host=192.0.2.1"]
)
@pytest.mark.usefixtures("in_tmp_path")
def test_a_run_whose_training_has_not_finished_is_named_once(command, capfd):
    make_toy_run("unfinished").last_dir.mkdir()
    Path("unfinished/finished.json").unlink()
    main([*command.split(), "unfinished"])
    assert capfd.readouterr().err.count("training has not finished") == 1
