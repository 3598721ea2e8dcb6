"""Paired turns: contestants do the same work alternately, so that a slow moment of the machine
slows all of them.

The ratio of two contestants is the median over turns of the ratio of their speeds within a turn.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch

from scripts.laboratory.harness.records import Record
from seq2seq_attn.runtime.device import Precision, multiplies_bf16

CONFIDENCE = 0.95
_last_start = math.inf
"""the time on the monotonic clock after which no turn begins"""


def end_turns_after(seconds: float) -> None:
    """From now on, `take_turns` begins no turn later than this, but always takes one."""
    global _last_start
    _last_start = time.monotonic() + seconds


class Contestant:
    """One way to do the work, and the speeds of its turns."""

    def __init__(
        self,
        name: str,
        work: Callable[[int], float],
        *,
        device: torch.device | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`work` does the work of the turn with a given number and returns its amount (tokens,
        sentences)."""
        self.name = name
        self.speeds: list[float] = []
        self._work, self._device, self._clock = work, device, clock

    def turn(self, number: int) -> None:
        """Do the work of one turn and keep its speed: amount per second."""
        synchronize(self._device)
        began_at = self._clock()
        amount = self._work(number)
        synchronize(self._device)
        self.speeds.append(amount / (self._clock() - began_at))

    @property
    def speed(self) -> float:
        """The median over turns."""
        return statistics.median(self.speeds)


class Ratio(NamedTuple):
    """A median of paired ratios with its confidence interval."""

    value: float
    low: float
    high: float


def take_turns(contestants: Sequence[Contestant], num_turns: int, *, warm_up: int = 0) -> None:
    """Turns 0 to `num_turns` - 1, all contestants in each, every other turn in reversed order.

    The warm-up turns before them are not counted. There are fewer turns if the time of
    `end_turns_after` comes.
    """
    for contestant in contestants:
        for number in range(warm_up):
            contestant.turn(number)
        contestant.speeds.clear()
    for number in range(num_turns):
        if number and time.monotonic() > _last_start:
            break
        for contestant in contestants if number % 2 == 0 else reversed(contestants):
            contestant.turn(number)


def paired_ratio(speeds: Sequence[float], base_speeds: Sequence[float]) -> Ratio:
    """How many times faster than `base_speeds`, from speeds of the same turns."""
    return median_interval([a / b for a, b in zip(speeds, base_speeds, strict=True)])


def median_interval(values: Iterable[float]) -> Ratio:
    """The median, and the order statistics that enclose the true median with 95 % confidence
    whatever the distribution.

    Fewer than six values cannot give that confidence: the interval is then their range.
    """
    ordered = sorted(values)
    count = len(ordered)
    rank = 0
    outside = 0.0
    for k in range((count + 1) // 2):
        outside += 2 * math.comb(count, k) / 2**count
        if outside <= 1 - CONFIDENCE:
            rank = k
    return Ratio(statistics.median(ordered), ordered[rank], ordered[count - 1 - rank])


def ratio_fields(contestant: Contestant, bases: Iterable[Contestant]) -> Record:
    """The contestant's ratio to each base, by the base's name, as a row of a record holds them."""
    ratios = {base.name: paired_ratio(contestant.speeds, base.speeds) for base in bases}
    return {
        "ratios": {name: ratio.value for name, ratio in ratios.items()},
        "intervals": {name: [ratio.low, ratio.high] for name, ratio in ratios.items()},
    }


def synchronize(device: torch.device | None) -> None:
    """Wait until a GPU has finished its queued work."""
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)


def precisions(device: torch.device | str) -> list[Precision]:
    """Precisions that the device supports in hardware; emulated bf16 would take minutes and show
    nothing."""
    return ["fp32", "bf16"] if multiplies_bf16(torch.device(device)) else ["fp32"]
