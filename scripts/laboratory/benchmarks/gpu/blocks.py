"""The measurements of the blocks, on a GPU, or on the CPU at tiny sizes.

python -m scripts.laboratory.benchmarks.gpu.blocks NAME cuda|cpu RECORD SECONDS
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch

from scripts.laboratory.benchmarks import search, train, work
from scripts.laboratory.benchmarks.gpu import batched, commands, profile
from scripts.laboratory.benchmarks.gpu.bundle import ABOUT
from scripts.laboratory.benchmarks.measure import CPU, publish, toy_settings
from scripts.laboratory.harness.records import Record, describe, exit_code
from scripts.laboratory.harness.turns import end_turns_after
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json
from seq2seq_attn.runtime.precision import Precision

TOLERANCE: dict[Precision, float] = {"fp32": 1e-3, "bf16": 2e-2}
"""relative difference of losses that another order of summation, or bf16's 8-bit mantissa, explains"""
TRAINED = train.Amount(batches=6, rounds=6, warm_up_rounds=3)  # a graph is recorded when a shape comes twice
TRANSLATED = search.Amount(turns=4, batch_size=512, sentences=1024, single_sentences=20)


def main(arguments: Sequence[str]) -> None:
    """Measure a block and write its record. Turns end after four fifths of the time.

    Raises:
        UserError: there is no such device, or losses differ, or a command or tests fail.
    """
    name, device, path, seconds = arguments
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("no CUDA device here; try the blocks on the CPU with scripts/gpu --rehearse")
    end_turns_after(0.8 * float(seconds))
    environment = describe("gpu", device) | {"command": ["gpu", name]}
    if ABOUT.is_file():  # a copy of a checkout's files: the bundle knows its commit
        environment["git"] = read_json(ABOUT)["git"]
    publish({**RUN[name](torch.device(device)), "environment": environment}, Path(path))


def build_config(name: str, device: torch.device, *settings: str) -> Config:
    """A configuration on Multi30k's tokens; on the CPU on a toy corpus, with tiny layers."""
    toy = toy_settings(Path(tempfile.gettempdir()) / "gpu-rehearsal-toy") if device == CPU else []
    config = load_config([name], [*toy, *settings])
    config.data = load_config(["multi30k"], toy).data
    return config


def check(device: torch.device) -> Record:
    """Losses of three updates without dropout: on the CPU, eager and with CUDA graphs."""
    config = build_config("multi30k", device, *(f"model.dropout.{x}=0" for x in ("embedding", "encoder", "readout")))
    batches, sizes = work.make_batches(config, 1)
    losses, worst = {}, {}
    ways = {"cpu": (CPU, False), "eager": (device, False), "graphs": (device, True)}
    for precision, tolerance in TOLERANCE.items():
        found = {}
        for name, (where, cuda_graphs) in ways.items():
            on_cpu: Precision = "fp32" if where == CPU else precision  # emulated bf16 takes minutes
            update = work.our_update(work.our_updater(config, sizes, on_cpu, where, cuda_graphs=cuda_graphs), 1.0)
            found[name] = [update(batches[work.BUCKETED][0]) for _ in range(3)]
        losses[precision] = found
        worst[precision] = max(
            abs(a / b - 1.0) for name in found for a, b in zip(found[name], found["cpu"], strict=True)
        )
        if worst[precision] > tolerance:
            raise UserError(
                f"{precision} losses differ from the CPU's by {worst[precision]:.1e}; expected at most {tolerance:g}:"
                f" {found}"
            )
    return {"losses": losses, "differences": worst}


def training(device: torch.device, *, name: str) -> Record:
    """Target tokens per second at the sizes of a configuration."""
    amount = train.QUICK if device == CPU else TRAINED
    return train.measure(build_config(name, device), amount, device, cuda_graphs=True)


def translation(device: torch.device) -> Record:
    """Sentences per second of random weights, in paired turns."""
    configs = {name: build_config(name, device).model for name in search.PREPARED_SIZES}
    sizes = dict.fromkeys(configs, work.Sizes(40, 40)) if device == CPU else search.PREPARED_SIZES
    amount = search.QUICK if device == CPU else TRANSLATED
    return search.measure(configs, sizes, amount, device)


def text(device: torch.device) -> Record:
    """Sentences per second of a trained run, from text to text."""
    return {"rows": search.time_batches(commands.trained_run(), 1 if device == CPU else 3, device)}


def tests(device: torch.device) -> Record:
    """The device tests, the golden loss curves and the contracts of variants, at the same time."""
    # warnings are shown, not errors: another torch on another machine deprecates other things
    command = [sys.executable, "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider"]
    side_by_side = ["-n", "8"] if importlib.util.find_spec("xdist") else []
    selections = [
        ["-m", "device", "tests/device"],
        ["-m", "device", "tests/golden"],
        ["tests/contract", "--device", "cuda", "--ignore=tests/contract/test_configs.py", *side_by_side],
    ]
    if device == CPU:
        selections = [["tests/golden", "-k", "stored and dot and not scaled"]]
    started = [subprocess.Popen([*command, *one], stdout=subprocess.PIPE, text=True) for one in selections]
    outputs = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise UserError("pytest:\n" + "\n".join(outputs))
    return {"summaries": [output.splitlines()[-1].strip("= ") for output in outputs]}


RUN: dict[str, Callable[[torch.device], Record]] = {
    "check": check,
    "training": partial(training, name="tutorial"),
    "training-multi30k": partial(training, name="multi30k"),
    "bleu": commands.raw_text_to_bleu,
    "translation": translation,
    "profile": lambda device: profile.measure(build_config("multi30k", device), device),
    "batched": lambda device: batched.measure(build_config("multi30k-fast", device), device),
    "peers": commands.against_joeynmt,
    "tests": tests,
    "seeds": commands.eight_seeds,
    "text": text,
}


if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(sys.argv[1:])))
