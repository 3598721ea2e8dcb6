"""Tokenize a corpus in chunks of a few thousand pairs and write its splits: text and tokens at
once, ids when the vocabulary is known, after the last training pair.

Duplicate pairs, and overlap with the training split, are counted by 64-bit digests (BLAKE2b). A
collision would give a wrong count; for 10^7 pairs its probability is 3e-6.

Memory grows with the number of distinct tokens, and by 17 bytes per pair. This module does not
import torch, so that worker processes start fast.

Shapes: P pairs of a chunk, F kinds of faults.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, compress, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_attn.data.store import SequenceWriter, iter_exact, open_lines, split_path
from seq2seq_attn.text.tokenizers.base import SIDES, Side, Tokenizer
from seq2seq_attn.text.tokenizers.factory import load_source, load_tokenizer
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.text.vocab import Vocab

MAX_PAIRS = 4_096
MAX_CHARACTERS = 1 << 20
"""per side of a chunk: chunks with long lines have fewer pairs"""
FAULTS = ("blank", "over_long", "ratio_outliers")
"""why a pair is unfit for training: a side has no tokens; a side has more than `max_length`;
neither is blank, and one is more than `max_length_ratio` times as long as the other"""

Lengths = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Digests = npt.NDArray[np.uint64]
_AT_ONCE = 1 << 20
"""ids that are written at once"""
_DIGEST_SIZE = 8
_BLANK = bytes(_DIGEST_SIZE)
"""the digest of a blank source, which counts as no overlap"""


class Chunk(NamedTuple):
    """Consecutive pairs of one split."""

    split: str
    sources: Sequence[str]
    targets: Sequence[str]


class TokenizedSide(NamedTuple):
    """One side of a chunk."""

    lines: bytes
    """the tokens of the kept pairs, a line for each token"""
    num_bytes: Lengths
    """[kept pairs], size in `lines`"""
    types: Sequence[str]
    """the distinct tokens of all pairs, in the order of their first occurrences"""
    numbers: Numbers
    """[tokens of all pairs], the index of each in `types`"""
    num_tokens: Lengths
    """[P]"""


class TokenizedChunk(NamedTuple):
    """A chunk after tokenization."""

    sides: tuple[TokenizedSide, TokenizedSide]
    keep_P: Bools
    """True = part of the prepared corpus"""
    faults_FP: Bools
    digests: Digests


def read_chunks(files: Iterable[tuple[str, Sequence[Path]]]) -> Iterator[Chunk]:
    """The pairs of each split, in order, from a file for each side, in UTF-8, with `\\n` at the end
    of each line."""
    for split, paths in files:
        sources: list[str] = []
        targets: list[str] = []
        num_characters = 0
        for source, target in zip(*map(iter_exact, paths), strict=True):
            sources.append(source)
            targets.append(target)
            num_characters += max(len(source), len(target))
            if len(sources) == MAX_PAIRS or num_characters >= MAX_CHARACTERS:
                yield Chunk(split, sources, targets)
                sources = []
                targets = []
                num_characters = 0
        if sources:
            yield Chunk(split, sources, targets)


def tokenize_chunk(
    chunk: Chunk,
    *,
    tokenizer_dir: Path,
    max_length: int,
    max_length_ratio: float,
) -> TokenizedChunk:
    """Tokenize both sides with the saved tokenizers of a folder. Pairs of the training split are
    dropped if they are faulty by these limits. Raises UserError: the tokenizers cannot be
    loaded."""
    source, target_tokenizer = _load_tokenizers(tokenizer_dir)
    sources = source.tokenize_many(chunk.sources)
    targets = target_tokenizer.tokenize_many(chunk.targets)
    target_lengths = _lengths(targets)
    source_lengths = target_lengths
    if source.num_columns:
        longest = [max(map(len, source.columns(tokens))) for tokens in sources]
        source_lengths = np.array(longest, dtype=np.int64)
    faults_FP = find_faults(source_lengths, target_lengths, max_length, max_length_ratio)
    keep_P: Bools = np.all(~faults_FP, axis=0)
    if chunk.split != "train":
        keep_P[:] = True
    sides = (_side(sources, keep_P), _side(targets, keep_P))
    return TokenizedChunk(sides, keep_P, faults_FP, digest_pairs(chunk.sources, chunk.targets))


@lru_cache(maxsize=1)
def _load_tokenizers(directory: Path) -> tuple[Source, Tokenizer]:
    return load_source(directory), load_tokenizer(directory, "target")


def find_faults(
    source_lengths: Lengths, target_lengths: Lengths, max_length: int, max_length_ratio: float
) -> Bools:
    """Which of `FAULTS` the pairs with these numbers of tokens have, [F, P]."""
    shorter = np.minimum(source_lengths, target_lengths)
    longer = np.maximum(source_lengths, target_lengths)
    is_blank = shorter == 0
    return np.stack(
        [is_blank, longer > max_length, ~is_blank & (longer > max_length_ratio * shorter)]
    )


def _side(tokenized: Sequence[Sequence[str]], keep_P: Bools) -> TokenizedSide:
    kept = compress(tokenized, keep_P.tolist())
    lines = ["\n".join([*tokens, ""]).encode() for tokens in kept]
    types: defaultdict[str, int] = defaultdict(count().__next__)  # numbers in order of occurrence
    numbers = np.fromiter(map(types.__getitem__, chain.from_iterable(tokenized)), dtype=np.int32)
    return TokenizedSide(
        b"".join(lines), _lengths(lines), list(types), numbers, _lengths(tokenized)
    )


def _lengths(sequences: Sequence[Sequence[object]]) -> Lengths:
    return np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))


def digest_pairs(sources: Sequence[str], targets: Sequence[str]) -> Digests:
    """[pairs, 2]: the source's digest, then the pair's. Lines are without line ends."""
    digests = []
    for source, target in zip(sources, targets, strict=True):
        state = blake2b(source.encode(), digest_size=_DIGEST_SIZE)
        digests.append(state.digest() if source.strip() else _BLANK)
        state.update(f"\n{target}".encode())  # the pair ("ab", "c") is not the pair ("a", "bc")
        digests.append(state.digest())
    return np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)


def count_overlap(digests: Digests, train: Digests) -> tuple[int, int]:
    """The number of pairs of a split that also occur in the training split, and of those whose
    source does. Pairs with a blank source are not counted."""
    rows = digests[digests[:, 0] != 0]
    is_known_source = np.isin(rows[:, 0], train[:, 0])
    is_known_pair = np.isin(rows[:, 1], train[:, 1])
    return int(is_known_pair.sum()), int(is_known_source.sum())


class SplitBuilder:
    """Builds one split: `add` every chunk in order, then `write_ids`."""

    def __init__(self, directory: Path, split: str) -> None:
        self.sides = [SideBuilder(directory, split, side) for side in SIDES]
        self.dropped = dict.fromkeys(FAULTS, 0)
        """number of pairs that are not kept, by the first fault of each"""
        self._num_copies = 0
        self._faults_F = np.zeros(len(FAULTS), dtype=np.int64)
        self._keep: list[Bools] = []
        self._digests: list[Digests] = []

    def add(self, chunk: Chunk, tokenized: TokenizedChunk) -> None:
        """Write a chunk's pairs, and count their tokens and faults."""
        keep = tokenized.keep_P.tolist()
        for side, lines, tokens in zip(self.sides, chunk[1:], tokenized.sides, strict=True):
            side.add(compress(lines, keep), tokens, tokenized.keep_P)
        self._digests.append(tokenized.digests)
        self._keep.append(tokenized.keep_P)
        self._faults_F += tokenized.faults_FP.sum(axis=1)
        self._num_copies += sum(
            source == target != ""
            for source, target in zip(chunk.sources, chunk.targets, strict=True)
        )
        for fault in tokenized.faults_FP.argmax(axis=0)[~tokenized.keep_P]:
            self.dropped[FAULTS[fault]] += 1

    def write_ids(self, vocabs: Sequence[Vocab]) -> None:
        """Write the ids of the kept pairs' tokens."""
        for side, vocab in zip(self.sides, vocabs, strict=True):
            side.write_ids(vocab)

    @property
    def keep(self) -> Bools:
        """[pairs], True = part of the prepared corpus."""
        return np.concatenate(self._keep)

    def audit(self, vocabs: Sequence[Vocab], train: SplitBuilder | None) -> dict[str, Any]:
        """Counts of the split's pairs, as JSON values. Faulty pairs are dropped from the training
        split only. `copies`: pairs whose sides are equal. `duplicates`: pairs equal to an earlier
        pair of the split. `overlap_pairs`, `overlap_sources`: pairs that are also pairs of the
        split `train` (None for the training split itself), or whose source is one of its
        sources."""
        digests = np.concatenate(self._digests)
        overlap = (0, 0)
        if train is not None:
            overlap = count_overlap(digests, np.concatenate(train._digests))
        counts = {
            "pairs_read": len(self.keep),
            "pairs_kept": int(self.keep.sum()),
            **dict(zip(FAULTS, self._faults_F.tolist(), strict=True)),
            "copies": self._num_copies,
            "duplicates": len(digests) - len(np.unique(digests[:, 1])),
            "dropped": self.dropped,
            "overlap_pairs": overlap[0],
            "overlap_sources": overlap[1],
        }
        for name, side, vocab in zip(SIDES, self.sides, vocabs, strict=True):
            counts[name] = side.audit(vocab)
        return counts


