"""Random segmentations of text by a SentencePiece model, the same in every process for the same seed.

The library's own sampling cannot do that: `set_random_generator_seed` fixes its draws within one process only.
Words are independent, as no subword reaches over a space. So a line is drawn word by word, each with the space before
it.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from math import exp, inf, log
from random import Random
from typing import Any

from seq2seq_attn.text.tokenizers.base import SPACE

_WORD = re.compile(f".[^{SPACE}]*", re.DOTALL)
_UNKNOWN_SCORE = 0.0
"""Any value will do: a model has all characters of its subwords, so an unknown one is in every segmentation."""
_CACHED_WORDS = 50_000
"""Words whose lattices are kept: 2.7 KB each. Multi30k has 25,000 German words and 15,000 English ones."""

Starts = tuple[Sequence[int], Sequence[float]]
"""Where a subword with a given end may start, and the cumulative weights of these positions."""


class SubwordDraws:
    """Draws the subwords of lines."""

    def __init__(self, processor: Any, alpha: float) -> None:
        """Take a SentencePiece model, and the `alpha` of `UnigramWords` or `BPEWords`."""
        self._processor = processor
        numbers = range(1, processor.get_piece_size())  # 0 is the unknown subword
        self._scores = {processor.id_to_piece(number): float(processor.get_score(number)) for number in numbers}
        # The scores of a BPE model are 0, -1, -2, ...: its subwords in the order of merging.
        is_bpe = all(score == -rank for rank, score in enumerate(self._scores.values()))
        self._words = BPEWords(self._scores, alpha) if is_bpe else UnigramWords(self._scores, alpha)

    def draw(self, lines: Sequence[str], seed: int | str) -> Iterator[list[str]]:
        """The subwords of each line. They depend on the line, its position and the seed alone. A run of unknown
        characters is one token."""
        random = Random()
        for number, line in enumerate(lines):
            random.seed(f"{seed}/{number}")
            words = _WORD.findall(self._processor.normalize(line))
            yield self._join_unknown([subword for word in words for subword in self._words.draw(word, random)])

    def _join_unknown(self, subwords: list[str]) -> list[str]:
        if all(subword in self._scores for subword in subwords):
            return subwords
        runs = groupby(subwords, self._scores.__contains__)
        return [subword for is_known, run in runs for subword in (run if is_known else ["".join(run)])]


class UnigramWords:
    """A unigram model: a segmentation x of a word has a probability proportional to P(x) ** alpha."""

    def __init__(self, scores: Mapping[str, float], alpha: float) -> None:
        self._scores = scores
        self._alpha = alpha
        self._longest = max(map(len, scores))
        self._cached_lattice = lru_cache(_CACHED_WORDS)(self._lattice)

    def draw(self, word: str, random: Random) -> list[str]:
        """Backward sampling: draw the last subword, then the one before it, and so on."""
        lattice = self._cached_lattice(word)
        subwords = []
        end = len(word)
        while end:
            starts, weights = lattice[end]
            last = len(starts) - 1
            start = starts[bisect(weights, random.random() * weights[last], 0, last)] if last else starts[0]
            subwords.append(word[start:end])
            end = start
        return subwords[::-1]

    def _lattice(self, word: str) -> list[Starts]:
        """For each end of a subword, where it may start. The weight of a start is the total of all segmentations that
        have this last subword."""
        totals = [0.0]
        lattice: list[Starts] = [((), ())]
        for end in range(1, len(word) + 1):
            first = max(0, end - self._longest)
            starts = [start for start in range(first, end) if word[start:end] in self._scores or start == end - 1]
            scores = (self._scores.get(word[start:end], _UNKNOWN_SCORE) for start in starts)
            logs = [totals[start] + self._alpha * score for start, score in zip(starts, scores, strict=True)]
            largest = max(logs)
            weights = tuple(accumulate(exp(value - largest) for value in logs))
            totals.append(largest + log(weights[-1]))
            lattice.append((tuple(starts), weights))
        return lattice


class BPEWords:
    """A BPE model: each merge is skipped with probability alpha. As in the library, a skipped merge is tried again only
    if a neighbor changes."""

    def __init__(self, scores: Mapping[str, float], alpha: float) -> None:
        self._ranks = {subword: -score for subword, score in scores.items()}
        self._alpha = alpha

    def draw(self, word: str, random: Random) -> list[str]:
        """Merge from single characters on, the pair of lowest rank first."""
        subwords = list(word)
        ranks = [self._ranks.get(first + second, inf) for first, second in pairwise(subwords)]
        while ranks and (lowest := min(ranks)) < inf:
            position = ranks.index(lowest)
            if random.random() < self._alpha:
                ranks[position] = inf
                continue
            merged = subwords[position] + subwords[position + 1]
            subwords[position : position + 2] = [merged]
            del ranks[position]
            if position > 0:
                ranks[position - 1] = self._ranks.get(subwords[position - 1] + merged, inf)
            if position < len(ranks):
                ranks[position] = self._ranks.get(merged + subwords[position + 1], inf)
        return subwords
