"""The bounds of a figure: peaks of the device, and where the time of a piece of work goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from scripts.laboratory.harness.turns import synchronize

LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemsetAsync")
BUSY_ENOUGH = 0.75
"""A GPU that is busy for a smaller share of the time is waiting for launches."""
SHORT_KERNEL_S = 10e-6
"""Kernels shorter than this on average are too small to fill a GPU: starting one takes a few microseconds."""


class Profile(NamedTuple):
    """Where the time of one update, or one batch of sentences, goes."""

    wall_s: float
    """measured without the profiler"""
    launches: float
    """calls of the driver that start a kernel, a copy or a graph"""
    kernels: float
    busy_s: float
    """time in which at least one kernel or copy ran"""


@contextmanager
def matmul_precision(name: str) -> Iterator[None]:
    """Set the precision of float32 products inside the block: `high` is TF32 on a GPU, `highest` is float32 proper."""
    former = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
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


def peaks(device: torch.device, *, size: int, num_bytes: int, repeats: int) -> dict[str, float]:
    """FLOP per second of square matrix products in each precision, and bytes per second of a copy, read and written."""
    found = {}
    for name, dtype, precision in (
        ("fp32", torch.float32, "highest"),
        ("tf32", torch.float32, "high"),
        ("bf16", torch.bfloat16, "highest"),
    ):
        a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
        with matmul_precision(precision):
            found[name] = 2.0 * size**3 / seconds_each(lambda a=a, b=b: a @ b, device, repeats)  # type: ignore[misc]
    source = torch.ones(num_bytes // 4, device=device)
    target = torch.empty_like(source)
    found["bytes"] = 2.0 * 4 * source.numel() / seconds_each(lambda: target.copy_(source), device, repeats)
    return found


def profile(work: Callable[[], object], device: torch.device, repeats: int) -> Profile | None:
    """Where the time of `work` goes, on average over some calls; None where the device cannot be profiled (a CPU)."""
    if device.type != "cuda":
        return None
    wall_s = seconds_each(work, device, repeats)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    try:
        with torch.profiler.profile(activities=activities) as profiler:
            for _ in range(repeats):
                work()
            synchronize(device)
        events = profiler.events() or []
    except RuntimeError as error:  # a machine may keep its counters to itself
        print(f"no profile: {error}")
        return None
    return summarize(events, wall_s, repeats)


def summarize(events: Iterable[Any], wall_s: float, repeats: int) -> Profile | None:
    """Count the launches and kernels among a profiler's events, and add up the time in which the GPU was busy; None
    if it has seen no kernel."""
    launches, spans = 0, []
    for event in events:
        if event.device_type.name == "CUDA":
            if not getattr(event, "is_user_annotation", False):
                spans.append((event.time_range.start, event.time_range.end))
        elif event.name.startswith(LAUNCHES):
            launches += 1
    if not spans:
        return None
    busy_us, end = 0.0, -float("inf")
    for first, last in sorted(spans):
        busy_us += max(0.0, last - max(first, end))
        end = max(end, last)
    return Profile(wall_s, launches / repeats, len(spans) / repeats, 1e-6 * busy_us / repeats)


def explain(found: Profile | None, *, flop_share: float | None = None) -> str:
    """One sentence: what bounds a piece of work. `flop_share`: its useful operations by what products alone could do
    in that time."""
    if found is None:
        return "not profiled"
    busy = min(1.0, found.busy_s / found.wall_s)
    kernel_us = 1e6 * found.busy_s / found.kernels
    numbers = f"{found.launches:,.0f} launches, {found.kernels:,.0f} kernels of {kernel_us:.1f} us, busy {busy:.0%}"
    if flop_share is not None:
        numbers += f", {flop_share:.1%} of the matmul peak"
    if busy < BUSY_ENOUGH:
        return f"bound by kernel launches and waits ({numbers})"
    if flop_share is not None and flop_share > 0.5:
        return f"bound by matrix products ({numbers})"
    if kernel_us < 1e6 * SHORT_KERNEL_S:
        return f"bound by kernels too small to fill the GPU ({numbers})"
    return f"bound by memory bandwidth or kernel efficiency ({numbers})"
