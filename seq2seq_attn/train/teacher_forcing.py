"""Scheduled sampling: how often a decoder step sees the reference token, as a function of the update.

Bengio, Vinyals, Jaitly and Shazeer (2015), "Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks",
section 2.4. Their exponential and inverse sigmoid schedules approach 0 asymptotically, their linear one stops at a
floor. Ours go from `start` to `end` in `num_updates`, and stay there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

EXPONENTIAL_FLOOR = 0.01
"""value of the paper's k^i at the end of our exponential schedule"""


def teacher_forcing_ratio(update: int, *, schedule: str, start: float, end: float, num_updates: int) -> float:
    """The probability in [0, 1] that a step of this update (0 = first) sees the reference token.

    Raises:
        KeyError: the schedule is neither `constant` nor in `SHAPES`.
    """
    if update <= 0 or schedule == "constant":
        return start
    shape = SHAPES[schedule]
    if update >= num_updates:
        return end
    return end + (start - end) * shape(update, num_updates)


def _linear(update: int, num_updates: int) -> float:
    return 1.0 - update / num_updates


def _exponential(update: int, num_updates: int) -> float:
    """k^i, with k such that it ends at `EXPONENTIAL_FLOOR`; scaled to end at 0."""
    power: float = EXPONENTIAL_FLOOR ** (update / num_updates)
    return (power - EXPONENTIAL_FLOOR) / (1.0 - EXPONENTIAL_FLOOR)


def _inverse_sigmoid(update: int, num_updates: int) -> float:
    """k / (k + exp(i / k)), with its midpoint halfway (k ln k = num_updates / 2), scaled to go from 1 to 0."""
    k = _inverse_sigmoid_k(num_updates)
    first, last = k / (k + 1.0), 1.0 / (k + 1.0)
    value = 1.0 / (1.0 + math.exp((update - num_updates / 2) / k))
    return (value - last) / (first - last)


def _inverse_sigmoid_k(num_updates: int) -> float:
    low, high = 1.0, num_updates + 2.0  # k ln k grows from 0 past num_updates / 2 between these
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.log(middle) < num_updates / 2 else (low, middle)
    return high


SHAPES: dict[str, Callable[[int, int], float]] = {
    "linear": _linear,
    "exponential": _exponential,
    "inverse_sigmoid": _inverse_sigmoid,
}
"""schedules from 1 to 0 between the first update and `num_updates`, besides `constant`"""
