"""README keeps its word: its commands parse, its Python runs, its numbers are those of the records."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.config import load_config
from tests.toy_run import make_toy_run

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands():
    """Every `seq2seq ...` of a bash block or of a cell of the table of options."""
    lines = [line for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]
    lines += re.findall(r"`(seq2seq [a-z][^`]*)`", README)
    return sorted({line.split("#")[0].strip() for line in lines if line.startswith("seq2seq ")})


def test_readme_shows_all_four_commands():
    assert {command.split()[1] for command in commands()} >= {"train", "evaluate", "translate"}
    assert "seq2seq prepare" in README


@pytest.mark.parametrize("command", [c for c in commands() if c.split()[1] == "train"])
def test_training_commands_resolve(command, capsys):
    arguments = [a for a in shlex.split(command)[1:] if a not in ("--resume",)]
    arguments = ["quickstart" if a == "my.yaml" else a for a in arguments]
    assert run_command([*arguments, "--dump-config"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("options", re.findall(r"`(--set [^`]*?)`", README))
def test_settings_are_valid(options):
    parts = shlex.split(options)
    load_config([], [value for flag, value in zip(parts[::2], parts[1::2], strict=True) if flag == "--set"])


def test_translating_commands_run(tmp_path, monkeypatch, capsys):
    run = make_toy_run(tmp_path / "runs" / "toy")
    run.mark_finished()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.de").write_text("Ein Hund.\n\nZwei Hunde.\n", encoding="utf-8")
    translating = [c for c in commands() if c.split()[1] == "translate"]
    assert len(translating) >= 2
    for command in translating:
        assert run_command([a if a != "..." else "Ein Hund." for a in shlex.split(command)[1:]]) == 0, command
    assert (tmp_path / "out.en").read_text(encoding="utf-8").count("\n") == 3


def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    [block] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    make_toy_run(tmp_path / "runs" / "toy")
    for path in re.findall(r'load\("(.*?)"\)', block):
        make_toy_run(tmp_path / path)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_numbers_are_those_of_the_records():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "results", "check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
