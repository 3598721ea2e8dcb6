"""Tokenize a corpus in chunks of a few thousand pairs, and write the files of its splits.

Text and tokens are written chunk by chunk. Ids are known only after the last training pair, when
the vocabulary is built. Until then, tokens are numbered twice:
- in a chunk, by the index of the token in `TokenizedSide.types`;
- in a split, by the token number of the `SideBuilder`, in the order of first occurrence.
The ids file first holds token numbers, which `write_ids` replaces by ids.

Duplicate pairs, and pairs that also occur in the training split, are counted by 64-bit digests
(BLAKE2b). A collision would give a wrong count; for 10^7 pairs its probability is 3e-6.

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
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.tokenizers.base import SIDES, Side, Tokenizer
from seq2seq_attn.text.tokenizers.factory import load_source, load_tokenizer
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.text.vocab import Vocab

MAX_PAIRS = 4_096
"""maximum number of pairs in a chunk"""
MAX_CHARACTERS = 1 << 20
"""A chunk ends when the longer sides of its pairs have this number of characters in total, so that
long lines do not make large chunks."""
FAULTS = ("blank", "over_long", "ratio_outliers")
"""The reasons why a pair is unfit for training. `blank`: a side has no tokens. `over_long`: a side
has more than `max_length` tokens. `ratio_outliers`: neither side is blank, and one side is more
than `max_length_ratio` times as long as the other side."""

Lengths = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Digests = npt.NDArray[np.uint64]
_AT_ONCE = 1 << 20
"""number of ids that are replaced at once in a file"""
_DIGEST_SIZE = 8
"""bytes of a digest"""
_BLANK = bytes(_DIGEST_SIZE)
"""the digest of a blank source, which is not counted as overlap"""


class Chunk(NamedTuple):
    """Consecutive pairs of one split."""

    split: str
    sources: Sequence[str]
    targets: Sequence[str]


class TokenizedSide(NamedTuple):
    """The tokens of one side of a chunk."""

    lines: bytes
    """the tokens of the kept pairs, a line for each token, as in `TokenStore`"""
    num_bytes: Lengths
    """[kept pairs], number of bytes of each sentence in `lines`"""
    types: Sequence[str]
    """the distinct tokens of all pairs of the chunk, in the order of first occurrence"""
    indices: Numbers
    """[tokens of all pairs of the chunk], the index of each token in `types`"""
    num_tokens: Lengths
    """[P], number of tokens of each sentence"""


class TokenizedChunk(NamedTuple):
    """A chunk after tokenization."""

    sides: tuple[TokenizedSide, TokenizedSide]
    """source and target"""
    keep_P: Bools
    """True = the pair is kept in the prepared corpus"""
    faults_FP: Bools
    """True = the pair has this fault (`FAULTS`)"""
    digests: Digests
    """[P, 2], see `digest_pairs`"""


def read_chunks(files: Iterable[tuple[str, Sequence[Path]]]) -> Iterator[Chunk]:
    """Yield the pairs of each split in chunks, in order.

    Args:
        files: the names of splits, each with a file of source lines and a file of target lines.
            The files are in UTF-8, with `\\n` at the end of each line.
    """
    for split, paths in files:
        sources = []
        targets = []
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
    """Tokenize both sides of a chunk, and decide which pairs are kept. Pairs with a fault
    (`FAULTS`) are dropped from the training split only.

    Args:
        chunk: the pairs.
        tokenizer_dir: the folder in which the tokenizers are saved.
        max_length: the largest number of tokens of a side.
        max_length_ratio: the largest ratio of the lengths of both sides.

    Raises:
        UserError: the tokenizers cannot be loaded.
    """
    source, target_tokenizer = _load_tokenizers(tokenizer_dir)
    sources = source.tokenize_many(chunk.sources)
    targets = target_tokenizer.tokenize_many(chunk.targets)
    target_lengths = _lengths(targets)
    # A language model has no source. The lengths of the targets take its place, because equal
    # lengths are never a ratio outlier.
    source_lengths = target_lengths
    if source.num_columns:
        # The length of several sources is the length of the longest source.
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
    """Load the tokenizers of source and target, once per process."""
    return load_source(directory), load_tokenizer(directory, "target")


def find_faults(
    source_lengths: Lengths, target_lengths: Lengths, max_length: int, max_length_ratio: float
) -> Bools:
    """Return which faults each pair has: [F, P], True = the pair has the fault (`FAULTS`).

    Args:
        source_lengths: number of tokens of each source.
        target_lengths: number of tokens of each target.
        max_length: the largest number of tokens of a side.
        max_length_ratio: the largest ratio of the lengths of both sides.
    """
    shorter = np.minimum(source_lengths, target_lengths)
    longer = np.maximum(source_lengths, target_lengths)
    is_blank = shorter == 0
    return np.stack(
        [is_blank, longer > max_length, ~is_blank & (longer > max_length_ratio * shorter)]
    )


def _side(tokenized: Sequence[Sequence[str]], keep_P: Bools) -> TokenizedSide:
    """Encode the tokens of one side of a chunk for a `SideBuilder`."""
    kept = compress(tokenized, keep_P.tolist())
    lines = ["\n".join([*tokens, ""]).encode() for tokens in kept]
    # For speed, one pass collects the types and the indices.
    index_by_type = _number_by_first_use()
    tokens = chain.from_iterable(tokenized)
    indices = np.fromiter(map(index_by_type.__getitem__, tokens), dtype=np.int32)
    types = list(index_by_type)
    return TokenizedSide(b"".join(lines), _lengths(lines), types, indices, _lengths(tokenized))


def _number_by_first_use() -> defaultdict[str, int]:
    """Return an empty dictionary in which the lookup of a new token adds the token with the next
    number, from 0."""
    return defaultdict(count().__next__)


def _lengths(sequences: Sequence[Sequence[object]]) -> Lengths:
    """Return [sequences], the length of each sequence."""
    return np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))


def digest_pairs(sources: Sequence[str], targets: Sequence[str]) -> Digests:
    """Return [pairs, 2]: the digest of each normalized source, and of each normalized pair."""
    digests = []
    normalized = zip(map(normalize, sources), map(normalize, targets), strict=True)
    for source, target in normalized:
        state = blake2b(source.encode(), digest_size=_DIGEST_SIZE)
        # `digest` returns the digest of the source alone, until the target is added to the state.
        digests.append(state.digest() if source else _BLANK)
        state.update(f"\n{target}".encode())  # the pair ("ab", "c") is not the pair ("a", "bc")
        digests.append(state.digest())
    return np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)


def count_overlap(digests: Digests, train: Digests) -> tuple[int, int]:
    """Count the overlap of a split with the training split. Pairs with a blank source are not
    counted.

    Args:
        digests: the result of `digest_pairs` for the split.
        train: the result of `digest_pairs` for the kept pairs of the training split.

    Returns:
        The number of pairs that also occur in the training split, and the number of pairs whose
        source occurs in the training split.
    """
    # The digest of a blank source is 0 (`_BLANK`).
    rows = digests[digests[:, 0] != 0]
    is_known_source = np.isin(rows[:, 0], train[:, 0])
    is_known_pair = np.isin(rows[:, 1], train[:, 1])
    return int(is_known_pair.sum()), int(is_known_source.sum())


class SplitBuilder:
    """Build the files of one split: call `add` with every chunk in order, then `write_ids`."""

    def __init__(self, directory: Path, split: str) -> None:
        self.sides = [SideBuilder(directory, split, side) for side in SIDES]
        self.dropped = dict.fromkeys(FAULTS, 0)
        """number of dropped pairs by fault; a pair with several faults counts for the first fault
        in the order of `FAULTS`"""
        self._num_copies = 0
        self._faults_F = np.zeros(len(FAULTS), dtype=np.int64)
        self._keep: list[Bools] = []
        self._digests: list[Digests] = []

    def add(self, chunk: Chunk, tokenized: TokenizedChunk) -> None:
        """Write the kept pairs of a chunk and count their tokens. Count faults and copies among all
        pairs of the chunk, kept or dropped."""
        keep = tokenized.keep_P.tolist()
        texts = (chunk.sources, chunk.targets)
        for side, lines, tokens in zip(self.sides, texts, tokenized.sides, strict=True):
            side.add(compress(lines, keep), tokens, tokenized.keep_P)
        self._digests.append(tokenized.digests)
        self._keep.append(tokenized.keep_P)
        self._faults_F += tokenized.faults_FP.sum(axis=1)
        for source, target in zip(*texts, strict=True):
            if source and source == target:
                self._num_copies += 1
        # `argmax` returns the index of the first True: the first fault of each pair. Only dropped
        # pairs are counted, and a dropped pair has a fault.
        first_faults_P = tokenized.faults_FP.argmax(axis=0)
        for fault in first_faults_P[~tokenized.keep_P]:
            self.dropped[FAULTS[fault]] += 1

    def write_ids(self, vocabs: Sequence[Vocab]) -> None:
        """Replace the token numbers in the ids files by ids. Call this method after the last
        chunk."""
        for side, vocab in zip(self.sides, vocabs, strict=True):
            side.write_ids(vocab)

    @property
    def keep(self) -> Bools:
        """[pairs], True = the pair is kept in the prepared corpus."""
        return np.concatenate(self._keep)

    def token_counts(self) -> list[Counter[str]]:
        """Return how often each token occurs in the kept pairs, for each side."""
        return [side.kept_counts for side in self.sides]

    def audit(self, vocabs: Sequence[Vocab], train: SplitBuilder) -> dict[str, Any]:
        """Return counts of the pairs of the split, and of the tokens of the kept pairs, as JSON
        values.

        `pairs_read`, `pairs_kept`, and the names in `FAULTS` are numbers of pairs. `dropped` counts
        the dropped pairs by fault; only training pairs are dropped. `copies` is the number of pairs
        whose sides are equal and not empty. `duplicates` is the number of pairs that
        equal an earlier pair of the split. `overlap_pairs` and `overlap_sources` are the results of
        `count_overlap`. `source` and `target` are the results of `SideBuilder.audit`.

        Args:
            vocabs: the vocabularies of source and target.
            train: the training split, which has no overlap with itself.
        """
        digests = np.concatenate(self._digests)
        overlap = (0, 0)
        if train is not self:
            kept = np.concatenate(train._digests)[train.keep]
            overlap = count_overlap(digests, kept)
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
    """Build the files of one side of a split: call `add` with every chunk in order, then
    `write_ids`."""

    def __init__(self, directory: Path, split: str, side: Side) -> None:
        self._numbers = _number_by_first_use()
        """the token number of each distinct token"""
        self._num_kept = np.empty(0, dtype=np.int64)
        """how often each token occurs in the kept pairs, by token number"""
        self._longest = 0
        """number of tokens of the longest sentence of the kept pairs"""
        self._text_path = split_path(directory, split, side, "txt")
        self._ids_path = split_path(directory, split, side, "ids")
        self._text_path.touch()
        self._tokens = SequenceWriter(split_path(directory, split, side, "tokens"), np.uint8)
        self._ids = SequenceWriter(self._ids_path)

    def add(self, kept_lines: Iterable[str], tokenized: TokenizedSide, keep_P: Bools) -> None:
        """Write one side of the kept pairs of a chunk: the lines, the tokens, and the token
        numbers. Count the tokens of the kept pairs.

        Args:
            kept_lines: the lines of the kept pairs.
            tokenized: the tokens of all pairs of the chunk.
            keep_P: True = the pair is kept.
        """
        with open_lines(self._text_path, "a") as stream:
            stream.writelines(f"{line}\n" for line in kept_lines)
        self._tokens.add(np.frombuffer(tokenized.lines, dtype=np.uint8), tokenized.num_bytes)
        # Translate indices in `types` of this chunk to token numbers of the split.
        number_by_index = np.array([self._numbers[token] for token in tokenized.types], np.int32)
        numbers = number_by_index[tokenized.indices]
        kept_numbers = numbers[np.repeat(keep_P, tokenized.num_tokens)]
        kept_lengths = tokenized.num_tokens[keep_P]
        self._ids.add(kept_numbers, kept_lengths)
        total = np.bincount(kept_numbers, minlength=len(self._numbers))
        total[: len(self._num_kept)] += self._num_kept
        self._num_kept = total
        self._longest = max(self._longest, int(kept_lengths.max(initial=0)))

    @property
    def kept_counts(self) -> Counter[str]:
        """Return how often each token occurs in the kept pairs."""
        # The unary plus removes tokens with zero occurrences.
        return +Counter(dict(zip(self._numbers, self._num_kept.tolist(), strict=True)))

    def write_ids(self, vocab: Vocab) -> None:
        """Replace the token numbers in the ids file by ids."""
        if not self._numbers:
            return  # without tokens, the file is empty, and an empty file cannot be mapped
        ids = np.memmap(self._ids_path, dtype=np.int32, mode="r+")
        ids_by_number = np.array(vocab.ids_of(self._numbers), dtype=np.int32)
        for start in range(0, len(ids), _AT_ONCE):
            block = ids[start : start + _AT_ONCE]  # a view of the file
            block[:] = ids_by_number[block]
        ids.flush()

    def audit(self, vocab: Vocab) -> dict[str, Any]:
        """Return counts of the tokens of the kept pairs. `types` is the number of distinct tokens,
        `longest` the number of tokens of the longest sentence, and `oov_rate` the share of tokens
        outside the vocabulary."""
        counts = self.kept_counts
        num_tokens = counts.total()
        unknown = sum(number for token, number in counts.items() if token not in vocab)
        return {
            "tokens": num_tokens,
            "types": len(counts),
            "longest": self._longest,
            "oov_rate": unknown / num_tokens if num_tokens else 0.0,
        }
