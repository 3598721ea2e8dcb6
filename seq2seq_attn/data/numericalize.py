"""Tokenising one side of a corpus once, in 4 bytes a token, before its vocabulary is known."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from seq2seq_attn.data.batch import IdArray
from seq2seq_attn.text.corpus import SideAudit
from seq2seq_attn.text.tokenizers import Tokenizer
from seq2seq_attn.text.vocab import UNK, Vocab

_LINES_AT_A_TIME = 2_000


class TokenizedSide:
    """The tokens of one side of each split, each as its position in the list of different tokens seen so far."""

    def __init__(
        self, lines: Mapping[str, Sequence[str]], tokenizer: Tokenizer, *, progress: str | None = None
    ) -> None:
        """Tokenise the lines of each split, under a tqdm bar if `progress` names it."""
        self._positions: dict[str, int] = {}
        self._tokens: dict[str, npt.NDArray[np.int32]] = {}
        self.lengths: dict[str, npt.NDArray[np.int64]] = {}
        """of each split, tokens of each line"""
        num_lines = sum(map(len, lines.values()))
        with tqdm(total=num_lines, desc=progress, unit="line", disable=progress is None) as bar:
            for split, of_split in lines.items():
                self._add(split, of_split, tokenizer, bar)

    def _add(self, split: str, lines: Sequence[str], tokenizer: Tokenizer, bar: tqdm[Any]) -> None:
        positions, flat, lengths = self._positions, array("i"), array("q")
        for start in range(0, len(lines), _LINES_AT_A_TIME):
            tokenized = tokenizer.tokenize_many(lines[start : start + _LINES_AT_A_TIME])
            for tokens in tokenized:
                flat.extend(positions.setdefault(token, len(positions)) for token in tokens)
                lengths.append(len(tokens))
            bar.update(len(tokenized))
        self._tokens[split] = np.array(flat, dtype=np.int32)
        self.lengths[split] = np.array(lengths, dtype=np.int64)

    def counts(self, split: str, keep: npt.NDArray[np.bool_]) -> Counter[str]:
        """How often each token occurs in the lines to keep."""
        kept = self._tokens[split][np.repeat(keep, self.lengths[split])]
        counts = np.bincount(kept, minlength=len(self._positions))
        return Counter({token: int(count) for token, count in zip(self._positions, counts, strict=True) if count})

    def ids(self, split: str, vocab: Vocab) -> IdArray:
        """The ids of a split's tokens, all lines one after the other."""
        by_position = np.array(vocab.ids_of(self._positions), dtype=np.int32)
        return by_position[self._tokens[split]]

    def audit(self, split: str, vocab: Vocab) -> SideAudit:
        """Token figures of a split, all lines."""
        lengths = self.lengths[split]
        return SideAudit(
            tokens=int(lengths.sum()),
            types=len(np.unique(self._tokens[split])),
            unknown=int((self.ids(split, vocab) == UNK).sum()),
            longest=int(lengths.max(initial=0)),
        )
