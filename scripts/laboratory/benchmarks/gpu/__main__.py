"""The command line of scripts/gpu. Needs the standard library only: on a bare machine the rest comes with `--from`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts.laboratory.benchmarks.gpu import bundle
from scripts.laboratory.harness.records import ROOT, SPEED, exit_code

BLOCKS = {
    "check": (1, "losses of eager and graphed updates against the CPU's; nothing else runs if they differ"),
    "training": (3, "training speed at the tutorial's function, also with CUDA graphs, against its own loop"),
    "training-multi30k": (2, "training speed at the sizes of `multi30k`, also with CUDA graphs"),
    "bleu": (4, "`seq2seq train` on Multi30k with CUDA graphs, to 35 and to 40 BLEU"),
    "translation": (3, "translation speed: greedy, beam 5, one sentence at a time"),
    "tests": (3, "the device tests and the golden loss curves"),
    "bleu-eager": (6, "`seq2seq train` without CUDA graphs"),
}
"""minutes after which a block is stopped, and what it measures"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the blocks asked for. Returns 1 if one failed."""
    options = parse(arguments)
    if options.bundle:
        bundle.write(options.bundle, python_version=options.python)
        return 0
    if options.unpack:
        paths = [str(bundle.unpack(options.unpack)), os.environ.get("PYTHONPATH")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # of the processes that run the blocks
    with tempfile.TemporaryDirectory(prefix="gpu-") as folder:
        records = options.records or (Path(folder) if options.rehearse else SPEED)
        os.environ["TMPDIR"] = folder  # of the blocks
        return run_all(options.names, records.resolve(), "cpu" if options.rehearse else "cuda")


def record_path(records: Path, name: str) -> Path:
    """Where a block's record is written."""
    return records / f"gpu-{name}.json"


def run_all(names: Sequence[str], records: Path, device: str) -> int:
    """Run each block in a process of its own, so that none affects the next; `timeout` also ends what it started."""
    failed = []
    for name in names or [name for name in BLOCKS if not record_path(records, name).is_file()]:
        minutes, about = BLOCKS[name]
        print(f"\n=== {name}: {about}", flush=True)
        command = ["timeout", "--kill-after=20", f"{minutes}m", sys.executable, "-m", f"{__package__}.blocks"]
        if subprocess.run([*command, name, device, record_path(records, name)], cwd=ROOT).returncode:
            failed.append(name)
            if name == "check":
                break
    if failed:
        print(f"\nnot done: {', '.join(failed)}; run scripts/gpu {' '.join(failed)} again", file=sys.stderr)
    return 1 if failed else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    blocks = [f"{name}: {about} (at most {minutes} minutes)" for name, (minutes, about) in BLOCKS.items()]
    parser = argparse.ArgumentParser(prog="scripts/gpu", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.description = "\n".join(["The benchmarks that wait for a GPU, in blocks.", *blocks])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BLOCKS)}; none: all without a record")
    parser.add_argument("--records", type=Path, metavar="DIR", help="where records are written (docs/speed)")
    parser.add_argument("--rehearse", action="store_true", help="on the CPU at tiny sizes; leaves docs/ alone")
    parser.add_argument("--bundle", type=Path, metavar="DIR", help="collect what a bare machine lacks")
    parser.add_argument("--python", default="3.12", metavar="X.Y", help="the bare machine's Python (default 3.12)")
    parser.add_argument("--from", dest="unpack", type=Path, metavar="DIR", help="unpack a bundle first")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BLOCKS]:
        parser.error(f"{', '.join(unknown)}: no such block; there are {', '.join(BLOCKS)}")
    return options


if __name__ == "__main__":
    sys.exit(exit_code(main))
