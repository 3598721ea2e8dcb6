"""Write tokenized chunks as ids on disk. Memory grows with the number of distinct tokens, not with the training pairs.

The vocabulary is known only after the last training pair. Until then a token is stored as its index in the list of
distinct tokens seen so far; `CorpusBuilder.finish` replaces these by open ids (`data/surface.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seq2seq_attn.data.array_file import append_raw, read_raw
from seq2seq_attn.data.chunks import Chunk, TokenizedChunk, TokenizedSide
from seq2seq_attn.data.id_store import IdWriter
from seq2seq_attn.data.store import SURFACES_NAME
from seq2seq_attn.text.corpus import SideAudit, SplitAudit
from seq2seq_attn.text.overlap import count_duplicates, count_overlap
from seq2seq_attn.text.tokenizers.base import SIDES, Side
from seq2seq_attn.text.vocab import SPECIALS, Vocab

_VALUES_AT_A_TIME = 1 << 18


class CorpusBuilder:
    """Builds the splits of a corpus: `add` every chunk in order, then `finish`, then `audit`."""

    def __init__(self, directory: Path, draft_dir: Path, splits: Sequence[str]) -> None:
        """Take the folder of the prepared corpus, and one for temporary files."""
        self._directory = directory
        self.splits = {split: SplitBuilder(split, directory, draft_dir) for split in splits}
        self._tokens: tuple[dict[str, int], dict[str, int]] = ({}, {})
        """for each side, the distinct tokens seen so far, with their indices"""

    def add(self, chunk: Chunk, tokenized: TokenizedChunk) -> None:
        """Write and count a chunk's pairs."""
        indices = []
        for seen, side in zip(self._tokens, tokenized.sides, strict=True):
            in_list = [seen.setdefault(token, len(seen)) for token in side.tokens]
            indices.append(np.array(in_list, dtype=np.int32))
        self.splits[chunk.split].add(chunk, tokenized, indices)

    def counts(self) -> list[Counter[str]]:
        """For each side, the number of occurrences of each token in the kept training pairs."""
        counts = []
        for tokens, side in zip(self._tokens, self.splits["train"].sides, strict=True):
            of_side = side.kept_counts.up_to(len(tokens)).tolist()
            counts.append(Counter({token: count for token, count in zip(tokens, of_side, strict=True) if count}))
        return counts

    def finish(self, vocabs: Sequence[Vocab]) -> None:
        """Replace token indices by open ids; write which source and target tokens are spelled alike."""
        beyond: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for i, (tokens, vocab) in enumerate(zip(self._tokens, vocabs, strict=True)):
            by_index = np.array(vocab.ids_of(tokens, beyond[i]), dtype=np.int32)
            for split in self.splits.values():
                split.sides[i].finish(by_index)
        spelled = [*vocabs[0].tokens[len(SPECIALS) :], *beyond[0]]
        surfaces = [*range(len(SPECIALS)), *vocabs[1].ids_of(spelled, beyond[1])]
        np.save(self._directory / SURFACES_NAME, np.array(surfaces, dtype=np.int32))

    def audit(self, vocabs: Sequence[Vocab]) -> dict[str, SplitAudit]:
        """The audit of each split."""
        is_unknown = [
            np.array([token not in vocab for token in tokens], dtype=np.bool_)
            for tokens, vocab in zip(self._tokens, vocabs, strict=True)
        ]
        train = self.splits["train"]
        return {name: split.audit(is_unknown, None if split is train else train) for name, split in self.splits.items()}


