"""The measurements of the blocks, on a GPU, or on the CPU at tiny sizes.

python -m scripts.laboratory.benchmarks.gpu.blocks NAME cuda|cpu RECORD
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch

from scripts.laboratory.benchmarks import search, time_to_bleu, train, work
from scripts.laboratory.benchmarks.gpu.bundle import ABOUT
from scripts.laboratory.benchmarks.measure import CPU, publish, toy_settings
from scripts.laboratory.harness.records import Record, describe, exit_code
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json

TOLERANCE = 1e-3
"""relative difference of losses that a device's other order of summation explains"""
TRAINED = train.Amount(rounds=5, warm_up_rounds=3)  # a graph is recorded when a shape comes for the second time
TRANSLATED = search.Amount(turns=8, batch_size=256, sentences=1024)


def main(arguments: Sequence[str]) -> None:
    """Measure a block and write its record.

    Raises:
        UserError: there is no such device, or losses differ, or tests fail.
    """
    name, device, path = arguments
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("no CUDA device here; try the blocks on the CPU with scripts/gpu --rehearse")
    environment = describe("gpu", device) | {"command": ["gpu", name]}
    if environment["git"] is None and ABOUT.is_file():  # no checkout, but a copy of its files
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
    losses = {}
    for name, where, cuda_graphs in (("cpu", CPU, False), ("eager", device, False), ("graphs", device, True)):
        update = work.our_update(work.our_updater(config, sizes, "fp32", where, cuda_graphs=cuda_graphs), 1.0)
        losses[name] = [update(batches[work.BUCKETED][0]) for _ in range(3)]
    worst = max(abs(a / b - 1.0) for name in losses for a, b in zip(losses[name], losses["cpu"], strict=True))
    if worst > TOLERANCE:
        raise UserError(f"losses differ from the CPU's by {worst:.1e}; at most {TOLERANCE:g} is rounding: {losses}")
    return {"losses": losses, "difference": worst}


def training(device: torch.device, *, name: str) -> Record:
    """Target tokens per second at the sizes of a configuration."""
    amount = train.QUICK if device == CPU else TRAINED
    return train.measure(build_config(name, device), amount, device, cuda_graphs=True)


def translation(device: torch.device) -> Record:
    """Sentences per second in paired turns."""
    configs = {name: build_config(name, device).model for name in search.PREPARED_SIZES}
    sizes = dict.fromkeys(configs, work.Sizes(40, 40)) if device == CPU else search.PREPARED_SIZES
    return search.measure(configs, sizes, search.QUICK if device == CPU else TRANSLATED, device)


def tests(device: torch.device) -> Record:
    """The device tests and the golden loss curves, by pytest."""
    # warnings are shown, not errors: another torch on another machine deprecates other things
    command = [sys.executable, "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider"]
    on_cpu = ["tests/golden", "-k", "stored and dot and not scaled"]
    command += on_cpu if device == CPU else ["-m", "device", "tests/device", "tests/golden"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise UserError(f"pytest: exit code {done.returncode}\n{done.stdout[-8_000:]}")
    return {"summary": done.stdout.splitlines()[-1].strip("= ")}


def bleu(device: torch.device, *, cuda_graphs: bool) -> Record:
    """`seq2seq train` until the validation set is translated at given BLEU."""
    settings = [f"train.device={device}", f"train.cuda_graphs={str(cuda_graphs).lower()}"]
    is_toy = device == CPU
    return time_to_bleu.measure("multi30k", [0.0] if is_toy else [35.0, 40.0], settings, is_toy=is_toy)


RUN: dict[str, Callable[[torch.device], Record]] = {
    "check": check,
    "training": partial(training, name="tutorial"),
    "training-multi30k": partial(training, name="multi30k"),
    "bleu": partial(bleu, cuda_graphs=True),
    "translation": translation,
    "tests": tests,
    "bleu-eager": partial(bleu, cuda_graphs=False),
}


if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(sys.argv[1:])))
