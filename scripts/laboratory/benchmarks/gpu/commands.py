"""Blocks that time whole commands: raw text to BLEU, eight seeds at once, JoeyNMT."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from scripts.laboratory.benchmarks import peers
from scripts.laboratory.benchmarks.measure import CPU, toy_settings
from scripts.laboratory.benchmarks.time_to_bleu import summarize
from scripts.laboratory.harness.records import Record, ratio_fields, read_events, read_training, set_arguments
from scripts.laboratory.harness.runs import SEQ2SEQ, Run, train_all
from scripts.laboratory.harness.turns import ratios_to, take_turns
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_lines
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.text import multi30k
from seq2seq_attn.text.corpus import read_lines

CONFIG, TEST_SET, TARGET = "multi30k-fast", "test_2016_flickr", 40.0
FOLDER = Path(tempfile.gettempdir())
RUN_DIR = FOLDER / "run"
"""the run of `raw_text_to_bleu`, for the blocks after it"""
PEER_AMOUNT = peers.Amount(turns=1, window=40, sentences=0, decoding_turns=0, sizes=(512,))


def raw_text_to_bleu(device: torch.device) -> Record:
    """Seconds from raw text to the BLEU of a test set: prepare, train, translate, each a command of its own."""
    settings = _settings(device, "data")
    arguments = ["-c", CONFIG, *set_arguments(settings)]
    seconds = {
        "prepare": _timed(["prepare", *arguments]),
        "train": _timed(["train", *arguments, "--run-dir", str(RUN_DIR)]),
    }
    seconds["translate"], [bleu] = _translate([RUN_DIR], device)
    if device != CPU and bleu < TARGET:
        raise UserError(f"BLEU {bleu:.1f} on {TEST_SET}; expected at least {TARGET:g}")
    course = summarize(read_events(RUN_DIR), [35.0, TARGET])
    return {"config": CONFIG, "seconds": seconds, "total_s": sum(seconds.values()), "bleu": bleu, **course}


def eight_seeds(device: torch.device) -> Record:
    """Seconds from raw text to eight trained models and their scores: a process for each model, all at once."""
    folder, number = FOLDER / "seeds", 8 if device != CPU else 2
    runs = [
        Run(folder / f"seed-{seed}", (CONFIG,), tuple(_settings(device, "data of seeds")), seed)
        for seed in range(1, number + 1)
    ]
    began_at = time.monotonic()
    train_all(runs, jobs=number)
    seconds = {"prepare and train": time.monotonic() - began_at}
    seconds["translate"], bleu = _translate([run.path for run in runs], device)
    training_s = [60 * read_training(run.path)["minutes"] for run in runs]
    return {"config": CONFIG, "seconds": seconds, "total_s": sum(seconds.values()), "bleu": bleu, "train_s": training_s}


def trained_run() -> Path:
    """A run that a block before this has trained.

    Raises:
        UserError: there is none.
    """
    runs = [path for path in (RUN_DIR, FOLDER / "seeds" / "seed-1") if (path / "model.safetensors").is_file()]
    if not runs:
        raise UserError("no trained run here; name the block bleu or seeds first")
    return runs[0]


def against_joeynmt(device: torch.device) -> Record:
    """Target tokens per second that JoeyNMT and ours log, at equal sizes, over their last updates."""
    is_toy = device == CPU
    folder = FOLDER / "peers"
    folder.mkdir(exist_ok=True)
    toy = [one for one in toy_settings(folder / "toy") if one.startswith("data.")] if is_toy else []
    peers.write_data(folder, load_config(["multi30k"], toy), 8, "valid")
    amount = PEER_AMOUNT._replace(turns=1, window=1, sizes=(16,)) if is_toy else PEER_AMOUNT
    ours = [*set_arguments([*toy, *([] if is_toy else ["train.cuda_graphs=true"])]), "--device", device.type]
    precisions = ["fp32"] if is_toy else ["fp32", "bf16"]
    entrants = [peers.Competitor(f"ours, {name}", peers.OURS, Path(sys.executable), ours) for name in precisions]
    if importlib.util.find_spec("joeynmt"):
        name = "joeynmt 2.3.0"
        entrants = [peers.Competitor(name, peers.PEERS[name], Path(sys.executable)), *entrants]
    elif not is_toy:
        raise UserError("joeynmt is not installed here; scripts/gpu --bundle collects it")
    size, window = amount.sizes[0], amount.window
    task = {
        "folder": folder,
        "is_toy": is_toy,
        "use_cuda": str(not is_toy).lower(),
        "learning_rate": "1.0e-3",
        "num_sentences": 0,
    }
    task |= {"hidden_size": size, "half_size": size // 2, "steps": peers.NUM_STEPS, "beam_size": 1, "topk": 1}
    for entrant in entrants:  # ours records its graphs in the first updates
        long = 1 if is_toy or entrant.name.startswith("joeynmt") else 8
        entrant.task = {**task, "updates": 3 * long * window, "window": long * window}
    take_turns(entrants, amount.turns)
    rows = [
        {"contestant": one.name, "tokens_per_s": one.speed, "speeds": one.speeds, "parameters": one.num_parameters}
        | ratio_fields(ratios_to(one, entrants[:1]))
        for one in entrants
    ]
    return {"hidden_size": size, "batch_size": 64, "rows": rows}


def _settings(device: torch.device, data: str) -> list[str]:
    """Settings that prepare the corpus from raw text, in a folder of that name."""
    if device == CPU:
        return [*toy_settings(FOLDER / "toy"), "train.max_epochs=1"]
    raw = multi30k.fetch(load_config(["multi30k"]).data.data_dir).resolve()
    return [
        f"data.source_dir={raw}",
        f"data.data_dir={FOLDER / data}",
        "train.device=cuda",
        "train.cuda_graphs=true",
    ]


def _timed(*commands: Sequence[str]) -> float:
    """The seconds of some commands of `seq2seq`, all at once."""
    began_at = time.monotonic()
    started = [subprocess.Popen([*SEQ2SEQ, *arguments], stdout=subprocess.DEVNULL) for arguments in commands]
    codes = [process.wait() for process in started]
    if any(codes):
        raise UserError(f"seq2seq {' '.join(commands[0])}: failed")
    return time.monotonic() - began_at


def _translate(runs: Sequence[Path], device: torch.device) -> tuple[float, list[float]]:
    """The seconds of `seq2seq translate` for a test set by all runs at once, and the BLEU of each."""
    split = "valid" if device == CPU else TEST_SET
    sources, references = prepare_corpus(load_config([str(runs[0] / "config.yaml")])).text(split)
    write_lines(FOLDER / "sources", sources)
    outputs = [FOLDER / f"translations-{number}" for number in range(len(runs))]
    common = ["translate", "-i", str(FOLDER / "sources"), "--device", device.type, "--batch-size", "256"]
    seconds = _timed(*([*common, "--run", str(run), "-o", str(out)] for run, out in zip(runs, outputs, strict=True)))
    measure = Measure("bleu", references)
    return seconds, [measure.statistics(read_lines(output)).score().score for output in outputs]
