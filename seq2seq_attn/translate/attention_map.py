"""The attention of one translation with its tokens: what the pictures of it are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

EOS_LABEL = "<eos>"


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Weights [T, S] with a label for each of their rows (target) and columns (source)."""

    source_tokens: list[str]
    target_tokens: list[str]
    weights_TS: npt.NDArray[np.floating[Any]]
    unknown: tuple[int, ...] = ()
    """the positions of source tokens that the model does not know"""

    @classmethod
    def of(
        cls,
        source_tokens: Sequence[str],
        target_tokens: Sequence[str],
        weights_TS: npt.NDArray[np.floating[Any]],
        unknown: tuple[int, ...] = (),
    ) -> AttentionMap:
        """Put labels and weights together; a row or column beyond the tokens is that of EOS.

        Raises:
            ValueError: the shape fits neither with EOS nor without.
        """
        labels = []
        for tokens, size in ((source_tokens, weights_TS.shape[1]), (target_tokens, weights_TS.shape[0])):
            missing = size - len(tokens)
            if missing not in (0, 1):
                raise ValueError(f"weights of shape {weights_TS.shape} do not fit {len(tokens)} tokens")
            labels.append([*tokens, *[EOS_LABEL] * missing])
        return cls(labels[0], labels[1], weights_TS, unknown)
