"""What `--help` looks like: summaries that fit, options in groups, no Python types, one form of defaults."""

import re

import pytest
from typer.main import get_command

from seq2seq_attn.__main__ import run
from seq2seq_attn.cli import COMMANDS, GROUPS, app

NAMES = {parameter.name for name in COMMANDS for parameter in get_command(app).commands[name].params}


@pytest.fixture(params=["", *COMMANDS])
def shown(request, monkeypatch, capsys):
    """The help of the program and of each command, on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*request.param.split(), "--help"]) == 0
    return capsys.readouterr().out


def test_it_fits_the_terminal_and_cuts_nothing(shown):
    assert max(map(len, shown.splitlines())) <= 80
    assert not re.search(r"\w\.\.\.$", shown, re.MULTILINE)


def test_it_shows_neither_types_nor_defaults_in_parentheses(shown):
    assert not re.search(r"<(list|str|int|float|Path|bool)\b", shown)
    assert not re.search(r"\[default:\s+\(", shown)


def test_every_option_has_a_group():
    """`texts`, `runs`, `pairs`, `corpus` and `repository` are arguments."""
    grouped = [name for names in GROUPS.values() for name in names.split()]
    assert len(grouped) == len({*grouped})
    assert NAMES - {"texts", "runs", "pairs", "corpus", "repository"} == {*grouped} - {"help"}
