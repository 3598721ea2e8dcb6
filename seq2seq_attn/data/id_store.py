"""Id sequences, one per sentence, in memory-mapped files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.data.array_file import ArrayWriter, load_array
from seq2seq_attn.data.surface import IdArray


class IdStore:
    """Id sequences of one side of a split: a flat, memory-mapped int32 file, and the offsets of the sequences.

    Files are opened on first use.
    """

    def __init__(self, prefix: Path) -> None:
        self._prefix = prefix
        self._ids: IdArray | None = None
        self._offsets: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> IdArray:
        offsets = self.offsets
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        index %= len(self)
        return self.ids[offsets[index] : offsets[index + 1]]

    def exists(self) -> bool:
        """Whether the files exist."""
        return Path(f"{self._prefix}.offsets.npy").is_file()

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """[sentences + 1], the offset in the flat array where each sequence starts, and the end."""
        if self._offsets is None:
            self._offsets = load_array(Path(f"{self._prefix}.offsets.npy"), np.int64)
        return self._offsets

    @property
    def ids(self) -> IdArray:
        """[tokens], all sequences, concatenated."""
        if self._ids is None:
            self._ids = load_array(Path(f"{self._prefix}.ids.npy"), np.int32, "r")
        return self._ids

    @staticmethod
    def write(prefix: Path, ids: npt.NDArray[Any], lengths: npt.NDArray[np.int64]) -> None:
        """Write the two files: flat ids and the length of each sequence."""
        prefix.parent.mkdir(parents=True, exist_ok=True)
        writer = IdWriter(prefix)
        writer.add_lengths(lengths)
        writer.add_ids(ids)
        writer.finish()


class IdWriter:
    """Writes the files of an `IdStore` incrementally."""

    def __init__(self, prefix: Path) -> None:
        self._ids = ArrayWriter(Path(f"{prefix}.ids.npy"), np.int32)
        self._offsets = ArrayWriter(Path(f"{prefix}.offsets.npy"), np.int64)
        self._offsets.append(np.zeros(1, dtype=np.int64))
        self._end = 0

    def add_lengths(self, lengths: npt.NDArray[Any]) -> None:
        """Add sequences, by their lengths."""
        offsets = self._end + np.cumsum(lengths, dtype=np.int64)
        self._offsets.append(offsets)
        self._end = int(offsets[-1]) if len(offsets) else self._end

    def add_ids(self, ids: npt.NDArray[Any]) -> None:
        """Add the next ids of the sequences, which may end inside a sequence."""
        self._ids.append(ids)

    def finish(self) -> None:
        """Complete the files, so that they can be read."""
        self._ids.finish()
        self._offsets.finish()
