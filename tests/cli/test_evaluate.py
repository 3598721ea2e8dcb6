"""Evaluation end to end, with small real runs: translate, score, compare, write."""

import csv
from xml.etree import ElementTree

import pytest
import sacrebleu

from seq2seq_attn import load
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.evaluation.attention import gold_pairs
from seq2seq_attn.evaluation.test_sets import caption_links, find_sets
from seq2seq_attn.files import read_json, write_lines
from seq2seq_attn.metrics.attention import score_shifts
from seq2seq_attn.run import Run
from seq2seq_attn.text.lines import read_lines
from tests.cli.command_line import assert_fails
from tests.toy_requests import evaluate, run_evaluate, translate_and_score
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config


def test_one_run_on_its_test_sets(workshop, caplog):
    with caplog.at_level("INFO", logger="seq2seq_attn"):
        report = run_evaluate(workshop, "additive")
    assert [scores.name for scores in report.sets] == ["short", "long", "all test sets"]
    assert [scores.num_pairs for scores in report.sets] == [5, 25, 30]
    translator = load(workshop / "additive", "cpu")
    expected = [translation.text for translation in translator.translate(SOURCE)]
    assert read_lines(workshop / "additive/hyps/short.txt") == expected
    score = report.sets[0].whole.scores["bleu"][0].interval.value
    assert score == sacrebleu.corpus_bleu(expected, [TARGET]).score
    assert "all test sets: 30 sentence pairs" in report.text
    assert "additive: beam size 3, length penalty 0" in report.text
    assert "report.json" in caplog.text


def test_concatenated_pairs_are_sets_of_their_own(workshop, tmp_path):
    options = {
        "concatenate": [1, 2, 2],
        "json": tmp_path / "report.json",
        "plots": "png",
        "by_length": "12,15",
    }
    report = translate_and_score(workshop, "additive", "none", **options)
    assert [(scores.name, scores.num_pairs, scores.num_concatenated) for scores in report.sets] == [
        ("short", 5, 1),
        ("long", 25, 1),
        ("short.x2", 2, 2),
        ("long.x2", 12, 2),
        ("all test sets", 30, 1),
        ("all test sets.x2", 14, 2),
    ]
    assert len(read_lines(tmp_path / "report.hyps/additive/long.x2.txt")) == 12
    assert (tmp_path / "retention-by-length.x2.png").exists()
    assert (tmp_path / "retention-by-length.png").exists()
    again = translate_and_score(workshop, "additive", "none", reuse_hypotheses=True, **options)
    assert [run["is_reused"] for run in again.data["runs"]] == [True, True]
    assert again.data["sets"] == report.data["sets"]


def test_concatenated_pairs_are_translated_in_one_piece(workshop):
    translate_and_score(workshop, "additive", split=["short"], concatenate=[3])
    run = Run(workshop / "additive")
    [joined] = find_sets([run], ["short"], concatenate=[3])
    translator = load(workshop / "additive", "cpu")
    whole = translator.with_max_source_length(90).translate(joined.source)
    in_segments = translator.translate(joined.source)
    written = read_lines(run.hyps_dir / "short.x3.txt")
    assert written == [translation.text for translation in whole]
    assert written != [translation.text for translation in in_segments]


def test_attention_is_analyzed_unless_told_otherwise(workshop):
    report = run_evaluate(workshop, "additive", "none", split=["short", "long"], metric=["bleu"])
    for scores, values in zip(report.sets, report.data["sets"], strict=True):
        additive, none = values["attention"]["runs"]
        assert additive["entropy"] > 0
        assert (none["entropy"], none["dropped"]) == (None, None)
        assert 0 < none["missing"] <= 1
        assert "gold" not in additive
        labels = [row["label"] for row in values["attention"]["buckets"]]
        assert labels == [row.bucket.label for row in scores.buckets]
    assert "Attention by length" in report.text
    assert "Attention against gold links" not in report.text
    left_out = run_evaluate(workshop, "additive", split=["short"], no_attention=True)
    assert "attention" not in left_out.data["sets"][0]
    assert "Attention by length" not in left_out.text


