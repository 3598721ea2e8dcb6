"""Tools around the quality of translations: records of levers, distillation, extra pairs, at tiny sizes."""

import argparse
import gzip
import json
from functools import partial
from pathlib import Path
from statistics import stdev

import pytest

from scripts.harness.pages import p_value
from scripts.harness.records import exit_code, read_training
from scripts.harness.runs import describe_run, minutes_before, translate_to
from scripts.harness.settings import difference, settings_of
from scripts.tools import (
    distil,
    evaluation_records,
    extra_pairs,
    first_look,
    levers,
    levers_page,
    lexicons,
    results,
    search_quality,
)
from seq2seq_attn.commands.evaluate import EvaluationRequest, evaluate
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import write_json
from seq2seq_attn.model.build import build_model
from seq2seq_attn.report.files import ReportFiles
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.text.corpus import read_lines
from seq2seq_attn.text.normalize import bare
from seq2seq_attn.train.loop import train
from seq2seq_attn.translate.ensemble import check_alike
from tests.toy_run import SOURCE, TARGET, make_toy_run

TINY = [
    *("model.embedding_size=8", "model.hidden_size=12", "model.encoder.hidden_size=8", "train.max_epochs=1"),
    *("model.readout_size=8", "train.validation.every_updates=3"),
    *("model.attention.options.attention_size=8", "search.beam_size=2", "search.max_length_ratio=1"),
    *("data.limit={train: 60, valid: 4, test: 4}", "data.tokenizer.vocab_size=90"),
]
ONE_BEST = SearchOptions.given(beam_size=1, keep_attention=False)


def train_tiny(path, *settings):
    return train(load_config(["quickstart"], [*TINY, f"data.data_dir={path.parent}", *settings]), run_dir=path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [train_tiny(folder / f"s{seed}", f"seed={seed}") for seed in (1, 2)]


def test_an_objective_that_acts_throughout_is_named_by_its_weight_alone(tmp_path):
    make = partial(load_config, ["multi30k"])
    base, whole, late = (
        make(),
        make(["train.objectives={coverage: {}}"]),
        make(["train.objectives={coverage: {end: 0.5}}"]),
    )
    weight = {"train.objectives.coverage.weight": 1.0}
    settings = [settings_of(config) for config in (base, whole, late)]
    assert difference(settings[0], settings[1]) == weight
    assert difference(settings[0], settings[2]) == {**weight, "train.objectives.coverage.end": 0.5}
    write_json(tmp_path / "multi30k.json", {"settings": settings[0]})
    assert levers._stem(settings[1], tmp_path) == "coverage.weight-1.0"


def test_the_minutes_of_a_last_stage_include_those_before_it(runs, tmp_path):
    stages = [runs[0]]
    for number in (2, 3):
        stages.append(train_tiny(tmp_path / f"stage{number}", "seed=1", f"train.start_from={stages[-1].path}"))
    own = [read_training(stage.path)["minutes"] for stage in stages]
    assert [minutes_before(stage) for stage in stages] == pytest.approx([0.0, own[0], own[0] + own[1]])
    [record] = levers.adopt(stages[2:], folder=tmp_path / "levers")
    entry = json.loads(record.read_text(encoding="utf-8"))["runs"][0]
    assert entry["minutes"] == round(round(own[2], 1) + own[0] + own[1], 1)


def test_an_interrupted_translation_continues(tmp_path):
    run, path = make_toy_run(tmp_path / "run"), tmp_path / "found.jsonl"
    expected = translate_to(tmp_path / "whole.jsonl", [run], SOURCE, ONE_BEST)
    translate_to(path, [run], SOURCE, ONE_BEST)
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join(lines[:3]) + '\n["half a li', encoding="utf-8")
    assert translate_to(path, [run], SOURCE, ONE_BEST) == expected
    assert path.read_text(encoding="utf-8").split("\n") == lines
    with pytest.raises(UserError, match=r"found\.jsonl: translations by other models, of other text or with other"):
        translate_to(path, [run], SOURCE[:2], ONE_BEST)


