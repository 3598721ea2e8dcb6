"""A run directory: what it keeps comes back, damage is refused with one line, and a resume writes
inside it only."""

import json
import os
import re
import shutil
import sys
from functools import reduce
from pathlib import Path

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json, write_listed, write_listed_json
from seq2seq_attn.run import Run, newest_run
from seq2seq_attn.train.session import choose_run_dir
from tests.processes import output_of
from tests.toy_run import make_toy_run, toy_config


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "run")


@pytest.mark.parametrize("text", ["model: {atention: 1}", "- a list", "a: [", "seed: minus one"])
def test_a_damaged_configuration_is_refused(run, text):
    write_listed(run.config_path, text.encode())
    with pytest.raises(UserError, match=r"config.yaml") as caught:
        _ = run.config
    assert caught.value.exit_code == 1


def test_a_pickle_is_never_loaded(run):
    run.save_best({"a": torch.zeros(1)}, {})
    torch.save({"a": torch.zeros(1)}, run.model_path)
    with pytest.raises(UserError, match=r"model\.safetensors"):
        run.load_best()


def test_overwrite_removes_what_a_run_writes_and_nothing_else(tmp_path):
    run = make_toy_run(tmp_path / "run")
    names = [
        "last/state.json",
        "hyps/test.txt",
        "events.out.tfevents.1",
        "report.md",
        "train.log",
        "metrics.jsonl",
    ]
    for name in (*names, "bleu-by-length.test.png", "retention-by-length.svg"):
        (run.path / name).parent.mkdir(exist_ok=True)
        (run.path / name).touch()
    assert (run.path / "manifest.json").exists()
    own = {"notes.txt", "figure.png", "report.docx"}
    for name in own:
        (run.path / name).write_text("mine")
    Run.create(run.path, overwrite=True)
    assert {path.name for path in run.path.iterdir()} == own


def test_an_interrupted_overwrite_leaves_a_run(tmp_path, monkeypatch):
    run = Run.create(tmp_path / "run")
    for name in ("config.yaml", "source.vocab", "train.log", "model.safetensors"):
        (run.path / name).touch()
    unlink, calls = Path.unlink, iter(range(9))

    def stop_at_the_last(path, missing_ok=False):
        if next(calls) == 3:
            raise KeyboardInterrupt
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", stop_at_the_last)
    with pytest.raises(KeyboardInterrupt):
        Run.create(run.path, overwrite=True)
    monkeypatch.undo()
    assert [path.name for path in run.path.iterdir()] == ["config.yaml"]
    assert Run.create(run.path, overwrite=True).is_empty()


def test_the_newest_run_is_the_one_that_finished_last(tmp_path):
    for name, time in (("b", 3.0), ("a", 7.0), ("c", 5.0)):
        run = Run.create(tmp_path / name)
        run.save_best({"a": torch.zeros(1)}, {})
        run.mark_finished({"finished_at": time})
    Run.create(tmp_path / "begun").save_best({"a": torch.zeros(1)}, {})
    Run.create(tmp_path / "without-model").mark_finished({})
    (tmp_path / "notes.txt").touch()
    assert newest_run(tmp_path).path == tmp_path / "a"
    Run(tmp_path / "a").reopen(toy_config())
    assert newest_run(tmp_path).path == tmp_path / "c"


def test_no_finished_run_names_one_that_has_begun(tmp_path):
    with pytest.raises(UserError, match="quickstart"):
        newest_run(tmp_path / "runs")
    Run.create(tmp_path / "runs/begun").save_best({"a": torch.zeros(1)}, {})
    with pytest.raises(UserError, match="begun"):
        newest_run(tmp_path / "runs")


def test_the_environment_is_on_record(run, monkeypatch):
    monkeypatch.setattr("sys.argv", ["seq2seq", "train", os.fsdecode(b"stra\xdfe.de")])
    run.write_environment("cpu")
    found = read_json(run.path / "environment.json")
    assert found["command"] == ["seq2seq", "train", r"stra\xdfe.de"]
    assert found["packages"]["torch"] == torch.__version__
    assert found["device"] == "cpu"
    assert found["num_threads"] == torch.get_num_threads()
    assert found["git"] is None or re.fullmatch(r"[0-9a-f]{40}", found["git"]["commit"])


@pytest.fixture(scope="module")
def whole(module_path):
    return make_toy_run(module_path / "run").path


@pytest.fixture
def trained(whole, tmp_path):
    return Run(shutil.copytree(whole, tmp_path / "run"))


def test_sizes_that_the_weights_do_not_have_are_refused_before_memory_is_taken(trained):
    config = trained.config
    config.model.hidden_size = config.model.encoder.hidden_size = 60_000
    trained.save_config(config)
    with pytest.raises(UserError, match=r"model\.safetensors: not the model of this run's"):
        load(trained.path)