def test_gold_links_of_the_embedded_corpus_are_used(tmp_path):
    sizes = {"train": 30, "valid": 4, "test": 12}
    config = toy_config(corpus="captions", data_dir=str(tmp_path), limit=sizes, tokenizer="spacy")
    prepared = prepare_corpus(config)
    make_toy_run(tmp_path / "run", config).save_sets(prepared)
    report = run_evaluate(tmp_path, "run", concatenate=[1, 2], beam_size=1, metric=["bleu"])
    for values, num_pairs in zip(report.data["sets"], (12, 6), strict=True):
        [run] = values["attention"]["runs"]
        assert [shifted["shift"] for shifted in run["gold"]] == [-1, 0, 1]
        assert run["gold"][1]["num_pairs"] == num_pairs
        assert 0 < run["gold"][1]["mass"] < 1
        rows = [row["runs"][0]["gold"][1] for row in values["attention"]["buckets"]]
        assert sum(row["num_pairs"] for row in rows) == num_pairs
    assert "Attention against gold links" in report.text
    unshifted = report.data["sets"][0]["attention"]["runs"][0]["gold"][1]
    gold = caption_links(*prepared.text("test"), prepared.links("test"))
    translator = load(tmp_path / "run", "cpu")
    decoded = translator.score(*prepared.text("test"))
    pairs = zip(decoded, gold.source_words, gold.target_words, strict=True)
    scores = score_shifts(gold_pairs(pairs, gold.links))
    assert scores[0].error_rate == unshifted["error_rate"]


def test_all_references_count_in_scores_and_paired_tests(workshop, tmp_path, capsys):
    second = [line.replace("A ", "One ").replace(".", " now.") for line in TARGET]
    for name, lines in (("src", SOURCE), ("one", TARGET), ("two", second)):
        write_lines(tmp_path / name, lines)
    references = f"--reference {tmp_path}/one --reference {tmp_path}/two"
    command = f"evaluate {workshop}/additive {workshop}/none --source {tmp_path}/src {references}"
    written = f"{command} --json {tmp_path}/r.json --metric bleu --device cpu"
    assert run_command(written.split()) == 0
    [bleu] = read_json(tmp_path / "r.json")["sets"][0]["measures"]
    names = ("additive", "none")
    hypotheses = [read_lines(tmp_path / f"r.hyps/{name}/files/src.txt") for name in names]
    scores = [sacrebleu.corpus_bleu(lines, [TARGET, second]).score for lines in hypotheses]
    assert bleu["signature"].startswith("nrefs:2|")
    assert [run["score"] for run in bleu["runs"]] == pytest.approx(scores)
    assert bleu["runs"][1]["paired_bootstrap"]["difference"] == pytest.approx(scores[1] - scores[0])
    longer = f"{command} --reference {workshop}/long.en"
    assert_fails(capsys, *longer.split(), code=1, message="long.en")


def test_the_metric_of_validation_leads(workshop, tmp_path):
    config = Run(workshop / "additive").config
    config.train.validation.metric = "cer"
    make_toy_run(tmp_path / "run", config)
    report = run_evaluate(tmp_path, "run", split=["short"])
    metrics = list(report.sets[0].whole.scores)
    assert metrics == "cer bleu bleu_lowercase bleu_tutorial chrf".split()
    assert report.summary.startswith("CER ")
    named = run_evaluate(tmp_path, "run", split=["short"], metric=["chrf"])
    assert list(named.sets[0].whole.scores) == ["chrf"]


HOSTILE = "=a\x1b[2J\ufeff\u202e\x07b"


def test_control_characters_in_names_are_shown_as_escapes(workshop, tmp_path, capsys):
    run = make_toy_run(tmp_path / HOSTILE, Run(workshop / "additive").config)
    write_lines(tmp_path / f"{HOSTILE}.de", SOURCE)
    write_lines(tmp_path / "ref", TARGET)
    command = f"evaluate {run.path} {workshop}/none --device cpu --full --plots svg".split()
    files = ["--source", str(tmp_path / f"{HOSTILE}.de"), "--reference", str(tmp_path / "ref")]
    written = f"--json={tmp_path}/r.json --report={tmp_path}/r.html"
    written += f" --csv={tmp_path}/r.csv"
    assert run_command([*command, *files, *written.split()]) == 0
    shown = "".join(capsys.readouterr())
    assert run_command([*command, "--split", HOSTILE]) == 2
    shown += "".join(capsys.readouterr())
    for name in ("bleu-by-length.r.svg", "retention-by-length.r.svg"):
        ElementTree.parse(tmp_path / name)  # well-formed
        shown += (tmp_path / name).read_text("utf-8")
    for name in ("r.csv", "r.html"):
        shown += (tmp_path / name).read_text("utf-8").partition("</title>")[0]
    assert not {*shown} & {*"\x1b\x07\ufeff\u202e"}
    assert r"=a\x1b[2J\ufeff\u202e\x07b" in shown
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.reader(stream):
            assert not any(cell.startswith(("=", "+", "@")) for cell in row)


