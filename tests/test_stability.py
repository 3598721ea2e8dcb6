"""The public names, options, exit codes and addresses are those of `stable.json`. A change of one
is a decision: then the list changes too, and CHANGELOG says why (docs/stability.md)."""

import inspect
from pathlib import Path

import pytest
from typer.main import get_command

import seq2seq_attn
from seq2seq_attn.cli import app
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import read_json

STABLE = read_json(Path(__file__).parent / "stable.json")
COMMANDS = get_command(app).commands


def test_python_offers_the_stable_names():
    assert sorted(seq2seq_attn.__all__) == STABLE["names"]


@pytest.mark.parametrize("name", STABLE["functions"])
def test_a_function_takes_the_stable_parameters(name):
    parameters = inspect.signature(getattr(seq2seq_attn, name)).parameters
    assert list(parameters) == STABLE["functions"][name]


@pytest.mark.parametrize("name", STABLE["classes"])
def test_a_class_has_the_stable_attributes(name):
    assert public_attributes(getattr(seq2seq_attn, name)) == STABLE["classes"][name]


def test_the_commands_are_the_stable_ones():
    assert sorted(COMMANDS) == sorted(STABLE["commands"])


@pytest.mark.parametrize("name", STABLE["commands"])
def test_a_command_has_the_stable_options(name):
    assert options(COMMANDS[name]) == STABLE["commands"][name]


def test_exit_codes_are_the_stable_ones():
    assert STABLE["exit_codes"] == {"failure": UserError.exit_code, "usage": UsageError.exit_code}


def public_attributes(kind):
    """The sorted names of a class's fields, properties and methods."""
    names = {*vars(kind), *getattr(kind, "__annotations__", {})}
    return sorted(name for name in names if not name.startswith("_"))


def options(command):
    """The sorted names of a command's arguments and visible options."""
    names = []
    for parameter in command.params:
        if not getattr(parameter, "hidden", False):
            names += parameter.opts
    return sorted(names)