def test_a_record_of_a_lever_holds_its_seeds_and_what_differs(runs, tmp_path):
    folder = tmp_path / "levers"
    [base] = levers.adopt(runs, folder=folder)
    assert base.name == "multi30k.json"
    other = train_tiny(tmp_path / "other", "train.batch.size=16", "model.dropout.readout=0.2")
    [path] = levers.adopt([other], folder=folder, against=runs)
    assert path.name == "readout-0.2-size-16.json"
    [again] = levers.adopt([other], folder=folder, test=True, chosen_on="validation")
    assert again == path
    record = json.loads(path.read_text())
    assert [run["seed"] for run in record["runs"]] == [1]
    assert record["runs"][0]["validation"]["num_pairs"] == 4
    assert list(record["runs"][0]["test"]) == ["test"]
    assert record["against"]["num_runs"] == 2
    records = levers.load_records(folder)
    page = "\n".join(levers_page.render(records))
    gain = f"| {record['against']['gain']:+.2f} (2, {p_value(record['against']['p_value'])}"
    over = f"`quickstart` ({record['against']['bleu']:.2f})"
    assert f"{gain}) | {over} |" in page
    records[path.stem]["runs"] += [{**record["runs"][0], "seed": 2}]  # a seed that was not compared
    assert f"{gain}; seed 1) | {over} |" in "\n".join(levers_page.render(records))
    assert "| `quickstart` | A |" in page
    assert "| `model.dropout.readout=0.2`, `train.batch.size=16` | A |" in page
    assert "### Test sets" in page
    assert not list(levers.refusals(levers.load_records(folder)))


def test_the_ablation_has_a_table_of_its_own(runs, tmp_path):
    levers.adopt(runs, folder=tmp_path)
    other = train_tiny(tmp_path / "other", "train.batch.size=16")
    levers.adopt([other], folder=tmp_path, against=runs, without="large batches")
    levers.adopt([other], folder=tmp_path, test=True, chosen_on="validation")  # keeps what it is
    page = "\n".join(levers_page.render(levers.load_records(tmp_path)))
    all_rows, _, ablation = page.partition("### Ablation")
    row = "| `train.batch.size=16` | "
    assert row not in all_rows
    assert f"| large batches {row}" in ablation.partition("### Test sets")[0]


def test_a_recipe_that_left_out_a_technique_is_in_both_tables():
    base, fast = (
        {"settings": settings_of(load_config([name])), "config": name} for name in ("multi30k", "multi30k-fast")
    )
    about = {"minutes": 1.0, "precision": "fp32", "parameters": 9, "hardware": "CPU", "beam_size": 5}
    runs = [{"seed": 1, "validation": {"bleu": 40.0, "num_pairs": 4, "signature": ""}, **about}]
    records = {"multi30k": {**base, "runs": runs, **about}, "fast": {**fast, "runs": runs, "without": "dropout"}}
    all_rows, _, ablation = "\n".join(levers_page.render(records)).partition("### Ablation")
    assert "| `multi30k-fast` | A |" in all_rows
    assert "| dropout | `multi30k-fast` |" in ablation


def test_a_run_adopted_again_keeps_its_scores_and_one_trained_anew_does_not_replace_published_ones(runs, tmp_path):
    folder = tmp_path / "levers"
    levers.adopt(runs, folder=folder)
    other = train_tiny(tmp_path / "other", "train.batch.size=16")
    [path] = levers.adopt([other], folder=folder, against=runs, test=True, chosen_on="validation")
    first = json.loads(path.read_text())
    levers.adopt([other], folder=folder)
    again = json.loads(path.read_text())
    assert (again["runs"], again["against"]) == (first["runs"], first["against"])
    environment = other.path / "environment.json"
    values = json.loads(environment.read_text())
    environment.write_text(json.dumps({**values, "written_at": "2031-01-01T00:00:00+0000"}))
    with pytest.raises(UsageError, match=r"other: test scores of seed 1 are on record; train another seed"):
        levers.adopt([other], folder=folder)
    assert json.loads(path.read_text()) == again
    del again["runs"][0]["test"]
    path.write_text(json.dumps(again))
    levers.adopt([other], folder=folder)
    assert "against" not in json.loads(path.read_text())


