"""Wrong usages, generated from the options of every command and the keys of the configuration: one
line on stderr, exit code 1 or 2, in plain words, at once."""

import random
import re
import time

import pytest
import typer

from seq2seq_attn.__main__ import run
from seq2seq_attn.cli import app
from seq2seq_attn.config import load_config
from seq2seq_attn.config.explain import all_keys
from seq2seq_attn.train.check import check_config

FOREIGN = re.compile(
    r"unexpected error|Traceback|[Ii]nput should|valid dictionary|instance of|Value error|"
    r"Invalid value for|pydantic|INTERNAL|unable to parse|\?\.|NoneType|\bobject has no\b"
)
SECONDS = 2.0
NUMBERS = "-1 0 1.5 1e9 1e400 nan -inf true abc [1] null 0x".split()
NUMBERS += ["", "9" * 30, "{a: 1}"]
OTHERS = "3 [[1]] ~nobody 😀 *a { '".split()
OTHERS += ["{a: {b: 1}}", "!!int x", "x" * 5000, "a\nb", "&a [*a]"]
FILES = "no/such/file no/such.yaml /dev/null/x . /proc/self/mem/x".split()
FILES.append("x" * 300)
ARGUMENTS = {"evaluate": ["no/run"], "translate": ["Hund"], "score": []}
"""of commands that ask for a run; there is none, so whatever else is right, the usage is wrong"""
DUMP = "train --dump-config -c base --set".split()


def wrong_usages(number):
    """So many different command lines, each of them wrong in at least one way and none of them
    heavy."""
    candidates = [*_settings(), *_options()]
    random.Random(1).shuffle(candidates)
    usages = []
    for usage in candidates:
        if len(usages) < number and usage not in usages and not _is_right(usage):
            usages.append(usage)
    return usages


def _settings():
    """Every key with odd values, and misspelt."""
    for key in all_keys():
        for value in (*NUMBERS, *OTHERS):
            yield [*DUMP, f"{key}={value}"]
        middle = len(key) // 2
        for misspelt in (key[:middle] + "q" + key[middle:], f"{key}.x", f"x.{key}", key + "q"):
            yield [*DUMP, f"{misspelt}=1"]


def _is_right(usage):
    """Whether it is one of the odd values that a setting may have."""
    if usage[:-1] != DUMP:
        return False
    try:
        check_config(load_config(["base"], [usage[-1]]))
    except Exception:  # a UsageError, or something for the test to find
        return False
    return True


def _options():
    """Every option with odd values, and misspelt."""
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for parameter in command.params:
            is_flag = getattr(parameter, "is_flag", False)
            for option in parameter.opts:
                if not option.startswith("--"):
                    continue
                yield [name, f"{option[:-1]}q"]
                yield [name, option + option[-1]]
                yield [name, f"{option}=3" if is_flag else option]
                if is_flag or name not in ARGUMENTS:
                    continue
                for value in (*NUMBERS, *FILES):
                    yield [name, *ARGUMENTS[name], f"{option}={value}"]
                    yield [name, "--device=gpu", *ARGUMENTS[name], option, value]


@pytest.fixture(autouse=True)
def _warm(in_tmp_path, capsys):
    """In an empty folder, with everything imported: what is measured is the answer."""
    run("train -c quickstart --dump-config".split())
    for command in ARGUMENTS:
        run([command, "--device=gpu"])
    capsys.readouterr()


@pytest.mark.parametrize("number", [80, pytest.param(1000, marks=pytest.mark.slow)])
def test_wrong_usages_are_told_in_one_line(capsys, number):
    faults = []
    usages = wrong_usages(number)
    assert len(usages) == number
    for usage in usages:
        began_at = time.process_time()
        code = run(usage)
        seconds = time.process_time() - began_at
        out, err = capsys.readouterr()
        last = err.split("\n")[-2]
        is_told = code in (1, 2) and last.startswith("error: ") and len(last) < 1000
        is_one_line = out == "" and err.count("error: ") == 1
        if not (is_told and is_one_line) or FOREIGN.search(err) or seconds > SECONDS:
            shown = [argument[:80] for argument in usage]
            faults.append(f"{shown}: {code} in {seconds:.1f} s: {out[:80]!r} {err[-300:]!r}")
    assert not faults, f"{len(faults)} of {number}:\n" + "\n".join(faults[:40])
