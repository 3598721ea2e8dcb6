"""Run a command and read its output or its error message."""

from __future__ import annotations

import pytest

from seq2seq_attn.__main__ import run


def outputs(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The lines of a command that succeeds."""
    capsys.readouterr()
    assert run(arguments) == 0
    return capsys.readouterr().out.split("\n")[:-1]


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code of a command that fails, and its last message."""
    capsys.readouterr()
    code = run(arguments)
    out, err = capsys.readouterr()
    assert out == ""
    return code, err.splitlines()[-1]
