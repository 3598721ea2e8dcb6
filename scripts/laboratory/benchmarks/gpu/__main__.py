"""The command line of scripts/gpu. Needs the standard library only: on a bare machine the rest comes with `--from`."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from scripts.laboratory.benchmarks.gpu import bundle
from scripts.laboratory.benchmarks.gpu.plan import BLOCKS, WORK, Budget, Settings, child_environment
from scripts.laboratory.harness.records import ROOT, SPEED, exit_code

PACKAGE = "scripts.laboratory.benchmarks.gpu"
MODULES = {
    "tests": "checks",
    "training": "training",
    "translation": "translation",
    "bleu": "bleu",
    "bleu-eager": "bleu",
}
GRACE_S = 60.0
"""Starting Python and torch, and writing the record, beyond a block's own time."""


def main(arguments: list[str] | None = None) -> int:
    """Run the requested blocks. Returns 1 if one failed or did not finish."""
    options = parse(arguments)
    if options.bundle:
        bundle.write(options.bundle, python_version=options.python)
        return 0
    if options.unpack:
        site = bundle.unpack(options.unpack)
        path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
        os.environ["PYTHONPATH"] = path  # of the processes that run the blocks
    with ExitStack() as stack:
        settings = settings_of(options, stack)
        if options.list:
            return print_list(settings)
        if options.block:
            return run_here(options.block, settings)
        return run_all(options.names, settings)


def settings_of(options: argparse.Namespace, stack: ExitStack) -> Settings:
    """The blocks' settings; a rehearsal works in a temporary folder."""
    if not options.rehearse:
        records = options.records or SPEED
        return Settings(device="cuda", minutes=options.minutes, records=records, work=options.work or WORK)
    folder = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpu-rehearsal-")))
    records = options.records or folder / "records"
    return Settings(device="cpu", minutes=options.minutes, records=records, work=folder, is_rehearsal=True)


def print_list(settings: Settings) -> int:
    """Print each block with the state of its record."""
    for name, what in BLOCKS.items():
        record = settings.read_record(name)
        state = "waiting"
        if record is not None:
            environment = record["environment"]
            state = "done" if record["is_finished"] else "unfinished"
            state += f", {environment['device_name']}, {environment['written_at'][:10]}"
        print(f"{name:12} {state}\n{'':12} {what}")
    return 0


def run_all(names: list[str], settings: Settings) -> int:
    """Run each block in its own process, so that none affects the next."""
    names = names or [name for name in BLOCKS if not settings.is_done(name)]
    if not names:
        print("every block has its record; name those to run again")
    failed = [name for name in names if not run_apart(name, settings)]
    if failed:
        print(f"\nnot done: {', '.join(failed)}; run scripts/gpu {' '.join(failed)} again", file=sys.stderr)
    return 1 if failed else 0


def run_apart(name: str, settings: Settings) -> bool:
    """Run a block in another process. Returns whether it finished."""
    print(f"\n=== {name}: {BLOCKS[name]}", flush=True)
    command = [sys.executable, "-m", PACKAGE, "--block", name, "--minutes", str(settings.minutes)]
    command += ["--records", str(settings.records), "--work", str(settings.work)]
    command += ["--rehearse"] if settings.is_rehearsal else []
    # tiny sizes gain nothing from threads
    environment = child_environment(num_threads=1 if settings.is_rehearsal else None)
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    try:
        return process.wait(60 * settings.minutes + GRACE_S) == 0
    except subprocess.TimeoutExpired:
        print(f"{name}: killed after {settings.minutes:g} minutes and {GRACE_S:.0f} s", file=sys.stderr)
        return False
    finally:
        with suppress(ProcessLookupError):  # what the block started goes too: it would hold the GPU
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_here(name: str, settings: Settings) -> int:
    """Run a block in this process; 1 if it has not come to its end."""
    settings = replace(settings, records=settings.records.resolve(), work=settings.work.resolve())
    settings.work.mkdir(parents=True, exist_ok=True)
    if settings.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            print("no CUDA device here; try the blocks on the CPU with scripts/gpu --rehearse", file=sys.stderr)
            return 1
    module = importlib.import_module(f"{PACKAGE}.{MODULES[name]}")
    return 0 if module.run(name, settings, Budget(settings.minutes)) else 1


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="scripts/gpu", description="Everything that waits for a GPU, block by block.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BLOCKS)}; none: all without a record")
    parser.add_argument("--list", action="store_true", help="the blocks, and which are done")
    parser.add_argument("--minutes", type=float, default=8.0, help="time limit of a block in minutes (default 8)")
    parser.add_argument("--records", type=Path, metavar="DIR", help="where records are written (docs/speed)")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where unfinished training lies (build/gpu)")
    parser.add_argument("--rehearse", action="store_true", help="on the CPU at tiny sizes; leaves docs/ alone")
    parser.add_argument("--bundle", type=Path, metavar="DIR", help="collect what a bare machine lacks")
    parser.add_argument("--python", default="3.12", metavar="X.Y", help="the bare machine's Python (default 3.12)")
    parser.add_argument("--from", dest="unpack", type=Path, metavar="DIR", help="unpack a bundle first")
    parser.add_argument("--block", choices=list(BLOCKS), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in BLOCKS:
            parser.error(f"{name!r}: no such block; there are {', '.join(BLOCKS)}")
    if options.minutes <= 0:
        parser.error(f"--minutes {options.minutes:g}: a block needs more than 0; the default is 8")
    return options


if __name__ == "__main__":
    sys.exit(exit_code(main))
