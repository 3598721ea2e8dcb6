"""README keeps its word: its commands run, its Python runs, its numbers are those of the records."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.commands import compare
from seq2seq_attn.config import load_config
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ELSEWHERE = {
    *("seq2seq prepare", "seq2seq prepare multi30k --source-dir FOLDER"),  # need a download
    "seq2seq translate -i captions.de -i captions.fr -i captions.cs -o captions.en",  # tests/commands/test_sources.py
    *(
        "seq2seq translate picture.npy",
        'seq2seq translate "Ein Hund rennt." picture.npy',
    ),  # tests/commands/test_vectors.py
}
TINY = ["data.limit={train: 20, valid: 4, test: 4}"]
NUM_PAIRS = 30


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands():
    """Every `seq2seq ...` of a bash block or of the text but those that other tests run."""
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    lines += re.findall(r"`(seq2seq [a-z][^`]*)`", README)
    return sorted({line.split("#")[0].strip() for line in lines if line.startswith("seq2seq ")} - ELSEWHERE)


def of(name):
    return [shlex.split(command)[1:] for command in commands() if command.split()[1] == name]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with every file and run that README's commands name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    write_text_files(tmp_path)
    config = toy_config(corpus="files", train="corpus/train", valid="corpus/dev", test={"test": "corpus/test"})
    for name in ("a", "b"):
        make_toy_run(tmp_path / "runs" / name, config, seed=ord(name))
    shutil.copy(ROOT / "examples" / "cosine.py", tmp_path)
    (tmp_path / "my.yaml").write_text("extends: quickstart\n", encoding="utf-8")
    yield tmp_path
    sys.modules.pop("cosine", None)


def write_text_files(folder):
    sources = [f"{i} {SOURCE[i % len(SOURCE)]}" for i in range(NUM_PAIRS)]
    targets = [f"{i} {TARGET[i % len(TARGET)]}" for i in range(NUM_PAIRS)]
    (folder / "corpus").mkdir()
    for split in ("train", "dev", "test"):
        for sides in ({"de": sources, "en": targets}, {"en": sources, "fr": targets}):
            for language, lines in sides.items():
                write(folder / "corpus" / f"{split}.{language}", lines)
    np.save(folder / "picture.npy", np.zeros((3, 4), dtype=np.float32))
    write(folder / "corpus" / "train.vectors", ["picture.npy"] * NUM_PAIRS)
    write(folder / "english.txt", sources)
    write(folder / "french.txt", targets)
    for name in ("train.tsv", "pairs.tsv"):
        write(folder / name, [f"{source}\t{target}" for source, target in zip(sources, targets, strict=True)])
    pairs = zip(sources, targets, strict=True)
    write(folder / "train.jsonl", [f'{{"en": "{source}", "fr": "{target}"}}' for source, target in pairs])
    write(folder / "dictionary.tsv", [f"{source}\t{target}" for source, target in zip(sources, targets, strict=True)])
    write(folder / "gold.links", ["0-0"] * NUM_PAIRS)
    write(folder / "FILE", sources)
    write(folder / "in.de", ["Ein Hund.", "", "Zwei Hunde."])


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def run_all(argument_lists, capsys):
    for arguments in argument_lists:
        assert run_command(arguments) == 0, f"{shlex.join(arguments)}: {capsys.readouterr().err}"


def with_runs(arguments):
    """`RUN RUN` as the names of two runs."""
    names = iter(("runs/a", "runs/b"))
    return [next(names) if argument == "RUN" else argument.replace("RUN/", "runs/a/") for argument in arguments]


def test_readme_shows_every_command():
    assert {command.split()[1] for command in commands()} == {
        *("prepare", "train", "evaluate", "translate", "compare", "score")
    }


def test_training_commands_resolve(folder, capsys):
    settings = re.findall(r"`(--(?:train|valid|import)\b .*?)`", README)
    own_text = [["--train", "corpus/train", *shlex.split(options)] for options in settings if "--valid" in options]
    own_text += [shlex.split(options) for options in settings if "--train" in options]
    assert len(own_text) >= 5
    languages = ["--source-language", "en", "--target-language", "fr"]
    trainings = [[word for word in arguments if word != "--resume"] for arguments in of("train")]
    trainings += [["train", *options, *languages] for options in own_text] + [["train", "-c", "my.yaml"]]
    run_all([[*arguments, "--dump-config"] for arguments in trainings], capsys)


def test_the_table_of_variants_is_complete():
    rows = dict(re.findall(r"^\| `(\w+)/` \| (.*) \|$", README, re.MULTILINE))
    assert rows.keys() == {"encoder", "cell", "attention", "normalizer", "decoder", "output", "objective"}
    for axis, cell in rows.items():
        shown = set(re.findall(r"`(\w+)`", cell))
        assert shown == {path.stem for path in (ROOT / "configs" / axis).glob("*.yaml")} - {"none"}, axis
        for name in shown:
            load_config(["quickstart", f"{axis}/{name}"], [])


@pytest.mark.parametrize("options", re.findall(r"`(--set [^`]*?)`", README))
def test_settings_are_valid(options):
    parts = shlex.split(options)
    load_config([], [value for flag, value in zip(parts[::2], parts[1::2], strict=True) if flag == "--set"])


def test_preparing_commands_run(folder, capsys):
    run_all(map(with_runs, of("prepare")), capsys)


def test_translating_commands_run(folder, capsys):
    more = re.findall(r"`(--(?:n-best|unk|precision|prefix|method|no-repeat-ngram|coverage-penalty) [^`]*)`", README)
    assert len(more) >= 8
    run_all([*of("translate"), *(["translate", "Ein Hund.", *shlex.split(options)] for options in more)], capsys)
    assert (folder / "out.en").read_text(encoding="utf-8").count("\n") == 3
    assert (folder / "map.png").is_file()


def test_evaluating_and_scoring_commands_run(folder, capsys):
    run_all([with_runs(arguments) for arguments in (*of("evaluate"), *of("score"))], capsys)
    for name in ("report.html", "scores.csv", "table.tex", "report.json"):
        assert (folder / name).is_file()


def test_comparing_commands_plan_their_runs(folder, monkeypatch, capsys):
    planned = []

    def train_none(runs, *, at_once):
        planned.extend(run.run.path.name for run in runs)
        return list(runs)

    monkeypatch.setattr(compare, "train_runs", train_none)
    for arguments in of("compare"):
        tiny = [] if "--train" in arguments else [word for setting in TINY for word in ("--set", setting)]
        assert run_command([*arguments, *tiny]) == 1
        assert "6 of 6 runs failed" in capsys.readouterr().err
    assert {"additive-s1", "bilinear-s3"} <= set(planned)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_coprocess_answers(folder):
    [script] = [block for block in blocks("bash") if block.startswith("coproc")]
    binary = folder / "bin" / "seq2seq"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} -m seq2seq_attn "$@"\n', encoding="utf-8")
    binary.chmod(0o755)
    environment = os.environ | {"PATH": f"{binary.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip(), done.stderr


def test_the_python_example_runs(folder, capsys):
    [block] = blocks("python")
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()
    assert (folder / "map.pdf").is_file()


def test_numbers_are_those_of_the_records():
    done = subprocess.run([ROOT / "scripts" / "results", "check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