class SplitBuilder:
    """One split of a `CorpusBuilder`."""

    def __init__(self, split: str, directory: Path, draft_dir: Path) -> None:
        self.sides = tuple(SideBuilder(split, side, directory, draft_dir) for side in SIDES)
        self.pairs_read = 0
        self.pairs_kept = 0
        self._faults = Counter(blank=0, over_long=0, ratio_outliers=0)
        self.dropped = Counter(blank=0, over_long=0, ratio_outliers=0)  # by the pair's first fault
        self._digests_path = draft_dir / f"{split}.digests"
        self._keep_path = draft_dir / f"{split}.keep"
        for path in (self._digests_path, self._keep_path):
            path.touch()

    def add(self, chunk: Chunk, tokenized: TokenizedChunk, indices: Sequence[npt.NDArray[np.int32]]) -> None:
        """Write a chunk's pairs. `indices` are the indices of the chunk's tokens in each side's list."""
        for side, text, of_side, in_list in zip(self.sides, chunk.text, tokenized.sides, indices, strict=True):
            side.add(text, tokenized.keep, of_side, in_list)
        append_raw(self._digests_path, tokenized.digests)
        append_raw(self._keep_path, tokenized.keep)
        self.pairs_read += chunk.num_pairs
        self.pairs_kept += int(tokenized.keep.sum())
        self._faults.update(tokenized.faults)
        self.dropped.update(tokenized.first_faults)

    def kept(self) -> Iterator[bool]:
        """For each pair that was read, whether it is kept."""
        for keep in read_raw(self._keep_path, np.bool_, _VALUES_AT_A_TIME):
            yield from keep.tolist()

    def audit(self, is_unknown: Sequence[npt.NDArray[np.bool_]], train: SplitBuilder | None) -> SplitAudit:
        """The audit of the split. `train` is the split to check for overlap; None for the training split itself."""
        overlap = count_overlap(self._digests_path, train._digests_path) if train is not None else (0, 0)
        source, target = (side.audit(unknown) for side, unknown in zip(self.sides, is_unknown, strict=True))
        return SplitAudit(
            pairs_read=self.pairs_read,
            pairs_kept=self.pairs_kept,
            **self._faults,
            duplicates=count_duplicates(self._digests_path),
            dropped=dict(self.dropped) if train is None else dict.fromkeys(self.dropped, 0),
            overlap_pairs=overlap[0],
            overlap_sources=overlap[1],
            source=source,
            target=target,
        )


class SideBuilder:
    """One side of a split."""

    def __init__(self, split: str, side: Side, directory: Path, draft_dir: Path) -> None:
        prefix = directory / f"{split}.{side}"
        self._text_path = Path(f"{prefix}.txt")
        self._indices_path = draft_dir / f"{split}.{side}.indices"
        for path in (self._text_path, self._indices_path):
            path.touch()
        self._writer = IdWriter(prefix)
        self._counts = TokenCounts()
        self.kept_counts = TokenCounts() if split == "train" else self._counts
        self._longest = 0

    def add(
        self, text: bytes, keep: npt.NDArray[np.bool_], tokenized: TokenizedSide, in_list: npt.NDArray[np.int32]
    ) -> None:
        """Write the kept lines and count the tokens of all."""
        lines = text if keep.all() else b"\n".join(compress(text.split(b"\n"), keep.tolist()))
        if keep.any():
            with self._text_path.open("ab") as stream:
                stream.write(lines + b"\n")
        append_raw(self._indices_path, in_list[tokenized.indices])
        self._writer.add_lengths(tokenized.lengths)
        self._counts.add(in_list, tokenized.counts)
        if self.kept_counts is not self._counts:
            self.kept_counts.add(in_list, tokenized.kept_counts)
        self._longest = max(self._longest, tokenized.longest)

    def finish(self, ids: npt.NDArray[np.int32]) -> None:
        """Write the ids, given the ids of the list of tokens."""
        for indices in read_raw(self._indices_path, np.int32, _VALUES_AT_A_TIME):
            self._writer.add_ids(ids[indices])
        self._writer.finish()

    def audit(self, is_unknown: npt.NDArray[np.bool_]) -> SideAudit:
        """Token counts of all lines that were read."""
        counts = self._counts.up_to(len(is_unknown))
        return SideAudit(
            tokens=int(counts.sum()),
            types=int(np.count_nonzero(counts)),
            unknown=int(counts[is_unknown].sum()),
            longest=self._longest,
        )


class TokenCounts:
    """Occurrences of each token of a growing list."""

    def __init__(self) -> None:
        self._counts = np.zeros(1024, dtype=np.int64)

    def add(self, indices: npt.NDArray[np.int32], counts: npt.NDArray[np.int64]) -> None:
        """Add to the counts at these distinct indices."""
        self._grow(int(indices.max(initial=-1)) + 1)
        self._counts[indices] += counts

    def up_to(self, size: int) -> npt.NDArray[np.int64]:
        """[size], the counts of the first `size` tokens."""
        self._grow(size)
        return self._counts[:size]

    def _grow(self, size: int) -> None:
        if size > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(size, dtype=np.int64)])
