"""Warnings of `translate` on stderr about unreliable translations, and its JSON lines."""

import json
from pathlib import Path

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.cli.translation import Warnings
from seq2seq_attn.run_dir import RunDir
from tests.toy_run import SOURCE, make_toy_run, toy_config
from tests.translation_requests import translate


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """Words as tokens: those of `SOURCE` are known."""
    return make_toy_run(tmp_path_factory.mktemp("runs") / "toy", toy_config(tokenizer="spacy"))


# ---- words unknown to the run ----


@pytest.mark.parametrize("beam_size", [1, 3])
def test_probabilities_that_are_not_numbers_are_told(
    run: RunDir, beam_size: int, caplog: pytest.LogCaptureFixture
) -> None:
    translator = load(run.path, "cpu")
    for parameter in translator.model.parameters():
        parameter.data.fill_(float("nan"))
    writer = Warnings("in", translator, translator.search)
    for number, line in enumerate(["Ein Hund", "", "Ein"]):
        writer.record(number, line, translator.translate([line], beam_size=beam_size))
    writer.log_totals()
    assert caplog.messages[0] == (
        "in: 2 of 3 lines not translated: the model's probabilities are 0 or not numbers; try --precision fp32"
    )


def test_unknown_words_of_each_sentence_are_told(
    run: RunDir, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    translate(["Hallo Welt Hund", "Ein Hund", "", "x" * 50], run=run.path, max_length_ratio=9)
    assert caplog.messages[:2] == [
        "line 1: 2 of 3 words unknown to this run: Hallo, Welt",
        f"line 4: 1 of 1 words unknown to this run: {'x' * 29}…",
    ]
    assert "unknown" not in capfd.readouterr().out


def test_unknown_words_of_a_file_are_told_once(run: RunDir, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "in").write_text("Hallo Welt Hund\n\nEin Hund\nHallo\n" + " ".join(f"a{i}b" for i in range(20)))
    translate(input=tmp_path / "in", run=run.path, output=tmp_path / "out", max_length_ratio=9)
    examples = ", ".join(["Hallo", "Welt", *(f"a{i}b" for i in range(8))])
    assert caplog.messages[0] == (
        f"{tmp_path / 'in'}: 23 of 26 words unknown to this run, on 3 of 5 lines; for example: {examples}"
    )


def test_unknown_words_of_a_prefix_are_told_once(run: RunDir, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    translate(["Hund", "Ein Hund"], run=run.path, output=tmp_path / "out", prefix="A zzz yyy", max_length_ratio=9)
    unknown = [message for message in caplog.messages if "unknown" in message]
    assert unknown == ["--prefix: 2 of 3 words unknown to this run: zzz, yyy"]


# ---- tabs in the input of a run with one source ----


def test_tabs_are_told_once(
    run: RunDir, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.tsv").write_text("Ein Hund\tEine Wiese\nHund\n\tHund\t\n")
    of = {"run": run.path, "max_length_ratio": 9.0}
    translate(input=tmp_path / "in.tsv", **of)
    tabs = "hold tabs, which count as spaces; this run reads one source"
    assert caplog.messages == [f"{tmp_path / 'in.tsv'}: 2 lines {tabs}"]
    texts = capfd.readouterr().out
    caplog.clear()
    translate(["Ein Hund Eine Wiese", "Hund", "Hund"], **of)
    assert (capfd.readouterr().out, caplog.messages) == (texts, [])
    translate(["Ein Hund\tHund"], **of)
    assert caplog.messages == ["1 line holds tabs, which count as spaces; this run reads one source"]


# ---- lines that the limit cut ----


def test_lines_cut_at_the_limit_are_counted(run: RunDir, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "in").write_text("\n".join([*SOURCE, ""]))
    found = load(run.path).translate(SOURCE, max_length_ratio=0.01)
    num_cut = sum(translation.is_cut for translation in found)
    assert num_cut > 1
    translate(input=tmp_path / "in", run=run.path, output=tmp_path / "out", format="json", max_length_ratio=0.01)
    assert caplog.messages == [
        f"{tmp_path / 'in'}: {num_cut} of 5 lines were cut at the length limit (0.01 * source tokens + 4); "
        "raise it with --max-length-ratio"
    ]
    objects = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [one["is_cut"] for one in objects] == [translation.is_cut for translation in found]


# ---- JSON lines ----


def test_a_line_of_json_has_what_a_translation_has(run: RunDir, tmp_path: Path) -> None:
    lines = [SOURCE[0], "", "Hallo Hund"]
    translate(lines, run=run.path, output=tmp_path / "out", format="json", n_best=2)
    written = (tmp_path / "out").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(written) == 3
    for line, best in zip(written, load(run.path).translate_n_best(lines, n_best=2), strict=True):
        found = json.loads(line)
        assert (found["text"], found["tokens"], found["source_tokens"]) == (
            best[0].text,
            best[0].tokens,
            best[0].source_tokens,
        )
        assert found["score"] == pytest.approx(best[0].score, abs=1e-5)
        assert (found["links"], found["unknown"]) == ([list(link) for link in best[0].links()], list(best[0].unknown))
        assert [one["text"] for one in found["n_best"]] == [translation.text for translation in best]


def test_json_has_the_line_its_source_and_on_request_the_weights(run: RunDir, tmp_path: Path) -> None:
    lines, page = [SOURCE[0], "", "Hallo Hund"], tmp_path / "maps.html"
    for attention in (None, page):
        translate(lines, run=run.path, output=tmp_path / "out", format="json", attention=attention)
        objects = [json.loads(line) for line in (tmp_path / "out").read_text(encoding="utf-8").splitlines()]
        assert [(one["line"], one["source"]) for one in objects] == [*enumerate(lines)]
        assert ["weights" in one for one in objects] == [attention is not None] * 3
    for one, best in zip(objects, load(run.path).translate(lines), strict=True):
        assert best.attention is not None
        weights = np.array(one["weights"]).reshape(best.attention.shape)
        np.testing.assert_array_equal(weights, best.attention.astype(float).round(4))


# ---- progress ----


def test_a_log_shows_the_progress_through_a_file_and_stdout_only_translations(
    run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_text("Hund\nEin Hund\nHund\n")
    translate(input=tmp_path / "in", run=run.path, max_length_ratio=9.0)
    quick = capfd.readouterr()
    monkeypatch.setattr("seq2seq_attn.cli.translation.LOG_EVERY_S", 0.0)
    translate(input=tmp_path / "in", run=run.path, max_length_ratio=9.0)
    slow = capfd.readouterr()
    assert quick.out == slow.out
    assert slow.out.count("\n") == 3
    assert "3/3" in slow.err
    assert "/3" not in quick.err
