"""Wrong usages of every kind: one line on stderr, exit code 1 or 2, in plain words, at once."""

import re
import time
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
from tests.cli.wrong_usages import wrong_usages

FOREIGN = re.compile(
    r"unexpected error|Traceback|[Ii]nput should|valid dictionary|instance of|Value error|Invalid value for|pydantic|"
    r"INTERNAL|unable to parse|\?\.|NoneType|\bobject has no\b"
)
SECONDS = 2.0


def check_usages(usages: list[list[str]], capsys: pytest.CaptureFixture[str]) -> dict[int, int]:
    """Run each; the number of runs by exit code."""
    faults, codes = [], dict.fromkeys((1, 2), 0)
    for usage in usages:
        began_at = time.process_time()
        code = run(usage)
        seconds = time.process_time() - began_at
        out, err = capsys.readouterr()
        lines = err.splitlines()
        is_told = code in (1, 2) and lines and lines[-1].startswith("error: ") and len(lines[-1]) < 1000
        errors = [line for line in lines if line.startswith("error: ")]
        if not is_told or out or len(errors) != 1 or FOREIGN.search(err) or seconds > SECONDS:
            faults.append(f"{[part[:80] for part in usage]}: {code} in {seconds:.1f} s: {out[:80]!r} {err[-300:]!r}")
        codes[code] = codes.get(code, 0) + 1
    assert not faults, f"{len(faults)} of {len(usages)}:\n" + "\n".join(faults[:40])
    return codes


@pytest.fixture(autouse=True)
def _warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In an empty folder, with everything imported: what is measured is the answer."""
    monkeypatch.chdir(tmp_path)
    run(["train", "-c", "quickstart", "--dump-config"])
    for command in ("evaluate", "translate", "score"):
        run([command, "--device=gpu"])
    capsys.readouterr()


def test_a_sample_of_wrong_usages_is_told_in_one_line(capsys):
    check_usages(wrong_usages(80), capsys)


@pytest.mark.slow
def test_a_thousand_wrong_usages_are_told_in_one_line(capsys):
    usages = wrong_usages(1000)
    assert len(usages) == 1000
    codes = check_usages(usages, capsys)
    with capsys.disabled():
        print(f" {codes} ", end="")
