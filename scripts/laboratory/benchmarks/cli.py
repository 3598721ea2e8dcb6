"""Measure the command line: help without torch, a translation from a cold start, a file of hostile lines.

Times are medians of whole processes. Memory is the largest resident set of the process that translated; it is flat if
four times the lines do not need more of it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.laboratory.harness.processes import run_timed
from scripts.laboratory.harness.records import RECORDS, Record, add_record_option, describe, exit_code
from scripts.laboratory.harness.samples import hostile_lines
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_json
from seq2seq_attn.run_dir import RunDir

COMMAND = [sys.executable, "-m", "seq2seq_attn"]
NUM_RUNS = 5


def main() -> int:
    """Measure, print, record; 1 if a line was lost."""
    options = parse_options()
    translate = [*COMMAND, "translate", "--run", str(options.run)]
    value: Record = {
        "help": {**median_of([*COMMAND, "--help"]), "imports_torch": imports_torch()},
        "cold_start": median_of([*translate, "Ein Hund rennt."]),
        "hostile_lines": [hostile_file(translate, options.run, num_lines) for num_lines in (500, 2_000)],
        "environment": describe("bench_cli"),
    }
    print(f"--help: {value['help']['seconds']:.2f} s, imports torch: {value['help']['imports_torch']}")
    print(f"translate one sentence from a cold start: {value['cold_start']['seconds']:.2f} s")
    for case in value["hostile_lines"]:
        print(
            f"{case['lines_in']} hostile lines: {case['lines_out']} out, exit {case['exit_code']}, "
            f"{case['seconds']:.0f} s, peak {case['peak_mib']:.0f} MiB; stderr: {case['stderr']}"
        )
    if options.record:
        write_json(options.record, value)
    is_good = all(case["lines_in"] == case["lines_out"] and case["exit_code"] == 0 for case in value["hostile_lines"])
    return 0 if is_good else 1


def median_of(command: list[str]) -> Record:
    """Wall seconds of a command that runs several times.

    Raises:
        UserError: it failed.
    """
    runs = []
    for _ in range(NUM_RUNS):
        found = run_timed(command)
        if found.exit_code:
            raise UserError(f"{' '.join(command)}: exit {found.exit_code}\n{found.stderr}")
        runs.append(found.seconds)
    return {"seconds": statistics.median(runs), "runs": runs}


HELP = """
import sys
from seq2seq_attn.__main__ import run
sys.stdout = sys.stderr
run(["--help"])
sys.stdout = sys.__stdout__
print("torch" in sys.modules)
"""


def imports_torch() -> bool:
    """Whether the help imports torch."""
    return subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True).stdout == "True\n"


def hostile_file(translate: list[str], run: Path, num_lines: int) -> Record:
    """Greedy translation of a file of hostile lines, one of which has 10,000 words."""
    config = RunDir(run).config()
    ordinary = prepare_corpus(config).text("valid")[0][:5]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in", Path(folder) / "out"
        source.write_bytes(b"".join(line + b"\r\n" for line in hostile_lines(num_lines, ordinary)))
        found = run_timed([*translate, "--beam-size", "1", "-i", str(source), "-o", str(target)])
        if found.peak_mib is None:
            raise UserError("bench_cli needs more memory than the translation that it measures")
        about = {**found._asdict(), "stderr": found.stderr.replace(f"{folder}/", "")}
        return {"lines_in": num_lines, "lines_out": target.read_bytes().count(b"\n"), **about}


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_cli", description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="a trained run directory")
    add_record_option(parser, RECORDS / "cli.json")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(exit_code(main))