@pytest.mark.parametrize(
    ("names", "options", "code", "message"),
    [
        ([], {}, 2, "run"),
        (["additive"], {"source": "short.de"}, 2, "--source and --reference"),
        (
            ["additive"],
            {"source": "short.de", "reference": "short.de", "split": "short"},
            2,
            "--split and --source",
        ),
        (["additive"], {"metric": ["blue"]}, 2, "blue"),
        (["additive"], {"length_of": "target"}, 2, "target"),
        (["additive", "other"], {}, 2, "additive"),
        (["additive"], {"ensemble": True}, 2, "--ensemble"),
        (["additive"], {"split": ["short"], "concatenate": [6]}, 2, "--concatenate 6: short .* 5 "),
        (["additive"], {"report": "r.pdf"}, 2, "r.pdf"),
        (["additive"], {"csv": "t", "json": "./t"}, 2, "--json and --csv: .*t"),
        (
            ["additive"],
            {"source": "short.de", "reference": "short.de", "json": "short.de"},
            2,
            "--json: .*short.de",
        ),
        (["additive"], {"source": "short.de", "reference": "long.en"}, 1, r"5 .* 25"),
        (["additive"], {"source": "empty", "reference": "empty"}, 1, "empty"),
    ],
)
def test_what_does_not_fit_is_refused(workshop, monkeypatch, names, options, code, message):
    monkeypatch.chdir(workshop)
    (workshop / "empty").touch()
    with pytest.raises(UserError, match=message) as raised:
        evaluate(names, **options)
    assert raised.value.exit_code == code


def test_nothing_is_written_beside_a_device(workshop, tmp_path):
    (tmp_path / "null").symlink_to("/dev/null")
    run_evaluate(workshop, "additive", split=["short"], json=tmp_path / "null")
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


def test_one_translation_per_line_is_scored(tmp_path):
    config = toy_config()
    config.search.n_best = 2
    make_toy_run(tmp_path / "run", config)
    write_lines(tmp_path / "de", SOURCE)
    write_lines(tmp_path / "en", TARGET)
    files = {"source": tmp_path / "de", "reference": tmp_path / "en"}
    assert run_evaluate(tmp_path, "run", beam_size=1, **files).sets[0].num_pairs == 5


def test_a_glossary_changes_translations_and_is_reported(workshop, tmp_path):
    write_lines(tmp_path / "terms.tsv", ["Hund\twater"])
    write_lines(tmp_path / "src", SOURCE)
    named = {"source": tmp_path / "src", "reference": tmp_path / "src", "json": tmp_path / "r.json"}
    report = evaluate(workshop / "additive", glossary=tmp_path / "terms.tsv", **named)
    where = f"{tmp_path / 'terms.tsv'}, line 1"
    assert report.data["runs"][0]["glossary"] == [[where, "Hund", "water"]]
    [hyps] = (tmp_path / "r.hyps").glob("*/files/src.glossary.txt")
    expected = load(workshop / "additive", "cpu").translate(SOURCE, glossary=tmp_path / "terms.tsv")
    assert hyps.read_text().splitlines() == [translation.text for translation in expected]
    again = evaluate(workshop / "additive", reuse_hypotheses=True, **named)
    assert not again.data["runs"][0]["is_reused"]


def test_translations_that_the_limit_cut_are_counted_and_told(workshop, tmp_path):
    config = Run(workshop / "additive").config
    config.search.max_length_ratio = 0.1
    config.search.max_length_extra = 1
    make_toy_run(tmp_path / "cut", config)
    source = [*SOURCE, "Ein Xylofon § rennt."]
    write_lines(tmp_path / "src", source)
    write_lines(tmp_path / "ref", [*TARGET, "A thing runs."])
    names = {"source": "src", "reference": "ref", "json": "r.json"}
    named = {option: tmp_path / name for option, name in names.items()}
    report = run_evaluate(tmp_path, "cut", **named)
    expected = load(tmp_path / "cut", "cpu").translate(source)
    num_cut = sum(translation.is_cut for translation in expected)
    num_unknown = sum(len(translation.unknown_positions) for translation in expected)
    assert num_cut > 0
    assert num_unknown > 0
    assert report.data["sets"][0]["translations"] == [
        {"run": "cut", "num_cut": num_cut, "num_unknown_source_tokens": num_unknown}
    ]
    again = run_evaluate(tmp_path, "cut", reuse_hypotheses=True, **named)
    assert again.data["runs"][0]["is_reused"]
    assert again.data["sets"] == report.data["sets"]
