"""The measurements of the blocks, on a GPU, or on the CPU at tiny sizes.

python -m scripts.laboratory.benchmarks.gpu.blocks NAME cuda|cpu RECORD SECONDS
"""

import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch

from scripts.laboratory.benchmarks import peers, search, train
from scripts.laboratory.benchmarks.gpu.bundle import ABOUT
from scripts.laboratory.benchmarks.measure import CPU, publish, toy_corpus, toy_settings
from scripts.laboratory.benchmarks.time_to_bleu import summarize
from scripts.laboratory.harness.records import (
    Record,
    describe,
    exit_code,
    read_events,
    set_arguments,
)
from scripts.laboratory.harness.runs import SEQ2SEQ
from scripts.laboratory.harness.turns import end_turns_after
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json, write_lines
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.run import Run
from seq2seq_attn.runtime.device import Precision
from seq2seq_attn.text import multi30k
from seq2seq_attn.text.lines import read_lines

FOLDER = Path(tempfile.gettempdir())
"""of all blocks of a call of scripts/gpu"""
CONFIG = "multi30k-fast"
TEST_SET = "test_2016_flickr"
TARGET = 40.0
"""the BLEU that `CONFIG` reaches at least"""
BATCH_SIZES = (64, 256, 1024)
"""sentences, of a translation from text to text"""
TOLERANCE: dict[Precision, float] = {"fp32": 1e-3, "bf16": 2e-2}
"""relative difference of losses that another order of summation, or bf16's 8-bit mantissa,
explains"""
TRAINED = train.Amount(
    batches=6, rounds=6, warm_up_rounds=3
)  # a graph is recorded when a shape comes twice


def main(arguments: Sequence[str]) -> None:
    """Measure a block and write its record. Turns end after four fifths of the time.

    Raises:
        UserError: there is no such device, or losses differ, or a command or tests fail.
    """
    name, device, path, seconds = arguments
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "no CUDA device here; try the blocks on the CPU with scripts/gpu --rehearse"
        )
    end_turns_after(0.8 * float(seconds))
    environment = describe("gpu", device) | {"command": ["gpu", name]}
    if ABOUT.is_file():  # a copy of a checkout's files: the bundle knows its commit
        environment["git"] = read_json(ABOUT)["git"]
    publish(RUN[name](torch.device(device)), Path(path), environment)


def build_config(name: str, device: torch.device, settings: Record | None = None) -> Config:
    """A configuration on Multi30k's tokens; on the CPU on a toy corpus, with tiny layers."""
    toy = toy_settings(FOLDER / "toy") if device == CPU else {}
    config = load_config([name], toy, settings or {})
    config.data = load_config(["multi30k"], toy).data
    return config


def check(device: torch.device) -> Record:
    """Losses of three updates without dropout: on the CPU, eager and with CUDA graphs."""
    no_dropout = {f"model.dropout.{place}": 0.0 for place in ("embedding", "encoder", "readout")}
    config = build_config("multi30k", device, no_dropout)
    batches, sizes = train.make_batches(config, 1)
    losses: dict[str, dict[str, list[float]]] = {}
    worst = {}
    ways = {"cpu": (CPU, False), "eager": (device, False), "graphs": (device, True)}
    for precision, tolerance in TOLERANCE.items():
        losses[precision] = {}
        for name, (where, cuda_graphs) in ways.items():
            used: Precision = "fp32" if where == CPU else precision  # emulated bf16 takes minutes
            update = train.our_update(
                train.our_updater(config, sizes, used, where, cuda_graphs=cuda_graphs), 1.0
            )
            losses[precision][name] = [update(batches[train.BUCKETED][0]) for _ in range(3)]
        differences = []
        for way in losses[precision].values():
            for loss, expected in zip(way, losses[precision]["cpu"], strict=True):
                differences.append(abs(loss / expected - 1.0))
        worst[precision] = max(differences)
        if worst[precision] > tolerance:
            raise UserError(
                f"{precision} losses: expected within {tolerance:g} of the CPU's, not "
                f"{losses[precision]}"
            )
    return {"losses": losses, "differences": worst}


def training(device: torch.device, *, name: str) -> Record:
    """Target tokens per second at the sizes of a configuration."""
    amount = train.QUICK if device == CPU else TRAINED
    return train.measure(build_config(name, device), amount, device, cuda_graphs=True)


