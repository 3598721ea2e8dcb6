"""The blocks' measurements. Each writes its record and returns whether it came to its end."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from scripts.laboratory.benchmarks import search, work
from scripts.laboratory.benchmarks.gpu import bounds
from scripts.laboratory.benchmarks.gpu.plan import Budget, Settings
from scripts.laboratory.benchmarks.measure import CPU, publish, toy_settings
from scripts.laboratory.benchmarks.time_to_bleu import summarize, train_until
from scripts.laboratory.harness.records import Record, ratio_fields, read_events, set_arguments
from scripts.laboratory.harness.turns import Contestant, ratios_to, take_turns
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.runtime.precision import Precision
from seq2seq_attn.train.checkpoint import has_state

TOLERANCE = 1e-3
"""relative difference of losses that a device's other order of summation explains"""
PRECISIONS = ("fp32", "tf32", "bf16")
TEACHER_FORCING = {"tutorial": 0.5, "multi30k": 1.0}
NUM_BATCHES, WARM_UP_ROUNDS, ROUNDS = 8, 3, 10  # a graph is recorded when a shape comes for the second time
TRANSLATED = search.Amount(turns=20, batch_size=256, sentences=1024)
TARGETS = [35.0, 40.0]
TOY_TARGETS, TOY_EPOCHS = [0.0, 1000.0], 2
PROFILING_S = 5.0
"""left of a block's time, at least, for each profile"""


def build_config(name: str, settings: Settings, *more: str) -> Config:
    """A configuration on Multi30k's tokens, for a rehearsal on a toy corpus and with tiny layers."""
    toy = toy_settings(settings.work / "toy") if settings.is_rehearsal else []
    config = load_config([name], [*toy, *more])
    config.data = load_config(["multi30k"], toy).data
    return config


def finish(name: str, settings: Settings, values: Record, *, is_finished: bool = True) -> bool:
    """Write the record and print it."""
    settings.write_record(name, values, is_finished=is_finished)
    publish(values, None)
    return is_finished


def check(settings: Settings, budget: Budget) -> bool:
    """Losses of three updates without dropout: on the CPU, eager and with CUDA graphs."""
    config = build_config("multi30k", settings, *(f"model.dropout.{x}=0" for x in ("embedding", "encoder", "readout")))
    batches, sizes = work.make_batches(config, 1)
    device = torch.device(settings.device)
    losses = {}
    for name, where, cuda_graphs in (("cpu", CPU, False), ("eager", device, False), ("graphs", device, True)):
        update = work.our_update(work.our_updater(config, sizes, "fp32", where, cuda_graphs=cuda_graphs), 1.0)
        losses[name] = [update(batches[work.BUCKETED][0]) for _ in range(3)]
    worst = max(abs(a / b - 1.0) for name in losses for a, b in zip(losses[name], losses["cpu"], strict=True))
    return finish("check", settings, {"losses": losses, "difference": worst}, is_finished=worst < TOLERANCE)


def training(settings: Settings, budget: Budget) -> bool:
    """Target tokens per second, at the tutorial's function and at the sizes of `multi30k`, each in half of the time."""
    peaks = bounds.peaks(torch.device(settings.device), is_tiny=settings.is_rehearsal)
    functions: list[Record] = []
    for name, share in (("tutorial", 0.5), ("multi30k", 1.0)):
        functions.append(measure_training(build_config(name, settings), settings, peaks, budget.share(share)))
        settings.write_record("training", {"peaks": peaks, "functions": functions}, is_finished=False)
    return finish("training", settings, {"peaks": peaks, "functions": functions})


def measure_training(config: Config, settings: Settings, peaks: dict[str, float], budget: Budget) -> Record:
    """Every way to train a configuration's function, in paired turns over the same batches."""
    device, is_tutorial = torch.device(settings.device), config.name == "tutorial"
    num_batches, warm_up, rounds = (1, 1, 1) if settings.is_rehearsal else (NUM_BATCHES, WARM_UP_ROUNDS, ROUNDS)
    batches, sizes = work.make_batches(config, num_batches)
    flops, ratio = work.flops_per_token(config.model, sizes, batches[work.BUCKETED]), TEACHER_FORCING[config.name]
    contestants = [
        *(work.tutorial_contestants(config, sizes, batches, ratio, device) if is_tutorial else []),
        *our_contestants(config, sizes, batches[work.BUCKETED], ratio, device),
    ]
    until = budget.share(0.8)  # a fifth of the time is for profiling
    take_turns(contestants, rounds * num_batches, warm_up=warm_up * num_batches, is_over=lambda: until.left_s() == 0.0)
    num_turns = len(contestants[0].speeds)
    rows = []
    for contestant in contestants:
        peak = peaks.get(contestant.name.rpartition(", ")[2], peaks["fp32"])
        speed = {"tokens_per_s": contestant.speed, "flop_share": contestant.speed * flops / peak}
        ratios = ratio_fields(ratios_to(contestant, contestants[: 2 if is_tutorial else 1]))
        rows.append({"name": contestant.name, **speed, **ratios})
    add_profiles(rows, contestants, device, budget)
    differences = {}
    for name in PRECISIONS if is_tutorial else ():
        with bounds.matmul_precision(name):
            differences[name] = work.gradient_difference(config, sizes, autocast_precision(name), device)
    about = {"config": config.name, "teacher_forcing": ratio, "batch_size": config.train.batch.size}
    about |= {"turns": num_turns, "flops_per_token": flops, "sizes": sizes._asdict()}
    return {**about, "rows": rows, "differences": differences}