def test_a_comparison_is_with_the_seeds_of_one_row(runs, tmp_path):
    other = train_tiny(tmp_path / "other", "train.batch.size=16")
    with pytest.raises(UsageError, match="--against: runs of different settings"):
        levers.adopt(runs, folder=tmp_path, against=[*runs, other])


def test_a_training_that_ended_early_is_not_called_finished(runs, tmp_path):
    assert read_training(runs[0].path)["is_finished"]
    finished = json.loads((runs[0].path / "finished.json").read_text())
    (tmp_path / "finished.json").write_text(json.dumps({**finished, "reason": "train.patience=3 reached"}))
    (tmp_path / "train.log").write_bytes((runs[0].path / "train.log").read_bytes())
    assert not read_training(tmp_path)["is_finished"]
    (tmp_path / "train.log").write_text("starts\n")
    with pytest.raises(UserError, match=r"train\.log: no number of parameters or no precision"):
        read_training(tmp_path)


def test_the_page_gives_mean_and_spread_and_marks_track_b():
    def record(bleu, **settings):
        score, machine = {"num_pairs": 9, "signature": "tok:13a"}, {"precision": "fp32", "hardware": "a processor"}
        runs = [
            {"seed": n, "validation": {**score, "bleu": b}, "minutes": 3.0, "parameters": 7, **machine}
            for n, b in enumerate(bleu, 1)
        ]
        return {"config": "multi30k", "settings": settings, "beam_size": 5, "runs": runs}

    records = {
        "more": record([43.0], **{"data.extra": ["task2-back-translated"]}),
        "multi30k": record([41.0, 42.0, 43.0]),
    }
    first, second = levers_page.render(records)[-3:-1]
    assert first == "| `multi30k` | A | 41.00, 42.00, 43.00 | 42.00 | 1.00 |  |  | 3 | fp32 | 7 | a processor |"
    assert second.startswith('| `data.extra=["task2-back-translated"]` | B | 43.00 | 43.00 |  |  |')


def test_test_sets_are_for_settings_chosen_on_validation(runs, tmp_path, monkeypatch, capsys):
    for chosen_on in (None, "test_2016_flickr"):
        with pytest.raises(UsageError, match=r"--test: only for settings that were chosen on the validation set"):
            levers.adopt(runs, folder=tmp_path, test=True, chosen_on=chosen_on)
    record = {"settings": {}, "runs": [{"seed": 1, "test": {}}]}
    assert not list(levers.refusals({"a": {**record, "chosen_on": "validation"}, "b": {"runs": [{"seed": 1}]}}))
    [refusal] = levers.refusals({"a": record})
    assert refusal.startswith("a: scores of test sets, and chosen_on is None; choose settings on the validation set")
    [refusal] = levers.refusals({"sources": {"test": "test_2016_flickr", "systems": []}})
    assert refusal.startswith("sources: ")
    [refusal] = levers.refusals({"old": {"runs": [], "sets": [{"name": "test_2017_flickr"}]}})
    assert refusal.startswith("old: ")
    (tmp_path / "a.json").write_text(json.dumps(record))
    monkeypatch.setattr(levers, "FOLDER", tmp_path)
    monkeypatch.setattr(results, "documents", lambda: iter(()))
    assert results.main(["check"]) == 1
    assert "a: scores of test sets" in capsys.readouterr().err


def test_the_records_of_the_project_say_what_their_settings_were_chosen_on():
    assert not list(levers.refusals(levers.load_records(levers.RECORDS) | levers.load_records(levers.FOLDER)))


def test_an_ensemble_gives_no_record(tmp_path):
    write_json(tmp_path / "report.json", {"runs": [{"name": "s1+s2", "members": ["s1", "s2"]}]})
    with pytest.raises(UsageError, match=r"report\.json: s1\+s2 is an ensemble; a record is of single runs"):
        evaluation_records.keep_scores("both", tmp_path / "report.json", "")


