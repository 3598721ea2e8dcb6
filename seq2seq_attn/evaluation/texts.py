"""What a run made of the sentences that it was evaluated on, for the pages that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_attn.evaluation.learning_curve import Validation
from seq2seq_attn.translate.packed_map import PackedMap


@dataclass(frozen=True)
class LineCounts:
    """What to know of the translations of a set before their scores are trusted."""

    num_cut: int
    """translations that the length limit decided"""
    num_unknown: int
    """source tokens that the run's vocabulary lacks"""

    def __add__(self, other: LineCounts) -> LineCounts:
        return LineCounts(self.num_cut + other.num_cut, self.num_unknown + other.num_unknown)

    def to_dict(self) -> dict[str, int]:
        """Plain values, for JSON."""
        return {"num_cut": self.num_cut, "num_unknown_source_tokens": self.num_unknown}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LineCounts | None:
        """What `to_dict` wrote; None where that is not there."""
        num_cut, num_unknown = (values.get(key) for key in ("num_cut", "num_unknown_source_tokens"))
        return cls(num_cut, num_unknown) if isinstance(num_cut, int) and isinstance(num_unknown, int) else None


def join_counts(parts: Sequence[LineCounts | None]) -> LineCounts | None:
    """Those of several sets pooled; None if one is not known."""
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(parts) else None


class UnknownTokens(NamedTuple):
    """The source tokens of a line that a run does not know."""

    source_tokens: tuple[str, ...]
    """all of the line's"""
    positions: tuple[int, ...]
    """of the unknown ones"""


@dataclass(frozen=True)
class RunTexts:
    """What one run made of the test sets."""

    hypotheses: Sequence[Sequence[str]]
    """for each set, a line a sentence"""
    maps: Sequence[Sequence[PackedMap | None]] | None = None
    """for each set, the attention of each line; None: none at all"""
    config: Mapping[str, Any] = field(default_factory=dict)
    """the resolved configuration as plain values"""
    no_map: str = "no attention was kept"
    """why a sentence has no map, to be read after the run's name and a colon"""
    vectors: Sequence[npt.NDArray[np.float32]] | None = None
    """for each set, the encoder's summary of each source line [N, M], zeros for a blank one; None: not computed"""
    unknown: Sequence[Sequence[UnknownTokens | None]] = ()
    """for each set, of each line; empty: not known"""
    validations: Sequence[Validation] = ()
    """what training measured, in its order"""
