"""The files that an evaluation writes, and those it leaves alone."""

import shutil

import pytest

from seq2seq_attn.files import write_listed
from seq2seq_attn.metrics.significance import Resampling
from seq2seq_attn.run import Run
from tests.toy_requests import translate_and_score
from tests.toy_run import TARGET, make_toy_run


def everything_in(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_only_named_files_are_written_and_no_run_is_touched(workshop, tmp_path):
    runs = [workshop / "additive", workshop / "none"]
    before = [everything_in(run) for run in runs]
    names = {"json": "r.json", "report": "r.html", "csv": "r.csv"}
    named = {option: tmp_path / name for option, name in names.items()}
    translate_and_score(workshop, "additive", "none", split=["short"], beam_size=1, **named)
    expected = {*named.values()}
    for run in ("additive", "none"):
        for name in ("short.beam1.txt", "short.beam1.json", "manifest.json"):
            expected.add(tmp_path / "r.hyps" / run / name)
    assert everything_in(tmp_path).keys() == expected
    (tmp_path / "alone").mkdir()
    translate_and_score(workshop, "additive", split=["short"], report=tmp_path / "alone" / "r.md")
    assert [path.name for path in everything_in(tmp_path / "alone")] == ["r.md"]
    assert [everything_in(run) for run in runs] == before


def test_runs_of_one_name_keep_their_translations_apart(workshop, tmp_path):
    for number, folder in enumerate(("a", "b")):
        make_toy_run(tmp_path / folder / "s1", Run(workshop / "additive").config, seed=number)
    translate_and_score(tmp_path, "a/s1", "b/s1", split=["short"], json=tmp_path / "r.json")
    assert {path.name for path in (tmp_path / "r.hyps").iterdir()} == {"s1-1", "s1-2"}


def test_a_run_that_cannot_be_written_to_is_scored_all_the_same(workshop, tmp_path, caplog):
    run = tmp_path / "run"
    make_toy_run(run, Run(workshop / "additive").config)
    (run / "report.short.json").mkdir()
    before = everything_in(run)
    report = translate_and_score(tmp_path, "run", split=["short"])
    assert report.sets[0].num_pairs == 5
    assert "report.short.json" in caplog.text
    assert everything_in(run) == before


def test_a_file_replaces_nothing_of_the_runs_own_sets(workshop, tmp_path):
    translate_and_score(workshop, "additive")
    translate_and_score(workshop, "additive", split=["short"])
    run = workshop / "additive"
    before = everything_in(run)
    path = tmp_path / "short"
    path.write_text("Hund\n", "utf-8")
    translate_and_score(workshop, "additive", source=path, reference=path)
    after = everything_in(run)
    assert after.items() >= before.items()
    names = {str(path.relative_to(run)) for path in after.keys() - before.keys()}
    assert names >= {
        "report.files.short.json",
        "report.files.short.md",
        "bleu-by-length.files.short.png",
        "hyps/files/short.txt",
    }


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"split": ["short"], "precision": "bf16"}, "report.short.bf16.json"),
        ({"split": ["short", "long"], "beam_size": 1}, "report.short.long.beam1.json"),
        ({"length_penalty": 0.5, "concatenate": [1, 2]}, "report.x1.x2.penalty0.5.json"),
        ({}, "report.json"),
    ],
)
def test_the_report_of_the_test_sets_is_replaced_only_by_another_one_of_them(
    workshop, options, name
):
    translate_and_score(workshop, "additive")
    path = workshop / "additive" / "report.json"
    before = path.read_bytes()
    resampling = Resampling(num_resamples=20)
    translate_and_score(workshop, "additive", **options, resampling=resampling)
    assert (path.read_bytes() == before) == (name != "report.json")
    assert (workshop / "additive" / name).exists()


def test_hypotheses_are_reused_only_if_nothing_changed(workshop):
    translate_and_score(workshop, "none", split=["short"])
    path = workshop / "none/hyps/short.txt"
    write_listed(path, "".join(f"marked {line}\n" for line in TARGET).encode())
    reused = translate_and_score(workshop, "none", split=["short"], reuse_hypotheses=True)
    assert reused.data["runs"][0]["is_reused"]
    assert reused.sets[0].whole.scores["bleu"][0].interval.value > 50
    run = Run(workshop / "none")
    tensors = run.load_best().tensors
    run.save_best({name: tensor * 1.01 for name, tensor in tensors.items()}, {"update": "1"})
    changed = translate_and_score(workshop, "none", split=["short"], reuse_hypotheses=True)
    assert not changed.data["runs"][0]["is_reused"]
    assert "marked" not in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("key", "there", "now"), [("coverage_penalty", 0.2, 0.0), ("max_length_extra", 4, 9)]
)
def test_hypotheses_made_with_another_setting_are_not_reused(workshop, tmp_path, key, there, now):
    config = Run(workshop / "additive").config
    run = make_toy_run(tmp_path / "run", config)
    for value, is_reused in ((there, False), (there, True), (now, False)):
        setattr(config.search, key, value)
        run.save_config(config)
        report = translate_and_score(tmp_path, "run", split=["short"], reuse_hypotheses=True)
        assert report.data["runs"][0]["is_reused"] is is_reused, value


def test_hypotheses_made_with_another_language_model_are_not_reused(workshop, tmp_path):
    config = Run(workshop / "additive").config
    fusion = {"run": str(tmp_path / "lm"), "source": "Hund"}
    options = {"split": ["short"], "scorers": {"fusion": fusion}}
    make_toy_run(tmp_path / "run", config)
    for seed, is_reused in ((5, False), (5, True), (6, False)):
        shutil.rmtree(tmp_path / "lm", ignore_errors=True)
        make_toy_run(tmp_path / "lm", config, seed=seed)
        report = translate_and_score(tmp_path, "run", **options, reuse_hypotheses=True)
        assert report.data["runs"][0]["is_reused"] is is_reused, seed
