"""What a run made of the sentences that it was evaluated on, for the pages that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.translate.packed_map import PackedMap


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
