"""Profile an update and a search: the number of kernels, how long they keep the GPU busy, and their
arithmetic."""

from collections.abc import Callable
from functools import partial

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from scripts.laboratory.benchmarks import search, train
from scripts.laboratory.benchmarks.measure import CPU
from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.turns import Contestant, take_turns
from seq2seq_attn.config import Config
from seq2seq_attn.runtime.device import Precision, tune_float32
from seq2seq_attn.search.steps import step_model


def measure(config: Config, device: torch.device) -> Record:
    """A row for an eager update, a graphed one, a greedy search and a beam search of 512 sentences;
    all in bf16. And the TFLOP/s of a large bf16 product of random numbers."""
    precision: Precision = "bf16" if device.type == "cuda" else "fp32"
    tune_float32(precision, device)
    batches, sizes = train.make_batches(config, 1)
    ways: dict[str, Callable[[], object]] = {}
    for name, graphs in (("eager update", False), ("update with CUDA graphs", True)):
        update = train.our_update(
            train.our_updater(config, sizes, precision, device, cuda_graphs=graphs), 1.0
        )
        ways[name] = partial(update, batches[train.BUCKETED][0])
    with torch.inference_mode():
        model = search.forced_model(config.model, sizes).to(device)
    sentences = search.random_sentences(512 if device != CPU else 4, sizes.num_source_ids)
    for name, beam_size in (("greedy search", 1), ("beam search", 5)):
        translate = search.searcher(step_model(model, precision), beam_size, len(sentences), device)
        ways[name] = partial(translate, sentences)
    size = 8192 if device.type == "cuda" else 256
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    seconds = median_seconds(lambda: left @ right, device)
    rows = [{"name": name, **profiled(run, device)} for name, run in ways.items()]
    return {"rows": rows, "peak_tflops": 2 * size**3 / seconds / 1e12}


def profiled(run: Callable[[], object], device: torch.device) -> Record:
    """Milliseconds and GFLOP; on a GPU also the kernels, how long they keep it busy, and which are
    the longest."""
    row: Record = {"ms": 1e3 * median_seconds(run, device)}
    with FlopCounterMode(display=False) as counter:
        run()
    row["gflop"] = counter.get_total_flops() / 1e9
    if device.type == "cuda":
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            run()
            torch.cuda.synchronize()
        kernels = [event for event in trace.events() if event.device_type == DeviceType.CUDA]
        row |= {
            "kernels": len(kernels),
            "busy_ms": sum(event.device_time for event in kernels) / 1e3,
        }
        by_name: dict[str, float] = {}
        for event in kernels:
            by_name[event.name[:60]] = by_name.get(event.name[:60], 0.0) + event.device_time / 1e3
        row["longest_ms"] = dict(sorted(by_name.items(), key=lambda item: -item[1])[:8])
    return row


def median_seconds(run: Callable[[], object], device: torch.device) -> float:
    """Of ten turns; three before them, in which memory is allocated and a graph recorded, are not
    counted."""

    def turn(_: int) -> float:
        run()
        return 1.0

    contestant = Contestant("", turn, device=device)
    take_turns([contestant], 10, warm_up=3)
    return 1.0 / contestant.speed