def test_another_seed_joins_the_record_of_an_evaluation(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation_records, "RECORDS", tmp_path)
    reports = [tmp_path / f"{index}.json" for index in range(2)]
    for run, report in zip(runs, reports, strict=False):
        evaluate(EvaluationRequest([run.path], ["valid"], files=ReportFiles(report)))
    evaluation_records.keep_scores("tiny", reports[0], "")
    evaluation_records.add_seed("tiny", reports[1])
    record = json.loads((tmp_path / "tiny.json").read_text())
    assert [one["seed"] for one in record["runs"]] == [run.config().seed for run in runs[:2]]
    scores = [json.loads(report.read_text())["sets"][0]["measures"][0]["runs"][0] for report in reports]
    assert record["sets"][0]["measures"][0]["runs"] == scores
    assert all(len(bucket["measures"][0]["runs"]) == 2 for bucket in record["sets"][0]["buckets"])
    with pytest.raises(UsageError, match=r"1\.json: expected another seed of"):
        evaluation_records.add_seed("tiny", reports[1])


def test_the_bleu_of_a_run_is_not_its_other_metric(tmp_path):
    run = train_tiny(tmp_path / "run", "train.validation.metric=perplexity")
    best = run.best_metadata()
    described = describe_run(run)
    assert described["validation_bleu"] == round(float(best["bleu"]), 2)
    assert described["validation_perplexity"] == round(float(best["perplexity"]), 3)


def test_an_unfinished_run_gives_no_record(tmp_path):
    with pytest.raises(UserError, match=r"nothing: not a run directory"):
        levers.adopt([RunDir(tmp_path / "nothing")], folder=tmp_path)
    run = RunDir.create(tmp_path / "run")
    run.save_config(load_config(["quickstart"]))
    with pytest.raises(UsageError, match=r"run: not a finished run; a record needs one"):
        levers.adopt([run], folder=tmp_path)


def test_the_closest_hypotheses_become_pairs():
    sources, references = ["eins", "zwei", "drei"], ["one dog", "two dogs", "three dogs"]
    candidates = [["a cat", "one dogs"], ["two dogs", "two dog"], ["", "xyz"]]
    pairs, dropped = distil.select(sources, references, candidates)
    assert pairs == [("eins", "one dogs")]
    assert dropped == {"blank": 1, "far_from_reference": 0, "repeated": 1}
    pairs, dropped = distil.select(sources, references, candidates, keep=2, min_score=50.0)
    assert dropped["far_from_reference"] > 0
    pairs, _ = distil.select(sources, references, candidates, keep=2)
    assert pairs == [("eins", "one dogs"), ("eins", "a cat"), ("zwei", "two dog"), ("drei", "xyz")]


def test_a_student_keeps_the_extra_pairs_of_its_teachers():
    teacher = load_config(["multi30k-task2"], ["data.extra_in_vocab=true"])
    student = load_config(["multi30k-distilled"], distil.extra_of_student(teacher, Path("runs/distilled")))
    assert student.data.extra == [*teacher.data.extra, "runs/distilled"]
    assert student.data.extra_in_vocab
    assert not load_config(["multi30k-distilled"]).data.extra_in_vocab


def stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_distillation_from_teachers_to_record(runs, tmp_path):
    own = ["--set", f"data.data_dir={runs[0].path.parent}", *(word for one in TINY for word in ("--set", one))]
    where = ["--dir", str(tmp_path / "distil"), "--record", str(tmp_path / "record.json"), "--device", "cpu"]
    teachers = ["--teachers", *(str(run.path) for run in runs), "--student", "quickstart"]
    words = [*teachers, "--beam-size", "2", "--n-best", "2", *own, *where]
    assert distil.distil(distil.build_parser().parse_args([*words, "--students", "0"])) is None
    assert (tmp_path / "distil" / "distilled.en").exists()
    assert not list((tmp_path / "distil").glob("student*"))
    options = distil.build_parser().parse_args(words)
    record = distil.distil(options)
    before = stamps(options.dir)
    assert distil.distil(options)["runs"] == record["runs"]
    assert stamps(options.dir) == before
    student = RunDir(options.dir / "student-s1")
    assert student.config().data.extra == [str(options.dir / "distilled")]
    check_alike([*runs, student])  # one vocabulary
    prepared = prepare_corpus(student.config())
    num_pairs = record["pairs"]["distilled"]
    assert num_pairs == len(read_lines(options.dir / "distilled.en"))
    assert prepared.audit["train"]["pairs_read"] == 60 + num_pairs
    assert [run["seed"] for run in record["teachers"]] == [1, 2]
    assert record["runs"][0]["validation"].keys() == record["ensemble"].keys()
    assert "test" not in record["runs"][0]
    page = "\n".join(distil.render(record))
    assert f"the nearest to the reference by chrF: {num_pairs} new pairs" in page
    assert "| ensemble of the teachers |" in page
    assert f"Students against teachers: {record['against']['gain']:+.2f}, p " in page
    assert "Test sets" not in page
    record["runs"][0]["test"] = {"test": {"bleu": 12.34}}
    assert "| 1 | 12.34 |" in "\n".join(distil.render(record))
    options.keep = 2
    with pytest.raises(UserError, match=r"distilled\.de: not the pairs that these options give"):
        distil.distil(options)