def our_contestants(
    config: Config, sizes: work.Sizes, batches: list[Batch], ratio: float, device: torch.device
) -> list[Contestant]:
    """Ours, eager and with graphs, in each precision."""

    def contestant(way: str, name: str) -> Contestant:
        updater = work.our_updater(config, sizes, autocast_precision(name), device, cuda_graphs=way == "graphs")
        update = work.updates_over(batches, work.our_update(updater, ratio))

        def in_precision(number: int) -> float:
            with bounds.matmul_precision(name):
                return update(number)

        return Contestant(f"ours, {way}, {name}", in_precision, device=device)

    return [contestant(way, name) for way in ("eager", "graphs") for name in PRECISIONS]


def autocast_precision(name: str) -> Precision:
    """The precision that updates run in; TF32 is a kind of float32 product."""
    return "bf16" if name == "bf16" else "fp32"


def add_profiles(rows: list[Record], contestants: list[Contestant], device: torch.device, budget: Budget) -> None:
    """Add to each row where the time of a turn goes, and the bound that follows, while there is time."""
    for row, contestant in zip(rows, contestants, strict=True):
        has_time = budget.left_s() > PROFILING_S
        row["profile"] = bounds.profile(partial(contestant.turn, 0), device) if has_time else None
        row["bound"] = bounds.explain(row["profile"], row.get("flop_share", 0.0))


def translation(settings: Settings, budget: Budget) -> bool:
    """Sentences per second in paired turns while there is time, then where the time of a turn goes."""
    device, turns = torch.device(settings.device), budget.share(0.7)
    configs = {name: build_config(name, settings).model for name in search.PREPARED_SIZES}
    sizes = dict.fromkeys(configs, work.Sizes(40, 40)) if settings.is_rehearsal else search.PREPARED_SIZES
    amount = search.QUICK if settings.is_rehearsal else TRANSLATED
    found, contestants = search.measure(configs, sizes, amount, device, is_over=lambda: turns.left_s() == 0.0)
    about = {"batch_size": amount.batch_size, "sentences": amount.sentences, "turns": len(contestants[0].speeds)}
    values = {**about, **{key: found[key] for key in ("steps", "rows", "differences")}}
    settings.write_record("translation", values, is_finished=False)
    with torch.inference_mode():
        add_profiles(values["rows"], contestants, device, budget)
    return finish("translation", settings, values)


def tests(settings: Settings, budget: Budget) -> bool:
    """The device tests and the golden loss curves, by pytest."""
    # warnings are shown, not errors: another torch on another machine deprecates other things
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-W", "default", "-p", "no:cacheprovider"]
    on_cpu = ["tests/golden", "-k", "stored and dot and not scaled"]
    command += on_cpu if settings.is_rehearsal else ["-m", "device", "tests/device", "tests/golden"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=budget.left_s())
    except subprocess.TimeoutExpired:
        print("the tests took longer than the block may; raise --minutes", file=sys.stderr)
        return False
    output_tail = (done.stdout + done.stderr)[-3_000:]
    values = {**read_summary(done.stdout), "output_tail": output_tail}
    return finish("tests", settings, values, is_finished=values["passed"] > 0 and done.returncode == 0)


def read_summary(output: str) -> Record:
    """The counts of pytest's last line, and the failed tests with the first line of their messages (`-rf`)."""
    failed = [{"name": name, "message": text} for name, text in re.findall(r"^FAILED (.+?)(?: - (.*))?$", output, re.M)]
    counts = {name: int(count) for count, name in re.findall(r"(\d+) (passed|skipped)", output.splitlines()[-1])}
    return {"passed": 0, "skipped": 0, **counts, "failed": failed}


def bleu(settings: Settings, budget: Budget, *, name: str) -> bool:
    """`seq2seq train` until the validation set is translated at given BLEU.

    A block that runs out of time stops the training run, which saves its state; the same command goes on with it.
    """
    targets = TOY_TARGETS if settings.is_rehearsal else TARGETS
    run_dir = settings.work / name
    command = train_command(settings, run_dir, cuda_graphs=name == "bleu")
    has_ended = train_until(command, run_dir, targets[-1], left_s=budget.left_s)
    events = read_events(run_dir)
    found = summarize(events, targets)
    validation_s = sum(event["seconds"] for event in events if event["event"] == "validation")
    elapsed_s = events[-1]["elapsed_s"] if events else 0.0
    values = {"config": "multi30k", "cuda_graphs": name == "bleu", **found}
    values |= {"validation_share": validation_s / elapsed_s if elapsed_s else 0.0, "minutes": elapsed_s / 60}
    values |= {"utilization": None, "peak_mib": None}  # not measured
    is_reached = found["minutes_to_bleu"][f"{targets[-1]:g}"] is not None
    return finish(name, settings, values, is_finished=has_ended or is_reached)


def train_command(settings: Settings, run_dir: Path, *, cuda_graphs: bool) -> list[str]:
    """Go on where a state was saved; otherwise begin, without what a killed process left behind."""
    command = [sys.executable, "-m", "seq2seq_attn", "train", "--run-dir", str(run_dir)]
    if has_state(run_dir / "last") and not (run_dir / "finished.json").is_file():
        return [*command, "--resume"]
    shutil.rmtree(run_dir, ignore_errors=True)
    overrides = [f"train.device={settings.device}", f"train.cuda_graphs={str(cuda_graphs).lower()}"]
    if settings.is_rehearsal:
        overrides += [
            *toy_settings(settings.work / "toy"),
            f"train.max_epochs={TOY_EPOCHS}",
            "train.log_every_updates=2",
        ]
    return [*command, "-c", "multi30k", *set_arguments(overrides)]


RUN: dict[str, Callable[[Settings, Budget], bool]] = {
    "check": check,
    "training": training,
    "bleu": partial(bleu, name="bleu"),
    "translation": translation,
    "tests": tests,
    "bleu-eager": partial(bleu, name="bleu-eager"),
}
