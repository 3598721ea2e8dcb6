"""Split a corpus into chunks of a few thousand pairs; tokenize, check and digest each chunk by itself.

This module does not import torch, so that worker processes start fast (spaCy imports it).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text import corpus
from seq2seq_attn.text.overlap import Digests, digest_pairs
from seq2seq_attn.text.tokenizers.base import SIDES, Tokenizer
from seq2seq_attn.text.tokenizers.factory import load_tokenizer
from seq2seq_attn.text.tokenizers.several import SeveralTokenizer, split_sources

MAX_PAIRS = 4_096
MAX_BYTES = 1 << 20
"""per side of a chunk: chunks with long lines have fewer pairs"""


class Chunk(NamedTuple):
    """Consecutive pairs of one split."""

    split: str
    num_pairs: int
    text: tuple[bytes, bytes]
    """the lines of source and target, joined by line ends"""


class TokenizedSide(NamedTuple):
    """One side of a chunk."""

    tokens: bytes
    """the tokens of the kept pairs, a line for each"""
    lengths: npt.NDArray[np.int64]
    """[kept pairs], number of tokens"""
    num_bytes: npt.NDArray[np.int64]
    """[kept pairs], size in `tokens`"""
    kept: Counter[str]
    """number of occurrences of each token in the kept pairs"""
    indices: npt.NDArray[np.int32]
    """the tokens of the kept pairs by their positions in `kept`, which are faster to make ids of than text"""
    dropped: Counter[str]
    """the same for the pairs that are not kept"""
    longest: int
    """number of tokens of the longest line"""


class TokenizedChunk(NamedTuple):
    """A chunk after tokenization."""

    sides: tuple[TokenizedSide, TokenizedSide]
    keep: npt.NDArray[np.bool_]
    """[pairs], True = part of the prepared corpus"""
    faults: dict[str, int]
    """`PairFaults.counts` of all pairs"""
    first_faults: dict[str, int]
    """`PairFaults.first` of all pairs"""
    digests: Digests


class ChunkTokenizer:
    """Tokenizes chunks. When pickled it carries only the tokenizers' folder, and each process loads its own copy."""

    def __init__(self, directory: Path, *, max_length: int, max_length_ratio: float) -> None:
        """Take the folder of the saved tokenizers, and the limits of `corpus.check_pairs`."""
        self._directory = directory
        self._max_length = max_length
        self._max_length_ratio = max_length_ratio
        self._tokenizers: tuple[Tokenizer, ...] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_tokenizers": None}

    def __call__(self, chunk: Chunk) -> TokenizedChunk:
        """Tokenize both sides. Faulty pairs of the training split are dropped.

        Raises:
            UserError: the tokenizers cannot be loaded.
        """
        if self._tokenizers is None:
            self._tokenizers = tuple(load_tokenizer(self._directory, side) for side in SIDES)
        tokenized = [
            tokenizer.tokenize_many(text.decode("utf-8").split("\n"))
            for tokenizer, text in zip(self._tokenizers, chunk.text, strict=True)
        ]
        lengths = [np.fromiter(map(len, lines), dtype=np.int64, count=chunk.num_pairs) for lines in tokenized]
        longest = lengths[0]
        if isinstance(self._tokenizers[0], SeveralTokenizer):
            longest = np.array([max(map(len, split_sources(line))) for line in tokenized[0]], dtype=np.int64)
        faults = corpus.check_pairs(longest, lengths[1], self._max_length, self._max_length_ratio)
        keep = faults.is_good if chunk.split == "train" else np.ones_like(faults.is_good)
        source, target = (_side(*of_side, keep) for of_side in zip(tokenized, lengths, strict=True))
        return TokenizedChunk(
            sides=(source, target),
            keep=keep,
            faults=faults.counts(),
            first_faults=faults.first(),
            digests=digest_pairs(*(text.split(b"\n") for text in chunk.text)),
        )


def _side(
    tokenized: Sequence[Sequence[str]], lengths: npt.NDArray[np.int64], keep: npt.NDArray[np.bool_]
) -> TokenizedSide:
    kept = [*compress(tokenized, keep.tolist())]
    lines = ["\n".join([*tokens, ""]).encode("utf-8") for tokens in kept]
    counts = Counter(chain.from_iterable(kept))
    index_of = dict(zip(counts, range(len(counts)), strict=True))
    return TokenizedSide(
        tokens=b"".join(lines),
        lengths=lengths[keep],
        num_bytes=np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)),
        kept=counts,
        indices=np.fromiter(map(index_of.__getitem__, chain.from_iterable(kept)), dtype=np.int32),
        dropped=Counter(chain.from_iterable(compress(tokenized, (~keep).tolist()))),
        longest=int(lengths.max(initial=0)),
    )


def read_chunks(files: Mapping[str, tuple[Path, Path]]) -> Iterator[Chunk]:
    """The pairs of each split, in order. The files must have been checked (`corpus.count_pairs`).

    Raises:
        UserError: a file can no longer be read.
    """
    for split, (source_path, target_path) in files.items():
        sources: list[bytes] = []
        targets: list[bytes] = []
        num_bytes = 0
        for source, target in zip(corpus.iter_raw_lines(source_path), corpus.iter_raw_lines(target_path), strict=True):
            sources.append(source)
            targets.append(target)
            num_bytes += max(len(source), len(target))
            if len(sources) == MAX_PAIRS or num_bytes >= MAX_BYTES:
                yield _chunk(split, sources, targets)
                sources, targets, num_bytes = [], [], 0
        if sources:
            yield _chunk(split, sources, targets)


def _chunk(split: str, sources: Sequence[bytes], targets: Sequence[bytes]) -> Chunk:
    return Chunk(split, len(sources), (b"\n".join(sources), b"\n".join(targets)))
