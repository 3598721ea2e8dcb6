"""Wrong usages, generated from the options of every command and the keys of the configuration: one
line on stderr, exit code 1 or 2, in plain words, at once."""

import random
import re
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest
import typer

from seq2seq_attn.__main__ import run
from seq2seq_attn.cli import app
from seq2seq_attn.config import load_config
from seq2seq_attn.config.explain import all_keys
from seq2seq_attn.train.check import check_config

FOREIGN = re.compile(
    r"unexpected error|Traceback|[Ii]nput should|valid dictionary|instance of|Value error|Invalid value for|pydantic|"
    r"INTERNAL|unable to parse|\?\.|NoneType|\bobject has no\b"
)
SECONDS = 2.0
NUMBERS = [
    "-1",
    "0",
    "1.5",
    "1e9",
    "1e400",
    "nan",
    "-inf",
    "true",
    "abc",
    "",
    "9" * 30,
    "[1]",
    "{a: 1}",
    "null",
    "0x",
]
OTHERS = [
    "3",
    "abc",
    "[[1]]",
    "{a: {b: 1}}",
    "!!int x",
    "x" * 5000,
    "a\nb",
    "~nobody",
    "😀",
    "*a",
    "&a [*a]",
    "{",
    "'",
]
FILES = ["no/such/file", "no/such.yaml", "/dev/null/x", "x" * 300, ".", "/proc/self/mem/x"]
NEEDS = {
    "prepare": [],
    "train": [],
    "evaluate": ["no/run"],
    "translate": ["Hund"],
    "score": [],
    "compare": [],
}
ASK_FOR_A_RUN = ("evaluate", "translate", "score")
"""There is none: whatever else is right, these usages are wrong."""


def wrong_usages(number: int, seed: int = 1) -> list[list[str]]:
    """So many different command lines, each of them wrong in at least one way and none of them
    heavy."""
    candidates = list(dict.fromkeys(tuple(usage) for usage in [*_settings(), *_options()]))
    random.Random(seed).shuffle(candidates)
    return list(islice((list(usage) for usage in candidates if not _is_right(usage)), number))


def _settings() -> Iterator[list[str]]:
    """Every key with odd values, and misspelt."""
    for key in all_keys():
        for value in (*NUMBERS, *OTHERS):
            yield ["train", "--dump-config", "-c", "base", "--set", f"{key}={value}"]
        middle = len(key) // 2
        for misspelt in (key[:middle] + "q" + key[middle:], f"{key}.x", f"x.{key}", key + "q"):
            yield ["train", "--dump-config", "-c", "base", "--set", f"{misspelt}=1"]


def _is_right(usage: Sequence[str]) -> bool:
    """Whether it is one of the odd values that a setting may have."""
    if usage[:-1] != ("train", "--dump-config", "-c", "base", "--set"):
        return False
    try:
        check_config(load_config(["base"], [usage[-1]]))
    except Exception:  # a UsageError, or something for the test to find
        return False
    return True


def _options() -> Iterator[list[str]]:
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        needed = NEEDS.get(name, [])
        wrong = [] if name in ASK_FOR_A_RUN else ["--no-such-option"]
        for parameter in command.params:
            for option in [one for one in parameter.opts if one.startswith("--")]:
                yield [name, f"{option[:-1]}q"]
                yield [name, *needed, option[:-1] + option[-1] * 2]
                if getattr(parameter, "is_flag", False):
                    yield [name, f"{option}=3"]
                    continue
                yield [name, *needed, option]
                values = NUMBERS if _is_number(parameter) else [*FILES, "abc", "", "[1]"]
                for value in values:
                    yield [name, *needed, f"{option}={value}", *wrong]
                    if _is_number(parameter) and not value.isdecimal():
                        yield [name, *needed, option, value]
                    if _is_path(parameter) and name in ASK_FOR_A_RUN:
                        yield [name, "--device=gpu", *needed, option, value]


def _is_number(parameter: Any) -> bool:
    hint = str(getattr(parameter, "annotation", "")) + str(getattr(parameter, "type", ""))
    return any(word in hint.lower() for word in ("int", "float")) or parameter.metavar in (
        "N",
        "A",
        "R",
        "K",
    )


def _is_path(parameter: Any) -> bool:
    return (
        "FILE" in str(parameter.metavar)
        or "DIR" in str(parameter.metavar)
        or parameter.metavar == "RUN"
    )


@pytest.fixture(autouse=True)
def _warm(tmp_path, monkeypatch, capsys) -> None:
    """In an empty folder, with everything imported: what is measured is the answer."""
    monkeypatch.chdir(tmp_path)
    run(["train", "-c", "quickstart", "--dump-config"])
    for command in ("evaluate", "translate", "score"):
        run([command, "--device=gpu"])
    capsys.readouterr()


@pytest.mark.parametrize("number", [80, pytest.param(1000, marks=pytest.mark.slow)])
def test_wrong_usages_are_told_in_one_line(capsys, number):
    usages, faults = wrong_usages(number), []
    assert len(usages) == number
    for usage in usages:
        began_at = time.process_time()
        code = run(usage)
        seconds = time.process_time() - began_at
        out, err = capsys.readouterr()
        lines = err.splitlines()
        is_told = (
            code in (1, 2) and lines and lines[-1].startswith("error: ") and len(lines[-1]) < 1000
        )
        errors = [line for line in lines if line.startswith("error: ")]
        if not is_told or out or len(errors) != 1 or FOREIGN.search(err) or seconds > SECONDS:
            faults.append(
                f"{[part[:80] for part in usage]}: {code} in {seconds:.1f} s: {out[:80]!r} "
                f"{err[-300:]!r}"
            )
    assert not faults, f"{len(faults)} of {number}:\n" + "\n".join(faults[:40])
