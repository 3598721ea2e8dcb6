"""The command line of scripts/gpu. Needs the standard library only: on a bare machine the rest
comes with `--from`."""

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
    "check": (
        2,
        "losses of eager and graphed updates against the CPU's; nothing else runs if they differ",
    ),
    "training": (
        4,
        "training speed at the tutorial's function, also with CUDA graphs, against its own loop",
    ),
    "training-multi30k": (3, "training speed at the sizes of `multi30k`, also with CUDA graphs"),
    "bleu": (
        3,
        "raw text to the BLEU of test_2016_flickr, by the commands prepare, train and translate",
    ),
    "peers": (4, "training speed of JoeyNMT against ours, by their own commands"),
    "text": (3, "translation speed of the run of bleu, from text to text"),
}
"""the minutes that a block may take, and what it measures"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the blocks asked for. Returns 1 if one failed."""
    parser = argparse.ArgumentParser(
        prog="scripts/gpu", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    blocks = [f"{name}: {about}" for name, (_, about) in BLOCKS.items()]
    parser.description = "\n".join(["The benchmarks that need a GPU, in blocks.", *blocks])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join(BLOCKS)}; none: all without a record",
    )
    parser.add_argument(
        "--records", type=Path, metavar="DIR", help="where records are written (docs/speed)"
    )
    parser.add_argument(
        "--rehearse", action="store_true", help="on the CPU at tiny sizes; leaves docs/ alone"
    )
    parser.add_argument(
        "--bundle", type=Path, metavar="DIR", help="collect what a bare machine lacks"
    )
    parser.add_argument(
        "--python", default="3.12", metavar="X.Y", help="the bare machine's Python (default 3.12)"
    )
    parser.add_argument(
        "--from", dest="unpack", type=Path, metavar="DIR", help="unpack a bundle first"
    )
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BLOCKS]:
        parser.error(f"{', '.join(unknown)}: no such block; there are {', '.join(BLOCKS)}")
    if options.bundle:
        bundle.write(options.bundle, python_version=options.python)
        return 0
    if options.unpack:
        paths = [str(bundle.unpack(options.unpack)), os.environ.get("PYTHONPATH")]
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, paths)
        )  # of the processes that run the blocks
    with tempfile.TemporaryDirectory(prefix="gpu-") as folder:
        records = options.records or (Path(folder) if options.rehearse else SPEED)
        os.environ["TMPDIR"] = folder  # of the blocks
        device = "cpu" if options.rehearse else "cuda"
        return run_all(options.names, records.resolve(), device)


def run_all(names: Sequence[str], records: Path, device: str) -> int:
    """Run each block in a process of its own, so that none affects the next; `timeout` also ends
    what it started."""
    failed = []
    paths = {name: records / f"gpu-{name}.json" for name in BLOCKS}
    names = names or [name for name in BLOCKS if not paths[name].is_file()]
    for name in names:
        minutes, about = BLOCKS[name]
        limit = str(60 * minutes)
        print(f"\n=== {name}: {about} (at most {minutes} minutes)", flush=True)
        block = ["-m", f"{__package__}.blocks", name, device, str(paths[name]), limit]
        command = ["timeout", "--kill-after=5", limit, sys.executable, *block]
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(name)
            if name == "check":
                break
    if failed:
        print(
            f"\nnot done: {', '.join(failed)}; run scripts/gpu {' '.join(failed)} again",
            file=sys.stderr,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
