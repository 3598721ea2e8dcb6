#!/usr/bin/env python3
"""How the command line answers: help without torch, a translation from a cold start, a file of hostile lines; and how
long it takes to score 1,000 saved translations of two systems.

    .venv/bin/python scripts/bench_cli --run RUN       the record goes to docs/records/cli.json

Times are medians of whole processes. Memory is the largest resident set of the process that translated; flat means that
four times the lines do not need more of it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.files import write_json
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.environment import describe_environment

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the hostile lines are those of the tests
DEFAULT_RECORD = ROOT / "docs" / "records" / "cli.json"
COMMAND = [sys.executable, "-m", "seq2seq_attn"]
NUM_RUNS = 5


def main() -> int:
    """Measure, print, record; 1 where a line was lost."""
    options = parse_options()
    help_s = [timed([*COMMAND, "--help"])["seconds"] for _ in range(NUM_RUNS)]
    modules = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True).stdout
    translate = [*COMMAND, "translate", "--run", str(options.run)]
    cold_s = [timed([*translate, "Ein Hund rennt."])["seconds"] for _ in range(NUM_RUNS)]
    hostile = [hostile_file(translate, num_lines) for num_lines in (500, 2_000)]
    scoring = score_saved(options.run)
    value = {
        "name": "cli",
        "help": {"seconds": statistics.median(help_s), "runs": help_s, "imports_torch": modules.strip() == "True"},
        "cold_start": {"seconds": statistics.median(cold_s), "runs": cold_s},
        "hostile_lines": hostile,
        "scoring": scoring,
        "environment": describe_environment([Path(sys.argv[0]).name, *sys.argv[1:]], "cpu"),
    }
    print(f"--help: {value['help']['seconds']:.2f} s, imports torch: {value['help']['imports_torch']}")
    print(f"translate one sentence from a cold start: {value['cold_start']['seconds']:.2f} s")
    for case in hostile:
        print(
            f"{case['lines_in']} hostile lines: {case['lines_out']} out, exit {case['exit_code']}, "
            f"{case['seconds']:.0f} s, peak {case['peak_mib']:.0f} MiB; stderr: {case['stderr']}"
        )
    print(f"{scoring['lines']} lines of two systems scored, no model: {scoring['seconds']:.1f} s")
    write_json(options.record, value)
    return 0 if all(case["lines_in"] == case["lines_out"] and case["exit_code"] == 0 for case in hostile) else 1


IMPORTED = "import sys; from seq2seq_attn.__main__ import run; sys.stdout = sys.stderr; run(['--help']); " + (
    "sys.stdout = sys.__stdout__; print('torch' in sys.modules)"
)


def hostile_file(translate: list[str], num_lines: int) -> dict[str, Any]:
    """Greedy translation of a file of hostile lines, one of which has 10,000 words."""
    from tests.test_translate import hostile_lines

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in", Path(folder) / "out"
        source.write_bytes(b"".join(line + b"\r\n" for line in hostile_lines(num_lines)))
        result = timed([*translate, "--beam-size", "1", "-i", str(source), "-o", str(target)])
        result["stderr"] = result["stderr"].replace(f"{folder}/", "")
        return {"lines_in": num_lines, "lines_out": target.read_bytes().count(b"\n"), **result}


SCORE = """
import sys
from pathlib import Path
from seq2seq_attn.commands.evaluate import score_files
from seq2seq_attn.report.build import Settings
from seq2seq_attn.report.files import ReportFiles
source, reference, first, second, report = map(Path, sys.argv[1:])
files = ReportFiles(report, report.with_suffix(".md"), "png")
score_files([first, second], reference, source=source, settings=Settings("9,12,15,18,21"), files=files)
"""


def score_saved(run: Path) -> dict[str, Any]:
    """A whole process that scores the run's translations of its first test set, and the same without every tenth word:
    every measure, six buckets, 1,000 resamples, plots."""
    prepared = prepare_corpus(RunDir(run).config())
    split = prepared.test_splits[0]
    source, reference = prepared.text(split)
    hypotheses = RunDir(run).hyps_path(split).read_text(encoding="utf-8").splitlines()
    worse = [" ".join(word for place, word in enumerate(line.split()) if place % 10 != 9) for line in hypotheses]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("source", "reference", "first", "second", "report.json")]
        for path, lines in zip(paths, (source, reference, hypotheses, worse), strict=False):
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        result = timed([sys.executable, "-c", SCORE, *map(str, paths)])
        if result["exit_code"]:
            raise SystemExit(result["stderr"])
        return {"lines": len(hypotheses), "seconds": result["seconds"], "peak_mib": result["peak_mib"]}


def timed(command: list[str]) -> dict[str, Any]:
    """Run a command to its end: wall seconds, peak memory, exit code, what it said on stderr."""
    with tempfile.TemporaryFile() as errors:
        began_at = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began_at
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    code = os.waitstatus_to_exitcode(status)
    return {"seconds": seconds, "peak_mib": usage.ru_maxrss / 1024, "exit_code": code, "stderr": said}


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_cli", description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="a trained run directory")
    parser.add_argument("--record", type=Path, default=DEFAULT_RECORD)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