def raw_text_to_bleu(device: torch.device) -> Record:
    """Seconds from raw text to the BLEU of a test set by the commands prepare, train and translate.

    Raises:
        UserError: a command failed, or the BLEU is below `TARGET` on a GPU.
    """
    folder = FOLDER / "bleu"
    run = folder / "run"
    if device == CPU:
        settings = toy_settings(folder / "toy") | {"train.max_epochs": 1}
    else:
        raw = multi30k.fetch(load_config(["multi30k"]).data.data_dir).resolve()
        settings = {"data.source_dir": str(raw), "data.data_dir": str(folder / "data")}
        settings |= {"train.device": "cuda", "train.cuda_graphs": True}
    arguments = ["-c", CONFIG, *set_arguments(settings)]
    seconds = {
        "prepare": timed("prepare", *arguments),
        "train": timed("train", *arguments, "--run-dir", str(run)),
    }
    text = Run(run).read_set("valid" if device == CPU else TEST_SET)
    write_lines(folder / "sources", text.source)
    files = ["--run", str(run), "-i", str(folder / "sources"), "-o", str(folder / "output")]
    options = ["--device", device.type, "--batch-size", "256"]
    seconds["translate"] = timed("translate", *files, *options)
    scored = Measure("bleu", text.references).statistics(read_lines(folder / "output"))
    bleu = scored.score().score
    if device != CPU and bleu < TARGET:
        raise UserError(f"BLEU {bleu:.1f} on {TEST_SET}; expected at least {TARGET:g}")
    record = {"config": CONFIG, "seconds": seconds, "total_s": sum(seconds.values())}
    return {**record, "bleu": bleu, **summarize(read_events(run), [35.0, TARGET])}


def timed(*arguments: str) -> float:
    """The seconds of a command of `seq2seq`."""
    began_at = time.monotonic()
    if subprocess.run([*SEQ2SEQ, *arguments], stdout=subprocess.DEVNULL).returncode:
        raise UserError(f"seq2seq {' '.join(arguments)}: failed")
    return time.monotonic() - began_at


def text(device: torch.device) -> Record:
    """Sentences per second of a trained run of `raw_text_to_bleu`, from text to text.

    Raises:
        UserError: there is none.
    """
    run = FOLDER / "bleu" / "run"
    if not run.exists():
        raise UserError("no trained run here; name the block bleu first")
    if device == CPU:
        return {"rows": search.measure(run, "valid", 1, [4], device)}
    return {"rows": search.measure(run, TEST_SET, 3, BATCH_SIZES, device)}


def against_joeynmt(device: torch.device) -> Record:
    """Target tokens per second that JoeyNMT and ours log, at equal sizes, over the last third of
    their updates.

    Raises:
        UserError: JoeyNMT is not installed on the GPU's machine.
    """
    is_toy = device == CPU
    folder = FOLDER / "peers"
    python = Path(sys.executable)
    folder.mkdir(exist_ok=True)
    toy = toy_corpus(folder / "toy") if is_toy else {}
    peers.write_data(folder, load_config(["multi30k"], toy), 8, "valid")
    ours = [*set_arguments(toy or {"train.cuda_graphs": True}), "--device", device.type]
    competitors = [  # with more updates, as a graph is recorded when a shape comes twice
        peers.Competitor(f"ours, {name}", peers.OURS, python, ours, num_windows=1 if is_toy else 8)
        for name in (["fp32"] if is_toy else ["fp32", "bf16"])
    ]
    if importlib.util.find_spec("joeynmt"):
        competitors.append(peers.Competitor("joeynmt 2.3.0", peers.PEERS["joeynmt 2.3.0"], python))
    elif not is_toy:
        raise UserError("joeynmt is not installed here; scripts/gpu --bundle collects it")
    size, window = (16, 1) if is_toy else (512, 40)
    task = {**peers.TASK, "folder": folder, "is_toy": is_toy, "use_cuda": str(not is_toy).lower()}
    task |= {"hidden_size": size, "updates": 3 * window, "window": window}
    rows = list(peers.compete("training", competitors, task, 1 if is_toy else 3))
    return {"hidden_size": size, "batch_size": 64, "rows": rows}


RUN: dict[str, Callable[[torch.device], Record]] = {
    "check": check,
    "training": partial(training, name="tutorial"),
    "training-multi30k": partial(training, name="multi30k"),
    "bleu": raw_text_to_bleu,
    "peers": against_joeynmt,
    "text": text,
}


if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(sys.argv[1:])))
