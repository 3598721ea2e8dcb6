"""Translations by other programs, beside runs and alone."""

from pathlib import Path

import pytest

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import write_lines
from seq2seq_attn.text.lines import read_lines
from tests.toy_requests import evaluate
from tests.toy_run import SOURCE, TARGET


@pytest.fixture
def files(tmp_path, in_tmp_path, workshop):
    """A source, a reference, translations that are perfect, and others."""
    write_lines(tmp_path / "news.de", SOURCE)
    write_lines(tmp_path / "news.en", TARGET)
    write_lines(tmp_path / "perfect.txt", TARGET)
    write_lines(tmp_path / "poor.txt", ["A dog.", "Two men play football.", "", "The", "Three"])
    return {"source": "news.de", "reference": "news.en"}


def scores(report, metric=0):
    return {run["run"]: run["score"] for run in report.data["sets"][0]["measures"][metric]["runs"]}


def test_files_alone_are_scored_and_compared(files, tmp_path):
    report = evaluate(
        None, hypotheses=["poor.txt", "best=perfect.txt"], json="r.json", report="r.html", **files
    )
    found = scores(report)
    assert list(found) == ["poor", "best"]
    assert found["poor"] < found["best"] == pytest.approx(100)
    assert report.data["languages"] == {"source": "de", "target": "en", "corpus": "files"}
    assert report.data["runs"][1]["path"] == "perfect.txt"
    assert "Two men play football." in (tmp_path / "r.html").read_text("utf-8")


def test_a_file_beside_a_run_has_the_scores_of_the_run_that_wrote_it(files, workshop, tmp_path):
    alone = evaluate(workshop / "additive", json="r.json", **files)
    [written] = (tmp_path / "r.hyps").glob("*/files/news.de.txt")
    report = evaluate(
        workshop / "additive", hypotheses=f"copy={written}", json="s.json", by_length="8", **files
    )
    run, copy = report.data["sets"][0]["measures"][0]["runs"]
    assert copy["score"] == run["score"] == alone.data["sets"][0]["measures"][0]["runs"][0]["score"]
    assert len(report.sets[0].buckets) == 2
    for bucket in report.sets[0].buckets:
        by_run, by_copy = bucket.run_scores["bleu"]
        assert by_copy.values == by_run.values


def test_a_split_of_a_run_may_be_translated_by_others(files, workshop):
    num_lines = len(read_lines(workshop / "short.en"))
    write_lines(Path("short.txt"), ["A dog"] * num_lines)
    report = evaluate(workshop / "additive", split="short", hypotheses="short.txt", json="r.json")
    assert list(scores(report)) == ["additive", "short"]


@pytest.mark.parametrize("splits", [(), ("short", "long")])
def test_a_file_belongs_to_a_single_test_set(files, workshop, splits):
    with pytest.raises(UsageError, match=r"--split NAME.*: short, long"):
        evaluate(workshop / "additive", split=splits, hypotheses="poor.txt", json="r.json")


def test_the_reference_decides_the_tokenizer_of_bleu(files):
    write_lines(Path("news.ja"), ["犬が走る。"] * 5)
    report = evaluate(
        None, source="news.de", reference="news.ja", hypotheses="perfect.txt", json="r.json"
    )
    assert "tok:13a" not in report.data["sets"][0]["measures"][0]["signature"]


@pytest.mark.parametrize(
    ("options", "error", "value"),
    [
        ({"hypotheses": "short.txt"}, UserError, r"short\.txt: 1 lines; .*5"),
        ({"hypotheses": "none.txt"}, UserError, r"none\.txt"),
        ({"hypotheses": ["poor.txt", "poor=perfect.txt"]}, UsageError, "'poor'"),
        ({"hypotheses": "poor.txt", "source": None, "reference": ()}, UsageError, "--source"),
        ({"hypotheses": "poor.txt", "reference": ()}, UsageError, "--reference"),
        ({"hypotheses": "poor.txt", "reference": "perfect.txt"}, UsageError, r"perfect\.txt"),
        ({"hypotheses": "poor.txt", "reference": "news.jp"}, UsageError, "jp"),
        ({"runs": "additive", "source": "film.de"}, UserError, r"film\.de: subtitles"),
        ({"runs": "additive", "reference": "news.csv"}, UserError, r"news\.csv: .*CSV"),
        ({"hypotheses": "news.csv"}, UserError, r"news\.csv: .*CSV"),
        ({"runs": "additive", "source": "news.jp"}, UsageError, "de"),
        ({"runs": "additive", "reference": "news.jp"}, UsageError, "en"),
    ],
)
def test_what_cannot_be_scored_is_refused(files, workshop, options, error, value):
    write_lines(Path("short.txt"), ["A dog."])
    write_lines(Path("news.jp"), ["犬が走る。"] * 5)
    write_lines(Path("film.de"), ["1", "00:00:01,000 --> 00:00:02,000", "Ein Hund rennt.", "", ""])
    write_lines(Path("news.csv"), ["id,de", *["1,Ein Hund"] * 4])
    named = {**files, **options}
    runs = workshop / named.pop("runs") if "runs" in named else None
    with pytest.raises(error, match=value):
        evaluate(runs, json="r.json", **named)
