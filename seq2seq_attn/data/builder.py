"""Write tokenized chunks: text and tokens at once, ids when the vocabulary is known, after the last training pair.

Memory grows with the number of distinct tokens, not with the training pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seq2seq_attn.data.chunks import Chunk, TokenizedChunk, TokenizedSide
from seq2seq_attn.data.sequences import SequenceWriter, TokenStore, append_raw
from seq2seq_attn.data.store import side_path
from seq2seq_attn.text.corpus import SideAudit, SplitAudit
from seq2seq_attn.text.overlap import count_duplicates, count_overlap
from seq2seq_attn.text.tokenizers.base import SIDES, Side
from seq2seq_attn.text.vocab import Vocab


class SplitBuilder:
    """Builds one split: `add` every chunk in order, then `write_ids`."""

    def __init__(self, directory: Path, split: str, draft_dir: Path) -> None:
        """Take the folder of the prepared corpus, and one for temporary files."""
        self.sides = [SideBuilder(directory, split, side) for side in SIDES]
        self.dropped = Counter(blank=0, over_long=0, ratio_outliers=0)  # by the pair's first fault
        self._faults = Counter(blank=0, over_long=0, ratio_outliers=0)
        self._keep: list[npt.NDArray[np.bool_]] = []
        self._digests_path = draft_dir / f"{split}.digests"
        self._digests_path.touch()

    def add(self, chunk: Chunk, tokenized: TokenizedChunk) -> None:
        """Write a chunk's pairs, and count their tokens and faults."""
        for side, lines, tokens in zip(self.sides, (chunk.sources, chunk.targets), tokenized.sides, strict=True):
            side.add(compress(lines, tokenized.keep.tolist()), tokens)
        append_raw(self._digests_path, tokenized.digests)
        self._keep.append(tokenized.keep)
        self._faults.update(tokenized.faults.counts())
        self.dropped.update(tokenized.faults.first())

    def write_ids(self, vocabs: Sequence[Vocab]) -> None:
        """Write the ids of the kept pairs' tokens."""
        for side, vocab in zip(self.sides, vocabs, strict=True):
            side.write_ids(vocab)

    @property
    def keep(self) -> npt.NDArray[np.bool_]:
        """[pairs], True = part of the prepared corpus."""
        return np.concatenate([np.empty(0, dtype=np.bool_), *self._keep])

    def audit(self, vocabs: Sequence[Vocab], train: SplitBuilder | None) -> SplitAudit:
        """The audit of the split. `train` is the split to check for overlap; None for the training split itself."""
        overlap = count_overlap(self._digests_path, train._digests_path) if train is not None else (0, 0)
        source, target = (side.audit(vocab) for side, vocab in zip(self.sides, vocabs, strict=True))
        return SplitAudit(
            pairs_read=len(self.keep),
            pairs_kept=int(self.keep.sum()),
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

    def __init__(self, directory: Path, split: str, side: Side) -> None:
        self.kept: Counter[str] = Counter()
        """number of occurrences of each token in the kept pairs"""
        self._dropped: Counter[str] = Counter()
        self._longest = 0
        self._text_path = side_path(directory, split, side, "txt")
        self._tokens_path = side_path(directory, split, side, "tokens")
        self._ids_path = side_path(directory, split, side, "ids")
        self._text_path.touch()
        self._tokens = SequenceWriter(self._tokens_path, np.uint8)

    def add(self, kept_lines: Iterable[bytes], tokenized: TokenizedSide) -> None:
        """Write the kept lines and their tokens; count the tokens of all lines."""
        with self._text_path.open("ab") as stream:
            stream.writelines(line + b"\n" for line in kept_lines)
        self._tokens.add(np.frombuffer(tokenized.tokens, dtype=np.uint8), tokenized.num_bytes)
        self.kept.update(tokenized.kept)
        self._dropped.update(tokenized.dropped)
        self._longest = max(self._longest, tokenized.longest)

    def write_ids(self, vocab: Vocab) -> None:
        """Write the ids of the tokens."""
        ids = SequenceWriter(self._ids_path)
        for tokens, lengths in TokenStore(self._tokens_path).blocks():
            ids.add(np.array(vocab.ids_of(tokens), dtype=np.int32), lengths)

    def audit(self, vocab: Vocab) -> SideAudit:
        """The audit of the side."""
        counters = self.kept, self._dropped
        return SideAudit(
            tokens=sum(counter.total() for counter in counters),
            types=len(self.kept) + sum(token not in self.kept for token in self._dropped),
            unknown=sum(count for counter in counters for token, count in counter.items() if token not in vocab),
            longest=self._longest,
        )
