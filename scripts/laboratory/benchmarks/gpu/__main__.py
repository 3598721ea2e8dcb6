"""The command line of scripts/gpu. Needs the standard library only: on a bare machine the rest comes with `--from`."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from scripts.laboratory.benchmarks.gpu import bundle
from scripts.laboratory.benchmarks.gpu.plan import BLOCKS, WORK, Budget, Settings
from scripts.laboratory.harness.records import ROOT, SPEED, exit_code

PACKAGE = "scripts.laboratory.benchmarks.gpu"
GRACE_S = 60.0
"""for starting Python and torch, and writing the record, beyond a block's own time"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the blocks asked for. Returns 1 if one failed or did not finish."""
    options = parse(arguments)
    if options.bundle:
        bundle.write(options.bundle, python_version=options.python)
        return 0
    paths = [str(ROOT), os.environ.get("PYTHONPATH")]
    if options.unpack:
        paths.insert(0, str(bundle.unpack(options.unpack)))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # of the processes that run the blocks
    with ExitStack() as stack:
        if options.rehearse:
            os.environ["OMP_NUM_THREADS"] = "1"  # tiny sizes gain nothing from threads
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpu-rehearsal-")))
        records = options.records or (folder / "records" if options.rehearse else SPEED)
        work = options.work or (folder if options.rehearse else WORK)
        device = "cpu" if options.rehearse else "cuda"
        settings = Settings(device, records.resolve(), work.resolve(), options.minutes)
        if options.block:
            return run_here(options.block, settings)
        return print_list(settings) if options.list else run_all(options.names, settings)


def print_list(settings: Settings) -> int:
    """Print each block with the state of its record."""
    for name, block in BLOCKS.items():
        record, state = settings.read_record(name), "waiting"
        if record is not None:
            environment = record["environment"]
            state = "done" if record["is_finished"] else "unfinished"
            state += f", {environment['device_name']}, {environment['written_at'][:10]}"
        print(f"{name:12} {state}\n{'':12} {block.about} ({block.minutes:g} minutes)")
    return 0


def run_all(names: list[str], settings: Settings) -> int:
    """Run each block in its own process, so that none affects the next."""
    records = {name: settings.read_record(name) for name in BLOCKS}
    names = names or [name for name, record in records.items() if not (record and record["is_finished"])]
    if not names:
        print("every block has its record; name those to run again")
    failed = []
    for name in names:
        if not run_apart(name, settings):
            failed.append(name)
            if name == "check":
                break
    if failed:
        print(f"\nnot done: {', '.join(failed)}; run scripts/gpu {' '.join(failed)} again", file=sys.stderr)
    return 1 if failed else 0


def run_apart(name: str, settings: Settings) -> bool:
    """Run a block in another process. Returns whether it finished."""
    block = BLOCKS[name]
    minutes = settings.minutes or block.minutes
    print(f"\n=== {name}: {block.about}", flush=True)
    command = [sys.executable, "-m", PACKAGE, "--block", name, "--minutes", str(minutes)]
    command += ["--records", str(settings.records), "--work", str(settings.work)]
    command += ["--rehearse"] if settings.is_rehearsal else []
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        return process.wait(60 * minutes + GRACE_S) == 0
    except subprocess.TimeoutExpired:
        print(f"{name}: killed after {minutes:g} minutes and {GRACE_S:.0f} s", file=sys.stderr)
        return False
    finally:
        with suppress(ProcessLookupError):  # what the block started goes too: it would hold the GPU
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_here(name: str, settings: Settings) -> int:
    """Run a block in this process; 1 if it has not come to its end."""
    settings.work.mkdir(parents=True, exist_ok=True)
    if not settings.is_rehearsal and not importlib.import_module("torch").cuda.is_available():
        print("no CUDA device here; try the blocks on the CPU with scripts/gpu --rehearse", file=sys.stderr)
        return 1
    blocks = importlib.import_module(f"{PACKAGE}.blocks")
    return 0 if blocks.RUN[name](settings, Budget(settings.minutes or BLOCKS[name].minutes)) else 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="scripts/gpu", description="The benchmarks that wait for a GPU, in blocks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BLOCKS)}; none: all without a record")
    parser.add_argument("--list", action="store_true", help="the blocks, and which are done")
    parser.add_argument("--minutes", type=float, help="time limit of each block in minutes (default: see --list)")
    parser.add_argument("--records", type=Path, metavar="DIR", help="where records are written (docs/speed)")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where unfinished training lies (build/gpu)")
    parser.add_argument("--rehearse", action="store_true", help="on the CPU at tiny sizes; leaves docs/ alone")
    parser.add_argument("--bundle", type=Path, metavar="DIR", help="collect what a bare machine lacks")
    parser.add_argument("--python", default="3.12", metavar="X.Y", help="the bare machine's Python (default 3.12)")
    parser.add_argument("--from", dest="unpack", type=Path, metavar="DIR", help="unpack a bundle first")
    parser.add_argument("--block", choices=list(BLOCKS), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BLOCKS]:
        parser.error(f"{', '.join(unknown)}: no such block; there are {', '.join(BLOCKS)}")
    if options.minutes is not None and options.minutes <= 0:
        parser.error(f"--minutes {options.minutes:g}: a block needs more than 0")
    return options


if __name__ == "__main__":
    sys.exit(exit_code(main))
