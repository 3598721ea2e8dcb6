"""Two commands of every kind on one folder at the same time: each gives its right result, or leaves
with one line."""

import json
import os
import re
import shutil
import signal
import sys
import time
from itertools import combinations_with_replacement
from pathlib import Path
from random import Random

import pytest

from seq2seq_attn import load
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.run import Run
from tests.train.conftest import toy_settings, write_toy_corpus

RUN = "runs/toy-s1"
LINES = ["Hund Katze", "Baum", "Mann Frau Kind"]
CHANGES = ["data.data_dir=data", "train.max_epochs=1", "train.validation.num_pairs=5"]
SETTINGS = [part for one in [*toy_settings(Path("text")), *CHANGES] for part in ("--set", one)]
COMMANDS = {
    "train": ["train", "-c", "base", *SETTINGS, "--run-dir", RUN, "--overwrite"],
    "prepare": ["prepare", "-c", "base", *SETTINGS],
    "resume": ["train", "--run-dir", RUN, "--resume"],
    "evaluate": ["evaluate", RUN, "--split", "test", "--json", "scores.json"],
    "translate": [
        *"translate -i text/test.de -o out.txt --run".split(),
        RUN,
        "--attention",
        "out.npz",
    ],
    "score": ["score", "text/pairs.tsv", "--run", RUN],
    "compare": ["compare", "-c", "base", *SETTINGS, "--seeds", "1", "--output", "runs"],
    "export": ["export", RUN, "-o", "page.html"],
}
FILES = {"evaluate": "scores.json", "translate": "out.txt", "export": "page.html"}
SAMPLE = [("train", "translate"), ("prepare", "score")]
PAIRS = [*combinations_with_replacement(COMMANDS, 2)]
EVERY_KIND = [*PAIRS, *[pair for pair in PAIRS if {"train", "prepare"} & {*pair}][:14]]
"""50: those that write most come twice"""
CLOCK = re.compile(r'"(seconds|written_at|commit|is_dirty)": [^,\n]+')
LIMIT_S = 300


def start(name, output):
    """Start a command in a process of its own, which has imported all that it needs. Returns its
    id."""
    if process := os.fork():
        return process
    signal.alarm(LIMIT_S)
    code = 1
    try:
        sys.stdout, sys.stderr = (Path(f"{output}.{suffix}").open("w") for suffix in ("out", "err"))
        for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
            os.dup2(stream.fileno(), descriptor)
        code = run_command(COMMANDS[name])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def finish(process):
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def result(name, output):
    """What a command has written, without what a clock or the state of a checkout says."""
    text = Path(f"{output}.out").read_text()
    if name in FILES:
        text += Path(FILES[name]).read_text()
    return CLOCK.sub("", text)


def history():
    lines = map(json.loads, Run(RUN).metrics_path.read_text().splitlines())
    return [(line["event"], line["update"]) for line in lines]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with text, where the test works, and `whole` beside it, with a finished run in
    it."""
    (tmp_path / "whole").mkdir()
    monkeypatch.chdir(tmp_path / "whole")
    write_toy_corpus(Path("text"))
    Path("text/pairs.tsv").write_text("src\ttgt\nHund Katze\tcat dog\n")
    return tmp_path


@pytest.mark.parametrize(
    "pairs", [SAMPLE, pytest.param(EVERY_KIND, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_two_commands_at_once(folder, monkeypatch, capfd, pairs):
    expected = {}
    random = Random(1)
    for name in dict.fromkeys(["train", *(name for pair in pairs for name in pair)]):
        # in this process, so that the processes below have imported all modules
        assert run_command(COMMANDS[name]) == 0
        Path("whole.out").write_text(capfd.readouterr().out)
        expected[name] = result(name, "whole")
    updates = history()
    translations = [one.text for one in load(RUN, "cpu").translate(LINES)]
    for number, pair in enumerate(pairs):
        shutil.copytree(folder / "whole", folder / f"{number}")
        monkeypatch.chdir(folder / f"{number}")
        if random.random() < 0.5:
            shutil.rmtree("data")  # to be prepared anew
        processes = []
        for place, name in enumerate(random.sample(pair, 2)):
            processes.append((name, f"{place}-{name}", start(name, f"{place}-{name}")))
            time.sleep(random.choice([0, 0.05, 0.3, 1.0]))
        codes = []
        for name, output, process in processes:
            code = finish(process)
            codes.append(code)
            err = Path(f"{output}.err").read_text()
            context = f"pair {number}, {pair}, {output}: exit code {code}: {err}"
            assert "Traceback" not in err, context
            assert "unexpected error" not in err, context
            assert ("\n" + err).count("\nerror: ") == (code != 0), context
            assert code or result(name, output) == expected[name], context
        assert 0 in codes, pair
        trained = [
            code for (name, _, _), code in zip(processes, codes, strict=True) if name == "train"
        ]
        # A training that fails may have emptied the run before it met a file of the other command.
        if not trained or 0 in trained:
            assert [one.text for one in load(RUN, "cpu").translate(LINES)] == translations, pair
            assert history() == updates, pair
            Run(RUN).check_files()
        shutil.rmtree(folder / f"{number}")
