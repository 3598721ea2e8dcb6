"""Evaluation end to end, with small real runs: translate, score, compare, write."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path

import pytest
import sacrebleu

from seq2seq_attn.commands.evaluate import evaluate, score_files
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.attention import judge_alignment
from seq2seq_attn.evaluation.test_sets import caption_links, find_sets
from seq2seq_attn.report.build import Settings
from seq2seq_attn.report.files import ReportFiles
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.translate.translator import Translator, load
from tests.evaluation_requests import QUICK, make_request
from tests.metrics.corpora import make_hypotheses, make_references
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config


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
    return evaluate(make_request([workshop / name for name in names], **options))


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
    assert run["search"] == {"beam_size": 1, "length_penalty": 0.0, "max_length_ratio": 1.5}
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
    report = run_evaluate(workshop, "additive", "none", splits=["long"], json=tmp_path / "compared.json")
    [scores] = report.sets
    assert scores.systems == ["additive", "none"]
    assert scores.scores["bleu"][1].bootstrap is not None
    assert "difference" in report.text
    run_evaluate(workshop, "additive", "none", splits=["short"])
    assert (workshop / "additive/report.comparison.json").exists()
    assert (workshop / "additive/retention-by-length.comparison.png").exists()


def everything_in(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_only_named_files_are_written_and_no_run_is_touched(workshop, tmp_path):
    before = everything_in(workshop)
    named = {"json": tmp_path / "r.json", "page": tmp_path / "r.html"}
    run_evaluate(workshop, "additive", "none", splits=["short"], beam_size=1, **named)
    assert {str(path.relative_to(tmp_path)) for path in everything_in(tmp_path)} == {
        *("r.json", "r.html"),
        *(f"r.hyps/{run}/short.beam1.{kind}" for run in ("additive", "none") for kind in ("txt", "json")),
    }
    run_evaluate(workshop, "additive", splits=["short"], page=tmp_path / "alone" / "r.md")
    assert [path.name for path in everything_in(tmp_path / "alone")] == ["r.md"]
    assert everything_in(workshop) == before


@pytest.mark.parametrize(("plots", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_plots_lie_beside_the_report_in_the_wanted_format(workshop, tmp_path, plots, magic):
    named = {"json": tmp_path / "compared.json", "page": tmp_path / "docs" / "page.md", "plots": plots}
    run_evaluate(workshop, "additive", "none", splits=["short"], **named)
    for kind in ("bleu", "retention"):
        name = f"{kind}-by-length.compared.{plots}"
        assert (tmp_path / name).read_bytes().startswith(magic)
        assert f"](../{name})" in (tmp_path / "docs" / "page.md").read_text(encoding="utf-8")


def test_runs_of_one_name_keep_their_translations_apart(workshop, tmp_path):
    for number, folder in enumerate(("a", "b")):
        make_toy_run(tmp_path / folder / "s1", RunDir(workshop / "additive").config(), seed=number)
    run_evaluate(tmp_path, "a/s1", "b/s1", splits=["short"], json=tmp_path / "r.json")
    assert {path.name for path in (tmp_path / "r.hyps").iterdir()} == {"s1-1", "s1-2"}


def test_a_trial_with_other_settings_spares_the_runs_own_translations(workshop):
    run_evaluate(workshop, "none", splits=["short"])
    own = (workshop / "none/hyps/short.txt").read_bytes()
    run_evaluate(workshop, "none", splits=["short"], beam_size=1, length_penalty=0.5)
    assert (workshop / "none/hyps/short.txt").read_bytes() == own
    assert (workshop / "none/hyps/short.beam1.penalty0.5.txt").exists()
    again = run_evaluate(workshop, "none", splits=["short"], beam_size=1, length_penalty=0.5, reuse_hypotheses=True)
    assert again.data["runs"][0]["is_reused"]


def test_a_run_that_cannot_be_written_to_is_scored_all_the_same(workshop, tmp_path, caplog):
    run = tmp_path / "run"
    make_toy_run(run, RunDir(workshop / "additive").config())
    (run / "report.json").mkdir()
    before = everything_in(run)
    report = run_evaluate(tmp_path, "run", splits=["short"])
    assert report.sets[0].num_pairs == 5
    assert "report.json: cannot be written (Is a directory); the scores are shown, not saved" in caplog.text
    assert everything_in(run) == before


def test_what_is_known_of_the_model_is_numbers(workshop, tmp_path):
    run = make_toy_run(tmp_path / "run", RunDir(workshop / "additive").config())
    about = {"update": "40", "perplexity": "204.1", "bleu": "inf", "commit": "12ab"}
    run.save_best(run.load_best(), about)
    model = run_evaluate(tmp_path, "run", splits=["short"]).data["runs"][0]["model"]
    assert {key: model[key] for key in about} == {"update": 40, "perplexity": 204.1, "bleu": "inf", "commit": "12ab"}


def test_a_pair_of_files_plain_or_compressed(workshop, tmp_path):
    (tmp_path / "src.gz").write_bytes(gzip.compress("\n".join(SOURCE).encode()))
    (tmp_path / "ref").write_text("\n".join(TARGET), encoding="utf-8")
    report = run_evaluate(workshop, "other", source=tmp_path / "src.gz", reference=tmp_path / "ref")
    assert [(scores.name, scores.num_pairs) for scores in report.sets] == [("src", 5)]
    assert (workshop / "other/hyps/files/src.txt").read_text(encoding="utf-8").count("\n") == 5
    assert "other lower-cases: every capital counts against" in report.text


def test_a_file_replaces_nothing_of_the_runs_own_sets(workshop, tmp_path):
    run_evaluate(workshop, "additive", splits=["short"])
    own = {name: (workshop / "additive" / name).read_bytes() for name in ("report.json", "report.md", "hyps/short.txt")}
    (tmp_path / "short").write_text("Hund\n", encoding="utf-8")
    run_evaluate(workshop, "additive", source=tmp_path / "short", reference=tmp_path / "short")
    assert {name: (workshop / "additive" / name).read_bytes() for name in own} == own
    for name in ("report.short.json", "report.short.md", "bleu-by-length.short.png", "hyps/files/short.txt"):
        assert (workshop / "additive" / name).exists(), name


def test_what_cannot_be_saved_is_said_before_or_does_not_matter(workshop, tmp_path, monkeypatch, caplog):
    with pytest.raises(UserError, match=r"cannot be written \(Is a directory\)"):
        run_evaluate(workshop, "additive", splits=["short"], json=tmp_path)

    def refuse(path, text):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("seq2seq_attn.evaluation.runs.write_text", refuse)
    report = run_evaluate(workshop, "additive", splits=["short"], json=tmp_path / "r.json")
    assert report.sets[0].num_pairs == 5
    assert "r.hyps/additive/short.txt: not saved (Permission denied)" in caplog.text


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
    run = RunDir(workshop / "none")
    run.save_best({name: tensor * 1.01 for name, tensor in run.load_best().items()}, {"update": "1"})
    changed = run_evaluate(workshop, "none", splits=["short"], reuse_hypotheses=True)
    assert not changed.data["runs"][0]["is_reused"]
    assert "marked" not in path.read_text(encoding="utf-8")


def test_pairs_joined_to_one_are_sets_of_their_own(workshop, tmp_path):
    options = {"stitch": [1, 2, 2], "json": tmp_path / "report.json", "plots": "png", "by_length": "12,15"}
    report = run_evaluate(workshop, "additive", "none", **options)
    assert [(scores.name, scores.num_pairs, scores.stitch) for scores in report.sets] == [
        *(("short", 5, 1), ("long", 25, 1), ("short.x2", 2, 2), ("long.x2", 12, 2)),
        *(("all test sets", 30, 1), ("all test sets.x2", 14, 2)),
    ]
    assert (tmp_path / "report.hyps/additive/long.x2.txt").read_text(encoding="utf-8").count("\n") == 12
    assert (tmp_path / "retention-by-length.x2.png").exists()
    assert (tmp_path / "retention-by-length.png").exists()
    again = run_evaluate(workshop, "additive", "none", reuse_hypotheses=True, **options)
    assert [run["is_reused"] for run in again.data["runs"]] == [True, True]
    assert again.data["sets"] == report.data["sets"]


def test_joined_pairs_are_translated_in_one_piece(workshop, monkeypatch):
    limits = []
    limit = Translator.with_max_source_length

    def seen(self, max_source_length):
        limits.append(max_source_length)
        return limit(self, max_source_length)

    monkeypatch.setattr(Translator, "with_max_source_length", seen)
    run_evaluate(workshop, "additive", splits=["short"], stitch=[1, 3])
    assert limits == [3 * 30]
    run = RunDir(workshop / "additive")
    [joined] = find_sets([run], [run.config()], ["short"], None, None, stitch=[3])
    expected = load(workshop / "additive", "cpu").with_max_source_length(90).translate(joined.source)
    written = (workshop / "additive/hyps/short.x3.txt").read_text(encoding="utf-8")
    assert written == "".join(f"{found.text}\n" for found in expected)


def test_each_number_of_joined_pairs_has_buckets_of_its_own(workshop):
    report = run_evaluate(workshop, "additive", splits=["long"], stitch=[1, 2])
    single, double = report.data["length"]["edges_by_stitch"]
    assert (single["stitch"], double["stitch"]) == (1, 2)
    assert min(double["edges"]) > min(single["edges"])
    assert report.data["length"]["edges"] == single["edges"]


def test_runs_of_one_arm_are_grouped(workshop):
    second = workshop / "additive-s2"
    if not second.exists():
        config = RunDir(workshop / "additive").config()
        config.seed = 2
        make_toy_run(second, config, seed=9)
    report = run_evaluate(workshop, "additive", "additive-s2", "none", splits=["long"])
    assert report.data["groups"] == [
        {"name": "additive", "runs": ["additive", "additive-s2"], "seeds": [1, 2]},
        {"name": "none", "runs": ["none"], "seeds": [1]},
    ]
    [scores] = report.sets
    of_runs = [score.interval.value for score in scores.scores["bleu"]]
    assert scores.arm_scores["bleu"][0].spread.mean == pytest.approx((of_runs[0] + of_runs[1]) / 2, abs=1e-9)
    assert "means over seeds" in report.text
    assert "groups" not in run_evaluate(workshop, "additive", "none", splits=["long"]).data


def test_what_to_score_by_and_thin_buckets_joined(workshop, tmp_path):
    options = {"splits": ["long"], "measures": ("ter", "bleu_lowercase"), "by_length": "12,15,17,19"}
    report = run_evaluate(workshop, "none", merge_below=8, json=tmp_path / "report.json", plots="png", **options)
    [scores] = report.sets
    assert list(scores.scores) == ["ter", "bleu_lowercase"]
    assert all(len(row.bucket) >= 8 for row in scores.buckets)
    assert [list(row.scores) for row in scores.buckets] == [["ter"]] * len(scores.buckets)
    assert sum(len(row.bucket) for row in scores.buckets) == 25
    assert len(run_evaluate(workshop, "none", **options).sets[0].buckets) > len(scores.buckets)
    assert (tmp_path / "ter-by-length.png").exists()
    assert "TER by length" in report.text
    only = run_evaluate(workshop, "none", **{**options, "measures": ("bleu_lowercase",)})
    assert list(only.sets[0].buckets[0].scores) == ["bleu_lowercase"]


def test_attention_is_judged_unless_told_otherwise(workshop):
    report = run_evaluate(workshop, "additive", "none", splits=["short", "long"])
    for scores, values in zip(report.sets, report.data["sets"], strict=True):
        additive, none = values["attention"]["runs"]
        assert additive["entropy"] > 0
        assert (none["entropy"], none["dropped"]) == (None, None)
        assert 0 < none["missing"] <= 1
        assert "gold" not in additive
        assert [row["label"] for row in values["attention"]["buckets"]] == [row.bucket.label for row in scores.buckets]
    assert "Attention by length" in report.text
    assert "Attention against gold links" not in report.text
    left_out = run_evaluate(workshop, "additive", splits=["short"], judge_attention=False)
    assert "attention" not in left_out.data["sets"][0]
    assert "Attention by length" not in left_out.text


def test_gold_links_of_the_embedded_corpus_are_used(tmp_path):
    captions = {"num_train": 30, "num_valid": 4, "num_test": 12, "max_length": 9}
    config = toy_config(corpus="captions", data_dir=str(tmp_path), captions=captions, tokenizer="spacy")
    make_toy_run(tmp_path / "run", config)
    report = run_evaluate(tmp_path, "run", stitch=[1, 2], beam_size=1)
    for values, num_pairs in zip(report.data["sets"], (12, 6), strict=True):
        [run] = values["attention"]["runs"]
        assert [one["shift"] for one in run["gold"]] == [-1, 0, 1]
        assert run["gold"][1]["num_pairs"] == num_pairs
        assert 0 < run["gold"][1]["mass"] < 1
        assert sum(row["runs"][0]["gold"][1]["num_pairs"] for row in values["attention"]["buckets"]) == num_pairs
    assert "Attention against gold links" in report.text
    one = report.data["sets"][0]["attention"]["runs"][0]["gold"][1]
    prepared = prepare_corpus(config)
    gold = caption_links(*prepared.text("test"), prepared.links("test"))
    translator = load(tmp_path / "run", "cpu")
    assert judge_alignment(translator, *prepared.text("test"), gold)[0].error_rate == one["error_rate"]


def test_data_that_was_prepared_beside_the_runs_is_used_from_any_folder(tmp_path, monkeypatch):
    captions = {"num_train": 30, "num_valid": 4, "num_test": 12, "max_length": 9}
    config = toy_config(corpus="captions", data_dir="data", captions=captions, tokenizer="spacy")
    make_toy_run(tmp_path / "project/runs/run", config)
    monkeypatch.chdir(tmp_path / "project")
    prepare_corpus(config)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    report = run_evaluate(tmp_path / "project/runs", "run", json=Path("r.json"))
    assert report.sets[0].num_pairs == 12
    assert {path.name for path in Path().iterdir()} == {"r.json", "r.hyps"}


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
        (["additive"], {"splits": ["short"], "stitch": [6]}, "--stitch 6: short has 5 sentence pairs"),
        (["additive"], {"page": tmp_path / "r.pdf"}, "ends in .md"),
    ]
    for names, options, message in cases:
        with pytest.raises(UsageError, match=message):
            run_evaluate(workshop, *names, **options)


def test_files_that_do_not_fit(workshop):
    with pytest.raises(UserError, match=r"has 5 lines and .* has 25"):
        run_evaluate(workshop, "additive", source=workshop / "short.de", reference=workshop / "long.en")
    with pytest.raises(UserError, match="not a run directory"):
        evaluate(make_request([workshop / "nowhere"]))
    (workshop / "empty").touch()
    with pytest.raises(UserError, match="empty: no lines to evaluate"):
        run_evaluate(workshop, "additive", source=workshop / "empty", reference=workshop / "empty")
    with pytest.raises(UserError, match="empty: no lines to evaluate"):
        score_files([workshop / "empty"], workshop / "empty")


def test_saved_hypotheses_need_no_model(tmp_path, monkeypatch):
    monkeypatch.setattr("seq2seq_attn.evaluation.runs.load", None)
    references = make_references(60)
    paths = {}
    for name, lines in {
        "ref": references,
        "a": make_hypotheses(references, 1, 0.3),
        "b": make_hypotheses(references, 2, 0.5),
    }.items():
        paths[name] = tmp_path / name
        paths[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    report = score_files([paths["a"], paths["b"]], paths["ref"], settings=Settings("quantiles:3", resampling=QUICK))
    assert report.data["length"]["of"] == "reference"
    assert len(report.sets[0].buckets) == 3
    assert report.sets[0].systems == ["a", "b"]
    assert sorted(tmp_path.iterdir()) == sorted(paths.values())
    assert report.sets[0].attention.overall[1].attention.missing > 0
    seeds = score_files([paths["a"], paths["b"]], paths["ref"], arms=["x", "x"], settings=Settings(resampling=QUICK))
    assert [arm.name for arm in seeds.sets[0].arms] == ["x"]
    with pytest.raises(UsageError, match="1 arms for 2 files"):
        score_files([paths["a"], paths["b"]], paths["ref"], arms=["x"])
    to = ReportFiles(tmp_path / "out.json", tmp_path / "out.md", "png")
    score_files([paths["a"]], paths["ref"], source=paths["b"], settings=Settings(resampling=QUICK), files=to)
    assert "![bleu-by-length.out.png](bleu-by-length.out.png)" in (tmp_path / "out.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["length"]["of"] == "source"
    with pytest.raises(UsageError, match="no hypotheses to score"):
        score_files([], paths["ref"])


def test_a_run_far_from_its_text_can_be_evaluated_on_files(tmp_path):
    config = toy_config(corpus="files", data_dir=str(tmp_path), train="gone/train", valid="gone/valid")
    make_toy_run(tmp_path / "run", config)
    with pytest.raises(UserError, match=r"gone/.*; or evaluate on files: --source FILE --reference FILE"):
        evaluate(make_request([tmp_path / "run"]))