def test_each_student_starts_from_a_teacher_if_its_config_starts_from_a_run():
    teachers = [RunDir("runs/t-1"), RunDir("runs/t-2")]
    two_stages = load_config(["multi30k"], ["train.start_from=runs/distil/teacher-s1"])
    starts = [distil.start_of_student(two_stages, teachers, seed) for seed in (1, 2, 3)]
    assert starts == [[f"train.start_from=runs/t-{number}"] for number in (1, 2, 1)]
    assert distil.start_of_student(load_config(["multi30k"]), teachers, 1) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seeds", "0"], "--seeds 0: expected at least 1"),
        (["--students", "-1"], "--students -1: expected at least 0"),
        (["--keep", "0"], "--keep 0: expected at least 1"),
        (["--keep", "6"], "--keep 6: expected at most --n-best 5"),
        (
            ["--config", "quickstart"],
            "--student multi30k-distilled: its corpus is multi30k",
        ),
    ],
)
def test_what_cannot_be_distilled_is_refused_at_once(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.setattr("sys.argv", ["distil", "--dir", str(tmp_path), *words])
    assert exit_code(distil.main) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_record_of_a_distillation_lies_beside_its_runs(tmp_path):
    options = distil.build_parser().parse_args(["--dir", str(tmp_path)])
    assert distil.record_path(options) == tmp_path / "record.json"


def test_a_first_look_compares_each_lever_to_the_recipe(tmp_path, monkeypatch, capsys):
    Lever, recipe = first_look.Lever, first_look.BASELINE
    tiny = (*TINY, f"data.data_dir={tmp_path}")
    trials = [
        Lever(recipe, tiny),
        Lever(f"{recipe}, seed 2", (*tiny, "seed=2")),
        Lever("more dropout", (*tiny, "model.dropout.readout=0.2")),
        Lever("one epoch more", tiny, start_from="more dropout"),
        Lever("self-distillation", tiny, pairs=(first_look.SELF_DISTILLED,)),
    ]
    monkeypatch.setattr(first_look, "BY_NAME", {lever.name: lever for lever in trials})
    monkeypatch.setattr(first_look, "CONFIGS", ("quickstart",))
    words = ["first_look", "--dir", str(tmp_path / "runs"), "--record", str(tmp_path / "record.json"), "--jobs", "2"]
    monkeypatch.setattr("sys.argv", [*words, "--only", "one epoch more", "self-distillation", f"{recipe}, seed 2"])
    assert exit_code(first_look.main) == 0
    page = capsys.readouterr().out
    rows = json.loads((tmp_path / "record.json").read_text())["rows"]
    assert set(rows) == {lever.name for lever in trials}
    assert "against" not in rows[recipe]
    spread = stdev(rows[name]["validation"]["bleu"] for name in (recipe, f"{recipe}, seed 2"))
    assert f"one seed; SD of the recipe over 2 seeds: {spread:.2f}. BLEU" in page
    first_row = page.partition("| change | ")[2].split("\n")[2]
    assert first_row.startswith(f"| {recipe} | {rows[recipe]['validation']['bleu']:.2f} |  |  | ")
    against = rows["more dropout"]["against"]
    assert against["bleu"] == rows[recipe]["validation"]["bleu"]
    assert f"| {against['bleu']:.2f} | {against['gain']:+.2f} (" in page
    assert "`model.dropout.readout=0.2` |" in page
    assert "extra pairs: self-distilled |" in page
    assert "starts from: more dropout |" in page
    more = RunDir(tmp_path / "runs" / "one-epoch-more").config()
    assert more.train.start_from == tmp_path / "runs" / "more-dropout"
    student = RunDir(tmp_path / "runs" / "self-distillation").config()
    assert student.data.extra == [[f"{tmp_path}/runs/pairs/self-distilled.{side}" for side in ("de", "en")]]
    before = stamps(tmp_path / "runs")
    monkeypatch.setattr("sys.argv", [*words, "--only", "more dropout"])
    assert exit_code(first_look.main) == 0  # trains nothing again, and keeps the other rows
    assert stamps(tmp_path / "runs") == before
    assert set(json.loads((tmp_path / "record.json").read_text())["rows"]) == set(rows)
    monkeypatch.setattr("sys.argv", [*words, "--only", "dropout"])
    assert exit_code(first_look.main) == 2
    assert "--only 'dropout': expected some of 'the recipe'" in capsys.readouterr().err


def test_every_lever_of_the_first_look_can_be_trained(tmp_path):
    for lever in first_look.LEVERS:
        config = lever.planned(tmp_path).config
        build_model(config.model, num_source_ids=9, num_target_ids=9)
        assert config.train.max_epochs <= first_look.EPOCHS
        assert set(lever.pairs) <= set(first_look._SIDES)
        assert not lever.start_from or lever.start_from in first_look.BY_NAME


def test_task_2_gives_new_captions_only(multi30k_dir, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQ2SEQ_MULTI30K_DIR", str(multi30k_dir))
    task2 = tmp_path / "task2"
    task2.mkdir()
    for language in ("de", "en"):
        denied = [
            *read_lines(multi30k_dir / f"test_2016_flickr.{language}.gz"),
            *(line.upper() for line in read_lines(multi30k_dir / f"test_2017_mscoco.{language}.gz")),
            *read_lines(multi30k_dir / f"val.{language}.gz"),
        ]
        known = read_lines(multi30k_dir / f"train.{language}.gz")[:50]
        texts = [denied, known, [f"new  {language}", "", f"New {language}."], [], []]
        for number, lines in enumerate(texts, 1):
            path = task2 / f"train.{number}.{language}.gz"
            path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    extra_pairs.write_captions(tmp_path / "out", task2)
    assert [read_lines(tmp_path / "out" / f"task2-captions.{side}") for side in ("de", "en")] == [
        ["new de"],
        ["new en"],
    ]
    assert "1 new captions of 2,528; 2,475 denied" in capsys.readouterr().err


def test_other_languages_and_the_other_direction(multi30k_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQ2SEQ_MULTI30K_DIR", str(multi30k_dir))
    english = {bare(line) for line in read_lines(multi30k_dir / "test_2017_mscoco.en.gz")}
    [french] = extra_pairs.write_languages(tmp_path / "out", ["fr"])
    [reverse] = extra_pairs.write_reversed(tmp_path / "out")
    assert [path.name for path in (*french, *reverse)] == ["fr.fr", "fr.en", "reversed.en", "reversed.de"]
    sources, targets = map(read_lines, reverse)
    assert 28_900 < len(sources) == len(targets) <= 29_000
    assert sources[0] == read_lines(multi30k_dir / "train.en.gz")[0]
    assert not english & {bare(line) for path in (*french, *reverse) for line in read_lines(path)}


def test_captions_are_translated_in_both_directions(tmp_path, monkeypatch):
    monkeypatch.setattr(extra_pairs, "held_out", lambda: {bare(SOURCE[1])})
    for language in ("de", "en"):
        (tmp_path / f"task2-captions.{language}").write_text("".join(f"{line}\n" for line in SOURCE), encoding="utf-8")
    options = argparse.Namespace(beam_size=2, limit=4, device="cpu")
    run = make_toy_run(tmp_path / "de-en")
    written = extra_pairs.translate_captions(tmp_path, "self-trained", [run], options)
    assert [path.name for path in written] == ["task2-self-trained.de", "task2-self-trained.en"]
    sources = read_lines(written[0])
    assert SOURCE[1] not in sources
    assert set(sources) <= set(SOURCE[:4])
    with pytest.raises(UsageError, match=r"de-en: translates de to en, not en to de; name another run"):
        extra_pairs.translate_captions(tmp_path, "back-translated", [run], options)
    assert not Path(tmp_path / "task2-back-translated.jsonl").exists()


@pytest.mark.parametrize("options", list(search_quality.rows()), ids=str)
def test_the_options_of_the_search_that_are_measured_are_allowed(options):
    assert SearchOptions.given(**options).model_fields_set == set(options)


def test_a_record_of_search_is_of_one_model_and_number_of_pairs(runs, tmp_path):
    path = tmp_path / "search.json"
    bench = search_quality.Bench(runs[0], path, 2)
    bench.measure(search_quality.BASELINE)
    text = path.read_text()
    for run, num_pairs in ((runs[1], 2), (runs[0], 3)):
        with pytest.raises(
            UserError, match=r"search\.json: of another model or number of pairs; name another --record"
        ):
            search_quality.Bench(run, path, num_pairs)
    assert path.read_text() == text


def test_what_the_record_of_search_holds_is_not_translated_again(runs, tmp_path, monkeypatch):
    path, options = tmp_path / "search.json", {**search_quality.BASELINE, "beam_size": 1}
    for row in (search_quality.BASELINE, options):
        search_quality.Bench(runs[0], path, 2).measure(row)
    text = path.read_text()
    bench = search_quality.Bench(runs[0], path, 2)
    monkeypatch.setattr(bench._translator, "translate_lines", lambda *_: pytest.fail("translated again"))
    for row in (search_quality.BASELINE, options):
        bench.measure(row)
    assert path.read_text() == text


def test_the_seed_of_a_row_is_the_planned_one(tmp_path):
    for split in ("train", "valid"):
        for language, lines in (("de", SOURCE), ("en", TARGET)):
            (tmp_path / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sizes = ("model.embedding_size=8", "model.hidden_size=12", "model.encoder.hidden_size=8")
    tiny = [*sizes, "model.readout_size=8", "train.max_epochs=1", "data.max_length_ratio=30"]
    run = lexicons.train_run(tmp_path, "softmax", 2, ["seed=5", *tiny])
    assert run.config().seed == 2


def test_a_row_with_the_settings_of_a_config_has_its_name():
    base = {"settings": settings_of(load_config(["multi30k"])), "config": "multi30k"}
    extra = settings_of(load_config(["multi30k-task2"]))
    row = {"settings": extra, "config": "multi30k-task2"}
    assert levers_page._label(row, base) == "`multi30k-task2`"
    longer = {**row, "settings": {**extra, "train.max_epochs": 9}}
    assert levers_page._label(longer, base) == "`multi30k-task2`, `train.max_epochs=9`"
    dropped = {**row, "settings": {**extra, "model.dropout.encoder": 0.5, "model.dropout.readout": 0.5}}
    assert levers_page._label(dropped, base) == "`multi30k-task2`, `model.dropout.{encoder,readout}=0.5`"
    stages = [settings_of(load_config(["multi30k"], [f"train.start_from=runs/multi30k-task2-s{n}"])) for n in (1, 2)]
    assert stages[0] == stages[1]  # seeds of one row
    assert [levers_page.track(one) for one in (base, row, {"settings": stages[0]})] == ["A", "B", "B"]
