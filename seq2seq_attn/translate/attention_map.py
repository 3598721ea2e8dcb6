"""Attention maps: the weights of a translation with the tokens as labels, for pictures, pages and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text.tokenizers.base import SOURCE_END
from seq2seq_attn.text.vocab import EOS, SPECIALS
from seq2seq_attn.translate.snippet import html_map

MAP_NOTE = (
    "Each row is a token of the translation, in order. The darker a cell, the more attention the model paid to that "
    "source token. Punctuation marks are tokens too; <eos> marks the end of a sentence."
)


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Attention weights with a label for each row (target token) and column (source token).

    >>> [translation] = load().translate(["Der kleine Hund, den die Frau sieht, schläft heute."])  # doctest: +SKIP
    >>> map = translation.attention_map()                                 # doctest: +SKIP
    >>> map.weights_TS[map.target_tokens.index("dog")].round(2)           # doctest: +SKIP
    array([0.02, 0.95, 0.02, 0.01, 0.  ], dtype=float32)

    A notebook shows it as a table.
    """

    source_tokens: list[str]
    """as the model saw the source, `<eos>` last; also after each of several sources"""
    target_tokens: list[str]
    """`<eos>` last, if the translation ended with it"""
    weights_TS: npt.NDArray[np.floating[Any]]
    """[target tokens, source tokens]: each token's attention; rows sum to 1"""
    unknown: tuple[int, ...] = ()
    """positions of source tokens outside the vocabulary"""

    @classmethod
    def of(
        cls,
        source_tokens: Sequence[str],
        target_tokens: Sequence[str],
        weights_TS: npt.NDArray[np.floating[Any]],
        unknown: tuple[int, ...] = (),
    ) -> AttentionMap:
        """Combine labels and weights. A row or column more than there are tokens belongs to EOS.

        Raises:
            ValueError: the shape fits neither with EOS nor without.
        """
        labels = []
        for tokens, size in ((source_tokens, weights_TS.shape[1]), (target_tokens, weights_TS.shape[0])):
            missing = size - len(tokens)
            if missing not in (0, 1):
                raise ValueError(f"weights of shape {weights_TS.shape} do not fit {len(tokens)} tokens")
            shown = [SPECIALS[EOS] if token == SOURCE_END else token for token in tokens]
            labels.append([*shown, *[SPECIALS[EOS]] * missing])
        return cls(labels[0], labels[1], weights_TS, unknown)

    def __repr__(self) -> str:
        num_target, num_source = self.weights_TS.shape
        return f"AttentionMap({num_target} target x {num_source} source tokens)"

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        return html_map(self.weights_TS, self.source_tokens, self.target_tokens, self.unknown)


def heaviest_token(source: Sequence[str], weights_S: npt.NDArray[np.floating[Any]]) -> str:
    """The source token with the highest weight, not counting the end of any source."""
    is_text_S = np.array([token != SOURCE_END for token in source])
    return source[int(np.where(is_text_S, weights_S[: len(source)], -1.0).argmax())]
