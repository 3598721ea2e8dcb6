"""The translations of one run with their attention and their counts, for the pages that show them."""

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
    """Counts that say whether the scores of a set can be trusted."""

    num_cut: int
    """translations that the length limit cut, or that won because it cut a better one"""
    num_unknown: int
    """source tokens that the run's vocabulary lacks"""

    def __add__(self, other: LineCounts) -> LineCounts:
        return LineCounts(self.num_cut + other.num_cut, self.num_unknown + other.num_unknown)

    def to_dict(self) -> dict[str, int]:
        """Plain values, for JSON."""
        return {"num_cut": self.num_cut, "num_unknown_source_tokens": self.num_unknown}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LineCounts:
        """The counts that `to_dict` wrote."""
        return cls(values["num_cut"], values["num_unknown_source_tokens"])


class UnknownTokens(NamedTuple):
    """The source tokens of a line that are not in a run's vocabulary."""

    source_tokens: tuple[str, ...]
    """all of the line's"""
    positions: tuple[int, ...]
    """of the unknown ones"""


@dataclass(frozen=True)
class RunTexts:
    """The translations of the test sets by one run."""

    hypotheses: Sequence[Sequence[str]]
    """for each set, one line per sentence"""
    maps: Sequence[Sequence[PackedMap | None]] | None = None
    """for each set, the attention of each line; None: none at all"""
    config: Mapping[str, Any] = field(default_factory=dict)
    """the resolved configuration as plain values"""
    no_map: str = "no attention was kept"
    """why a sentence has no map; completes the message "<run>: ..." """
    vectors: Sequence[npt.NDArray[np.float32]] | None = None
    """for each set, the encoder's summary of each source line [N, M], zeros for an empty line; None: not computed"""
    unknown: Sequence[Sequence[UnknownTokens | None]] = ()
    """for each set, the unknown source tokens of each line; empty: not recorded"""
    validations: Sequence[Validation] = ()
    """the validations of its training, by update"""
