"""Evaluation end to end, with small real runs: translate, score, compare, write."""

from __future__ import annotations

import gzip
import json
import logging

import pytest
import sacrebleu

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluate import evaluate, score_files
from seq2seq_attn.report.scores import Resampling
from seq2seq_attn.translator import load
from tests.metrics.corpora import make_hypotheses, make_references
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config

QUICK = Resampling(num_resamples=50, num_trials=50)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """Two runs of one corpus with two test sets, and one of another corpus."""
    root = tmp_path_factory.mktemp("evaluate")
    for name, source, target in [
        *[(split, SOURCE, TARGET) for split in ("train", "valid", "short")],
        ("long", [f"{a} {b}" for a in SOURCE for b in SOURCE], [f"{a} {b}" for a in TARGET for b in TARGET]),
    ]:
        (root / f"{name}.de").write_text("\n".join(source) + "\n", encoding="utf-8")
        (root / f"{name}.en").write_text("\n".join(target) + "\n", encoding="utf-8")
    data = {
        "corpus": "files",
        "data_dir": str(root),
        "train": str(root / "train"),
        "valid": str(root / "valid"),
        "test": {"short": str(root / "short"), "long": str(root / "long")},
    }
    make_toy_run(root / "additive", toy_config(**data))
    make_toy_run(root / "none", toy_config(attention="none", **data), seed=4)
    other = toy_config(tokenizer="spacy", **{**data, "test": {"short": str(root / "long")}})
    other.data.tokenizer.lowercase = True
    make_toy_run(root / "other", other)
    return root


def run_evaluate(workshop, *names, **options):
    return evaluate([workshop / name for name in names], resampling=QUICK, device="cpu", **options)


def test_one_run_on_its_test_sets(workshop, caplog):
    with caplog.at_level(logging.INFO, logger="seq2seq_attn"):
        report = run_evaluate(workshop, "additive")
    assert [scores.name for scores in report.sets] == ["short", "long", "all test sets"]
    assert [scores.num_pairs for scores in report.sets] == [5, 25, 30]
    translator = load(workshop / "additive", "cpu")
    expected = [found.text for found in translator.translate(SOURCE)]
    written = (workshop / "additive/hyps/short.txt").read_text(encoding="utf-8")
    assert written == "".join(f"{line}\n" for line in expected)
    assert report.sets[0].scores["bleu"][0].interval.value == sacrebleu.corpus_bleu(expected, [TARGET]).score
    assert "all test sets: 30 sentence pairs" in report.text
    assert "additive: beam size 3, length penalty 0" in report.text
    assert "report.json" in caplog.text


def test_what_the_run_directory_gets(workshop):
    report = run_evaluate(workshop, "additive", by_length="12,15", beam_size=1)
    values = json.loads((workshop / "additive/report.json").read_text(encoding="utf-8"))
    assert values == json.loads(json.dumps(report.data))
    [run] = values["runs"]
    assert (run["name"], run["seed"], run["attention"], run["lowercases"]) == ("additive", 1, "additive", False)
    assert run["search"] == {"beam_size": 1, "length_penalty": 0.0}
    assert values["length"]["of"] == "source"
    assert values["length"]["edges"] == [12, 15]
    assert values["length"]["tokenizer"].startswith("spacy.blank:de:")
    assert values["resampling"] == {"num_resamples": 50, "num_trials": 50, "seed": 12345}
    assert values["environment"]["packages"]["sacrebleu"] == sacrebleu.__version__
    assert [one["name"] for one in values["sets"]] == ["short", "long", "all test sets"]
    assert [measure["name"] for measure in values["sets"][0]["measures"]] == [
        *("bleu", "bleu_lowercase", "bleu_tutorial", "chrf")
    ]
    markdown = (workshop / "additive/report.md").read_text(encoding="utf-8")
    assert "![bleu-by-length.png](bleu-by-length.png)" in markdown
    assert (workshop / "additive/bleu-by-length.png").read_bytes().startswith(b"\x89PNG")


def test_two_runs_side_by_side(workshop, tmp_path):
    report = run_evaluate(workshop, "additive", "none", splits=["long"], json_path=tmp_path / "compared.json")
    [scores] = report.sets
    assert scores.systems == ["additive", "none"]
    assert scores.scores["bleu"][1].bootstrap is not None
    assert "difference" in report.text
    assert {path.name for path in tmp_path.iterdir()} == {
        "compared.json",
        "compared.md",
        "bleu-by-length.compared.png",
        "retention-by-length.compared.png",
    }
    run_evaluate(workshop, "additive", "none", splits=["short"])
    assert (workshop / "additive/report.comparison.json").exists()
    assert (workshop / "additive/retention-by-length.comparison.png").exists()


