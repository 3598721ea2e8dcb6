"""The command line: help without torch, a translation from a cold start, a file of hostile lines.

Times are medians of whole processes. Memory is the largest resident set of the process that translated; it is flat if
four times the lines do not need more of it.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts.laboratory.benchmarks.measure import build_parser, publish
from scripts.laboratory.harness.processes import run_timed
from scripts.laboratory.harness.records import RECORDS, Record, describe
from scripts.laboratory.harness.samples import hostile_lines
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.run_dir import RunDir

COMMAND = [sys.executable, "-m", "seq2seq_attn"]
NUM_RUNS = 5


def main(arguments: Sequence[str]) -> None:
    """Measure, print, record.

    Raises:
        UserError: a command failed, or lost a line.
    """
    parser = build_parser("cli", __doc__, path=RECORDS / "cli.json")
    parser.add_argument("--run", type=Path, required=True, help="a trained run directory")
    options = parser.parse_args(arguments)
    translate = [*COMMAND, "translate", "--run", str(options.run)]
    imports = run_timed([sys.executable, "-X", "importtime", *COMMAND[1:], "--help"]).stderr
    record = {
        "help": {**median_seconds([*COMMAND, "--help"]), "imports_torch": "| torch\n" in imports},
        "cold_start": median_seconds([*translate, "Ein Hund rennt."]),
        "hostile_lines": [
            translate_hostile_lines(translate, options.run, num_lines)
            for num_lines in ((20, 80) if options.quick else (500, 2_000))
        ],
        "environment": describe("lab"),
    }
    publish(record, options.record)


def median_seconds(command: list[str]) -> Record:
    """Wall seconds of a command that runs several times."""
    runs = []
    for _ in range(NUM_RUNS):
        done = run_timed(command)
        if done.exit_code:
            raise UserError(f"{' '.join(command)}: exit {done.exit_code}\n{done.stderr}")
        runs.append(done.seconds)
    return {"seconds": statistics.median(runs), "runs": runs}


def translate_hostile_lines(translate: list[str], run: Path, num_lines: int) -> Record:
    """Greedy translation of a file of hostile lines, one of which has 10,000 words."""
    ordinary = prepare_corpus(RunDir(run).config()).text("valid")[0][:5]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in", Path(folder) / "out"
        source.write_bytes(b"".join(line + b"\r\n" for line in hostile_lines(num_lines, ordinary)))
        done = run_timed([*translate, "--beam-size", "1", "-i", str(source), "-o", str(target)])
        lines_out = target.read_bytes().count(b"\n") if target.is_file() else 0
    if done.exit_code or lines_out != num_lines:
        raise UserError(f"{num_lines} hostile lines: {lines_out} out, exit {done.exit_code}\n{done.stderr}")
    stderr = done.stderr.replace(f"{folder}/", "")
    return {"lines_in": num_lines, "lines_out": lines_out, **done._asdict(), "stderr": stderr}
