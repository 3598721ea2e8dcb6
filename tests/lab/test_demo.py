"""`scripts/demo`, at tiny sizes: what it shows, in which order, and that what it suggests works."""

import os
import re
import shlex
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from scripts.laboratory import demo
from scripts.laboratory.harness.records import ROOT, set_arguments
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.translate.attention_map import MAP_NOTE, AttentionMap

TINY = {"data.limit": {"train": 60, "valid": 5, "test": 20}, "train.max_epochs": 1}


@pytest.fixture(scope="module")
def shown(module_path):
    """The folder where it ran, and all that it printed."""
    command = [sys.executable, "-m", "scripts.laboratory.demo", *set_arguments(TINY)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, cwd=module_path, env=environment, **pipes)
    assert done.returncode == 0, done.stdout
    return module_path, done.stdout


def test_it_shows_one_sentence_then_attention_then_bleu_by_length_then_what_to_run(shown):
    parts = [
        "after ",
        f"source        {demo.SENTENCE}",
        f"reference     {demo.REFERENCE}",
        "attention     ",
        "fixed vector  ",
        "BLEU by sentence length",
        "Nothing has been learnt yet",  # at these sizes
        str(demo.PAGE),
        "What to run next",
    ]
    places = [shown[1].find(part) for part in parts]
    assert -1 not in places, dict(zip(parts, places, strict=True))
    assert places == sorted(places)


def test_the_map_by_hand():
    weights_TS = np.array([[0.9, 0.1, 0.0], [0.3, 0.5, 0.2]])
    text = demo.attention_text(AttentionMap(["Der", "Hund", "."], ["The", "dog"], weights_TS))
    assert text.split("\n") == [
        "       H",
        "     D u",
        "     e n",
        "     r d .",
        "The  ██░░    Der",
        "dog  ▒▒▓▓▒▒  Hund",
        "",
        "weight: ░ 0.05+  ▒ 0.2+  ▓ 0.4+  █ 0.7+",
        *textwrap.wrap(MAP_NOTE, demo.WIDTH),
    ]


def test_it_reuses_finished_runs(shown, monkeypatch, capsys):
    monkeypatch.chdir(shown[0])
    demo.train(TINY)
    assert "after" not in capsys.readouterr().out


def test_what_it_suggests_works(shown, monkeypatch, capsys):
    monkeypatch.chdir(shown[0])
    commands = re.findall(r"^ +\.venv/bin/seq2seq (.*?)(?: +#.*)?$", shown[1], re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        arguments = shlex.split(command)
        if arguments[0] == "train":
            arguments.append("--dump-config")
        assert run_command(arguments) == 0, capsys.readouterr().err
    assert (shown[0] / "report.html").is_file()