def test_a_pair_of_files_plain_or_compressed(workshop, tmp_path):
    (tmp_path / "src.gz").write_bytes(gzip.compress("\n".join(SOURCE).encode()))
    (tmp_path / "ref").write_text("\n".join(TARGET), encoding="utf-8")
    report = run_evaluate(workshop, "other", source=tmp_path / "src.gz", reference=tmp_path / "ref")
    assert [(scores.name, scores.num_pairs) for scores in report.sets] == [("src", 5)]
    assert (workshop / "other/hyps/src.txt").read_text(encoding="utf-8").count("\n") == 5
    assert "other lower-cases: every capital counts against" in report.text


def test_length_of_the_reference(workshop):
    report = run_evaluate(workshop, "additive", splits=["short"], length_of="reference", by_length="9")
    assert report.data["length"]["tokenizer"].startswith("spacy.blank:en:")
    assert [(row.bucket.label, len(row.bucket)) for row in report.sets[0].buckets] == [
        ("up to 8", 2),
        ("9 and more", 3),
    ]
    assert "reference tokens" in report.text


def test_hypotheses_are_reused_only_if_nothing_changed(workshop, monkeypatch):
    run_evaluate(workshop, "none", splits=["short"])
    path = workshop / "none/hyps/short.txt"
    path.write_text("".join(f"marked {line}\n" for line in TARGET), encoding="utf-8")
    reused = run_evaluate(workshop, "none", splits=["short"], reuse_hypotheses=True)
    assert reused.data["runs"][0]["is_reused"]
    assert reused.sets[0].scores["bleu"][0].interval.value > 50
    changed = run_evaluate(workshop, "none", splits=["short"], reuse_hypotheses=True, beam_size=2)
    assert not changed.data["runs"][0]["is_reused"]
    assert "marked" not in path.read_text(encoding="utf-8")


def test_usage_errors(workshop, tmp_path):
    file = workshop / "short.de"
    cases = [
        ([], {}, "no run to evaluate"),
        (["additive"], {"splits": ["tset"]}, "--split 'tset': this corpus has train, valid, short, long"),
        (["additive"], {"source": file}, "--source and --reference go together"),
        (["additive"], {"source": file, "reference": file, "splits": ["short"]}, "--split and --source"),
        (["additive"], {"by_length": "9,8", "splits": ["short"]}, "--by-length '9,8': expected rising"),
        (["additive", "additive"], {}, "the same twice"),
        (["additive", "other"], {}, "different test sets"),
        (["additive"], {"report_path": tmp_path / "r.pdf"}, "ends in .md"),
    ]
    for names, options, message in cases:
        with pytest.raises(UsageError, match=message):
            run_evaluate(workshop, *names, **options)


def test_files_that_do_not_fit(workshop):
    with pytest.raises(UserError, match=r"has 5 lines and .* has 25"):
        run_evaluate(workshop, "additive", source=workshop / "short.de", reference=workshop / "long.en")
    with pytest.raises(UserError, match="not a run directory"):
        evaluate([workshop / "nowhere"])


def test_saved_hypotheses_need_no_model(tmp_path, monkeypatch):
    monkeypatch.setattr("seq2seq_attn.evaluate.load", None)
    references = make_references(60)
    paths = {}
    for name, lines in {
        "ref": references,
        "a": make_hypotheses(references, 1, 0.3),
        "b": make_hypotheses(references, 2, 0.5),
    }.items():
        paths[name] = tmp_path / name
        paths[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    report = score_files([paths["a"], paths["b"]], paths["ref"], by_length="quantiles:3", resampling=QUICK)
    assert report.data["length"]["of"] == "reference"
    assert len(report.sets[0].buckets) == 3
    assert report.sets[0].systems == ["a", "b"]
    assert sorted(tmp_path.iterdir()) == sorted(paths.values())
    score_files([paths["a"]], paths["ref"], source=paths["b"], json_path=tmp_path / "out.json", resampling=QUICK)
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["length"]["of"] == "source"
    with pytest.raises(UsageError, match="no hypotheses to score"):
        score_files([], paths["ref"])
