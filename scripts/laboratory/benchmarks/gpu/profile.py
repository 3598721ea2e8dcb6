"""Profile an update and a search: the number of kernels, how long they keep the GPU busy, and their arithmetic."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from scripts.laboratory.benchmarks import search, work
from scripts.laboratory.benchmarks.measure import CPU
from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.turns import synchronize
from seq2seq_attn.config import Config
from seq2seq_attn.runtime.precision import Precision, allow_tf32
from seq2seq_attn.search.steps import step_model

REPEATS = 10


def measure(config: Config, device: torch.device) -> Record:
    """A row for an eager update, a graphed one, a greedy search and a beam search of 512 sentences; all in bf16."""
    precision: Precision = "bf16" if device.type == "cuda" else "fp32"
    allow_tf32(precision, device)
    batches, sizes = work.make_batches(config, 1)
    batch = batches[work.BUCKETED][0]
    ways: dict[str, Callable[[], object]] = {}
    for name, graphs in (("eager update", False), ("update with CUDA graphs", True)):
        update = work.our_update(work.our_updater(config, sizes, precision, device, cuda_graphs=graphs), 1.0)
        ways[name] = partial(update, batch)
    with torch.inference_mode():
        model = search.forced_model(config.model, sizes).to(device)
    sentences = search.random_sentences(512 if device != CPU else 4, sizes.num_source_ids)
    for name, beam_size in (("greedy search", 1), ("beam search", 5)):
        translate = search.searcher(step_model(model, precision), beam_size, len(sentences), device)
        ways[name] = partial(translate, sentences)
    return {"rows": [_row(name, way, device) for name, way in ways.items()], "peak_tflops": _peak(device)}


def _row(name: str, run: Callable[[], object], device: torch.device) -> Record:
    for _ in range(3):
        run()
    seconds = [_timed(run, device) for _ in range(REPEATS)]
    row = {"name": name, "ms": 1e3 * statistics.median(seconds)}
    with FlopCounterMode(display=False) as counter:
        run()
    row["gflop"] = counter.get_total_flops() / 1e9
    if device.type == "cuda":
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            run()
            torch.cuda.synchronize()
        kernels = [event for event in profiled.events() if event.device_type == DeviceType.CUDA]
        row |= {"kernels": len(kernels), "busy_ms": sum(event.device_time for event in kernels) / 1e3}
        longest: dict[str, float] = {}
        for event in kernels:
            longest[event.name[:60]] = longest.get(event.name[:60], 0.0) + event.device_time / 1e3
        row["longest_ms"] = dict(sorted(longest.items(), key=lambda item: -item[1])[:8])
    return row


def _timed(run: Callable[[], object], device: torch.device) -> float:
    synchronize(device)
    began_at = time.perf_counter()
    run()
    synchronize(device)
    return time.perf_counter() - began_at


def _peak(device: torch.device) -> float:
    """TFLOP/s of a large bf16 product of random numbers."""
    size = 8192 if device.type == "cuda" else 256
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    left @ right
    return 2 * size**3 / statistics.median(_timed(lambda: left @ right, device) for _ in range(5)) / 1e12