def test_a_configuration_changed_by_hand_is_refused_until_the_change_is_accepted(trained):
    path = trained.path / "config.yaml"
    path.write_text(path.read_text().replace("max_length_ratio: 1.5", "max_length_ratio: 0.1"))
    with pytest.raises(UserError, match=r"config.yaml: damaged"):
        _ = trained.config
    manifest = trained.path / "manifest.json"
    listed = read_json(manifest)
    del listed[path.name]
    manifest.write_text(json.dumps(listed))
    assert trained.config.search.max_length_ratio == 0.1


def test_a_configuration_of_a_run_reads_no_other_file(trained, tmp_path):
    (tmp_path / "other.yaml").write_text("secret: 5")
    write_listed(trained.path / "config.yaml", f"extends: {tmp_path / 'other.yaml'}\n".encode())
    with pytest.raises(UserError, match="'extends'"):
        _ = trained.config


@pytest.mark.parametrize("name", ["config.yaml", "model.safetensors", "source.vocab"])
@pytest.mark.parametrize("target", [None, "/dev/zero", "../elsewhere"])
def test_a_pipe_or_a_link_out_of_the_run_is_refused_at_once(trained, tmp_path, name, target):
    path = trained.path / name
    path.rename(tmp_path / "elsewhere")
    if target is None:
        os.mkfifo(path)
    else:
        path.symlink_to(target)
    with pytest.raises(UserError, match=rf"{name}.*|not a run directory"):
        load(trained.path)


def test_a_link_to_a_run_is_followed(trained, tmp_path):
    (tmp_path / "link").symlink_to(trained.path)
    assert load(tmp_path / "link", "cpu").translate(["Ein Hund"])[0].tokens


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    "settings",
    [
        {"name": "vectors", "size": 5},
        {"name": "none"},
        {"name": "several"},
        reduce(lambda inner, _: {"name": "sentences", "text": inner}, range(40), {"name": "space"}),
        [["name", "none"]],
    ],
)
def test_a_tokenizer_of_another_kind_is_refused(trained, side, settings):
    write_listed_json(trained.path / f"{side}.tokenizer.json", settings)
    with pytest.raises(UserError, match=rf"{side}\.tokenizer\.json"):
        load(trained.path, "cpu")


COUNTED = """
import hashlib, os, sys
from collections import Counter
from seq2seq_attn.__main__ import run
opened, hashes, sha256 = Counter(), [], hashlib.sha256
def count_hash(*content):
    hashes.append(content)
    return sha256(*content)
hashlib.sha256 = count_hash
def record(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[1]:
        opened[arguments[0]] += 1
sys.addaudithook(record)
code = run(["translate", "Ein Hund", "--device", "cpu", "--run", sys.argv[1]])
print(len(hashes), *(f"{number} {path}" for path, number in opened.items()), sep="\\n")
sys.exit(code)
"""


def test_translate_reads_and_hashes_each_file_of_a_run_once(trained):
    command = [sys.executable, "-c", COUNTED, str(trained.path)]
    _, num_hashes, *rows = output_of(command).splitlines()
    counts = {}
    for row in rows:
        number, _, path = row.partition(" ")
        if Path(path).parent == trained.path:
            counts[Path(path).name] = int(number)
    assert set(counts.values()) == {1}
    assert {"config.yaml", "manifest.json", "model.safetensors", "source.vocab"} <= counts.keys()
    assert int(num_hashes) == len(counts) - 1  # the manifest has no hash


@pytest.mark.parametrize("name", ["last", "metrics.jsonl", "train.log", ".train.lock", "reverse"])
def test_a_resume_writes_through_no_link(trained, tmp_path, name):
    (tmp_path / "elsewhere").mkdir()
    (trained.path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=rf"{name}"):
        choose_run_dir(trained.path, resume=True, overwrite=False)


@pytest.mark.parametrize("is_empty", [False, True])
def test_an_overwrite_empties_no_file_that_a_link_leads_to(trained, tmp_path, is_empty):
    (tmp_path / "elsewhere").write_text("mine")
    path = tmp_path / "empty" if is_empty else trained.path
    path.mkdir(exist_ok=True)
    (path / ".train.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"\.train\.lock"):
        choose_run_dir(path, resume=False, overwrite=True)
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_a_run_that_is_resumed_is_checked_and_rid_of_leftovers(trained):
    leftovers = [
        trained.path / f".{name}.x1y2.tmp"
        for name in ("model.safetensors", "config.yaml", "source.vocab")
    ]
    leftovers.append(trained.last_dir / ".state.safetensors.x1y2.tmp")
    trained.last_dir.mkdir(exist_ok=True)
    for path in (*leftovers, trained.path / ".report.json.x.tmp"):
        path.touch()
    (trained.path / "finished.json").unlink()
    trained.check_files()
    trained.reopen(trained.config)
    assert not any(path.exists() for path in leftovers)
    assert (trained.path / ".report.json.x.tmp").exists()  # perhaps somebody is evaluating
    assert not trained.is_finished()
    (trained.path / "source.vocab").write_text("")
    with pytest.raises(UserError, match=r"source.vocab: damaged"):
        trained.check_files()