class SideBuilder:
    """One side of a split."""

    def __init__(self, directory: Path, split: str, side: Side) -> None:
        self._numbers: dict[str, int] = {}
        """a number for each distinct token, in the order of first occurrence"""
        self._num_read = np.empty(0, dtype=np.int64)
        """how often each of them occurs, by its number"""
        self._num_kept = np.empty(0, dtype=np.int64)
        """how often each of them occurs in the kept pairs"""
        self._longest = 0
        self._text_path = split_path(directory, split, side, "txt")
        self._ids_path = split_path(directory, split, side, "ids")
        self._text_path.touch()
        self._tokens = SequenceWriter(split_path(directory, split, side, "tokens"), np.uint8)
        self._ids = SequenceWriter(self._ids_path)

    def add(self, kept_lines: Iterable[str], tokenized: TokenizedSide, keep_P: Bools) -> None:
        """Write the kept lines and their tokens, and the tokens' numbers where `write_ids` puts the
        ids; count the tokens of all lines."""
        with open_lines(self._text_path, "a") as stream:
            stream.writelines(f"{line}\n" for line in kept_lines)
        self._tokens.add(np.frombuffer(tokenized.lines, dtype=np.uint8), tokenized.num_bytes)
        for token in tokenized.types:
            self._numbers.setdefault(token, len(self._numbers))
        numbers_by_type = np.array([self._numbers[token] for token in tokenized.types], np.int32)
        numbers = numbers_by_type[tokenized.numbers]
        kept = numbers[np.repeat(keep_P, tokenized.num_tokens)]
        self._ids.add(kept, tokenized.num_tokens[keep_P])
        self._num_read = self._count(self._num_read, numbers)
        self._num_kept = self._count(self._num_kept, kept)
        self._longest = max(self._longest, int(tokenized.num_tokens.max()))

    def _count(self, counts: Lengths, numbers: Numbers) -> Lengths:
        """The counts of all tokens, with those that have these numbers added."""
        total = np.bincount(numbers, minlength=len(self._numbers))
        total[: len(counts)] += counts
        return total

    @property
    def kept(self) -> Counter[str]:
        """Number of occurrences of each token in the kept pairs."""
        return +Counter(dict(zip(self._numbers, self._num_kept.tolist(), strict=True)))

    def write_ids(self, vocab: Vocab) -> None:
        """Write the ids of the tokens in place of their numbers."""
        if not self._numbers:
            return
        ids = np.memmap(self._ids_path, dtype=np.int32, mode="r+")
        ids_by_number = np.array(vocab.ids_of(self._numbers), dtype=np.int32)
        for start in range(0, len(ids), _AT_ONCE):
            ids[start : start + _AT_ONCE] = ids_by_number[ids[start : start + _AT_ONCE]]
        ids.flush()

    def audit(self, vocab: Vocab) -> dict[str, Any]:
        """Counts of all tokens that were read; `unknown`: tokens outside the vocabulary, `longest`:
        tokens of the longest line."""
        num_tokens = int(self._num_read.sum())
        is_unknown = np.array([token not in vocab for token in self._numbers], dtype=np.bool_)
        unknown = int(self._num_read[is_unknown].sum())
        return {
            "tokens": num_tokens,
            "types": len(self._numbers),
            "unknown": unknown,
            "longest": self._longest,
            "oov_rate": unknown / num_tokens if num_tokens else 0.0,
        }
