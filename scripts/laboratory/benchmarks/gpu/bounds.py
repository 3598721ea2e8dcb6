"""The bounds of a figure: peaks of the device, and where the time of a piece of work goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.turns import synchronize

REPEATS = 5
LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemsetAsync")
BUSY_ENOUGH = 0.75
"""A GPU that is busy for a smaller share of the time is waiting for launches."""
SHORT_KERNEL_S = 10e-6
"""Kernels shorter than this on average are too small to fill a GPU: starting one takes a few microseconds."""


@contextmanager
def matmul_precision(name: str) -> Iterator[None]:
    """Compute products in float32 proper inside the block (`fp32`), or allow TF32 on a GPU (`tf32`; and `bf16`, since
    training in bf16 allows TF32 for the products that stay in float32)."""
    former = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if name == "fp32" else "high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(former)


def seconds_each(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Seconds of one call, many of them in a row: a single one would be mostly the wait for it."""
    work()
    synchronize(device)
    began_at = time.perf_counter()
    for _ in range(repeats):
        work()
    synchronize(device)
    return (time.perf_counter() - began_at) / repeats


def peaks(device: torch.device, *, is_tiny: bool) -> dict[str, float]:
    """FLOP per second of square matrix products in each precision, and bytes per second of a copy, read and written."""
    size, num_floats, repeats = (64, 1 << 14, 2) if is_tiny else (8192, 1 << 28, 20)
    found = {}
    for name in ("fp32", "tf32", "bf16"):
        a = torch.randn(size, size, device=device, dtype=torch.bfloat16 if name == "bf16" else torch.float32)
        with matmul_precision(name):
            found[name] = 2.0 * size**3 / seconds_each(lambda a=a: a @ a, device, repeats)  # type: ignore[misc]
    source = torch.ones(num_floats, device=device)
    target = torch.empty_like(source)
    found["bytes"] = 2.0 * 4 * num_floats / seconds_each(lambda: target.copy_(source), device, repeats)
    return found


def profile(work: Callable[[], object], device: torch.device) -> Record | None:
    """Where the time of `work` goes, on average over some calls; None where the device cannot be profiled (a CPU)."""
    if device.type != "cuda":
        return None
    wall_s = seconds_each(work, device, REPEATS)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    try:
        with torch.profiler.profile(activities=activities) as profiler:
            for _ in range(REPEATS):
                work()
            synchronize(device)
        return summarize(profiler.events() or [], wall_s, REPEATS)
    except RuntimeError as error:  # a machine may keep its counters to itself
        print(f"no profile: {error}")
        return None


def summarize(events: Iterable[Any], wall_s: float, repeats: int) -> Record | None:
    """Per call: seconds without the profiler, launches (of kernels, copies and graphs), kernels, and the seconds
    that they take in all; None if the profiler has seen no kernel."""
    launches, spans = 0, []
    for event in events:
        if event.device_type.name == "CUDA":
            if not getattr(event, "is_user_annotation", False):
                spans.append(event.time_range.end - event.time_range.start)
        elif event.name.startswith(LAUNCHES):
            launches += 1
    if not spans:
        return None
    counts = {"launches": launches / repeats, "kernels": len(spans) / repeats}
    return {"wall_s": wall_s, **counts, "busy_s": 1e-6 * sum(spans) / repeats}


def explain(profile: Record | None, flop_share: float) -> str:
    """One sentence: what bounds a piece of work. `flop_share`: its useful operations by what products alone could do
    in that time."""
    if profile is None:
        return "not profiled"
    busy = min(1.0, profile["busy_s"] / profile["wall_s"])
    kernel_s = profile["busy_s"] / profile["kernels"]
    counts = f"{profile['launches']:,.0f} launches, {profile['kernels']:,.0f} kernels of {1e6 * kernel_s:.1f} us"
    bound = "memory bandwidth or kernel efficiency"
    if busy < BUSY_ENOUGH:
        bound = "kernel launches and waits"
    elif flop_share > 0.5:
        bound = "matrix products"
    elif kernel_s < SHORT_KERNEL_S:
        bound = "kernels too small to fill the GPU"
    share = f", {flop_share:.1%} of the matmul peak" if flop_share else ""
    return f"bound by {bound} ({counts}, busy {busy:.0%}{share})"
