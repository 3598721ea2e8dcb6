"""Split a corpus into chunks of a few thousand pairs; tokenize, check and digest each chunk by itself.

This module does not import torch, so that worker processes start fast (spaCy imports it).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
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
    """Consecutive pairs of one split, as lines in UTF-8."""

    split: str
    sources: Sequence[bytes]
    targets: Sequence[bytes]


class TokenizedSide(NamedTuple):
    """One side of a chunk."""

    tokens: bytes
    """the tokens of the kept pairs, a line for each"""
    num_bytes: npt.NDArray[np.int64]
    """[kept pairs], size in `tokens`"""
    kept: Counter[str]
    """number of occurrences of each token in the kept pairs"""
    dropped: Counter[str]
    """number of occurrences of each token in the pairs that are not kept"""
    longest: int
    """number of tokens of the longest line"""


class TokenizedChunk(NamedTuple):
    """A chunk after tokenization."""

    sides: tuple[TokenizedSide, TokenizedSide]
    keep: npt.NDArray[np.bool_]
    """[pairs], True = part of the prepared corpus"""
    faults: corpus.PairFaults
    digests: Digests


def tokenize_chunk(chunk: Chunk, *, tokenizer_dir: Path, max_length: int, max_length_ratio: float) -> TokenizedChunk:
    """Tokenize both sides with the saved tokenizers of a folder. Pairs of the training split are dropped if they are
    faulty by these limits (`corpus.check_pairs`).

    Raises:
        UserError: the tokenizers cannot be loaded.
    """
    source_tokenizer, target_tokenizer = _load_tokenizers(tokenizer_dir)
    sources = source_tokenizer.tokenize_many([line.decode("utf-8") for line in chunk.sources])
    targets = target_tokenizer.tokenize_many([line.decode("utf-8") for line in chunk.targets])
    source_lengths, target_lengths = _lengths(sources), _lengths(targets)
    longest = source_lengths
    if isinstance(source_tokenizer, SeveralTokenizer):
        longest = np.array([max(map(len, split_sources(line))) for line in sources], dtype=np.int64)
    faults = corpus.check_pairs(longest, target_lengths, max_length, max_length_ratio)
    keep = faults.is_good if chunk.split == "train" else np.ones_like(faults.is_good)
    return TokenizedChunk(
        sides=(_side(sources, keep), _side(targets, keep)),
        keep=keep,
        faults=faults,
        digests=digest_pairs(chunk.sources, chunk.targets),
    )


@lru_cache(maxsize=1)
def _load_tokenizers(directory: Path) -> tuple[Tokenizer, Tokenizer]:
    source, target = (load_tokenizer(directory, side) for side in SIDES)
    return source, target


def _side(tokenized: Sequence[Sequence[str]], keep: npt.NDArray[np.bool_]) -> TokenizedSide:
    kept = [*compress(tokenized, keep.tolist())]
    lines = ["\n".join([*tokens, ""]).encode("utf-8") for tokens in kept]
    return TokenizedSide(
        tokens=b"".join(lines),
        num_bytes=_lengths(lines),
        kept=Counter(chain.from_iterable(kept)),
        dropped=Counter(chain.from_iterable(compress(tokenized, (~keep).tolist()))),
        longest=max(map(len, tokenized), default=0),
    )


def _lengths(sequences: Sequence[Sequence[object]]) -> npt.NDArray[np.int64]:
    return np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))


def read_chunks(files: Mapping[str, tuple[Path, Path]]) -> Iterator[Chunk]:
    """The pairs of each split, in order. The files must have been checked (`corpus.count_pairs`).

    Raises:
        UserError: a file can no longer be read.
    """
    for split, paths in files.items():
        sources: list[bytes] = []
        targets: list[bytes] = []
        num_bytes = 0
        for source, target in zip(*map(corpus.iter_raw_lines, paths), strict=True):
            sources.append(source)
            targets.append(target)
            num_bytes += max(len(source), len(target))
            if len(sources) == MAX_PAIRS or num_bytes >= MAX_BYTES:
                yield Chunk(split, sources, targets)
                sources, targets, num_bytes = [], [], 0
        if sources:
            yield Chunk(split, sources, targets)
