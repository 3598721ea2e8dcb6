"""Pack sentence vectors for a page: two coordinates per sentence, and the indices of its nearest neighbors.

Shapes: N sentences, M vector size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.metrics.sentence_vectors import all_nearest, project

MAX_POINTS = 1_000
"""more points would hide each other"""
NUM_NEIGHBORS = 8
_DIGITS = 4


def pack_vectors(of_runs: Sequence[npt.NDArray[np.float32] | None]) -> dict[str, Any] | None:
    """The parts of each run's vectors [N, M] that the page draws (None: a run without); None if no run has any.

    Of more than `MAX_POINTS` sentences, evenly spaced ones are taken, the same for all runs: `rows` says which. A
    sentence without a vector (zeros, of an empty line) is left out. `points` are two coordinates per sentence,
    `nearest` the indices into `rows` of its neighbors, the nearest first, and `cosines` theirs in hundredths.
    """
    given = [vectors_NM for vectors_NM in of_runs if vectors_NM is not None]
    if not given:
        return None
    rows = np.flatnonzero(np.all([vectors_NM.any(axis=1) for vectors_NM in given], axis=0))
    if len(rows) > MAX_POINTS:
        rows = rows[np.linspace(0, len(rows) - 1, MAX_POINTS).round().astype(int)]
    return {
        "rows": rows.tolist(),
        "runs": [None if vectors_NM is None else _pack(vectors_NM[rows]) for vectors_NM in of_runs],
    }


def _rounded(points_NC: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """The points to as many digits as their size needs."""
    largest = float(np.abs(points_NC).max(initial=0.0))
    more = -math.floor(math.log10(largest)) if 0.0 < largest < 1.0 else 0
    rounded: npt.NDArray[np.floating[Any]] = np.round(points_NC, _DIGITS - 1 + more)
    return rounded


def _pack(vectors_NM: npt.NDArray[np.float32]) -> dict[str, Any]:
    projection = project(vectors_NM)
    neighbors_NK, cosines_NK = all_nearest(vectors_NM, NUM_NEIGHBORS)
    return {
        "size": vectors_NM.shape[1],
        "shares": np.round(projection.shares_C, _DIGITS).tolist(),
        "points": _rounded(projection.points_NC).tolist(),
        "nearest": neighbors_NK.tolist(),
        "cosines": np.rint(100 * cosines_NK).astype(int).tolist(),
    }
