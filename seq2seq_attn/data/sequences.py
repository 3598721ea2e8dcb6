"""Sequences of values, one per sentence, in memory-mapped files: ids, tokens, links, vectors.

A file holds the values of all sequences, one after the other, without a header. A file beside it holds the offsets of
the sequences.

Shapes: S source positions without EOS, F dimension of a vector.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text.tokenizers.base import SOURCE_END
from seq2seq_attn.text.tokenizers.vectors import FloatArray, read_vectors
from seq2seq_attn.text.vocab import EOS, IdArray

Values = npt.NDArray[Any]

_SENTENCES_AT_ONCE = 4_096


class SequenceStore:
    """Sequences of values of one type. The files are opened on first use."""

    def __init__(self, path: Path, dtype: type[np.generic] = np.int32) -> None:
        self._path = path
        self._dtype = dtype

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Values:
        """The values of a sequence, a view into the file."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        index %= len(self)
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def exists(self) -> bool:
        """Whether the files exist."""
        return _offsets_path(self._path).is_file()

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """[sequences + 1], where each sequence starts among the values, and the end."""
        return np.array(_map(_offsets_path(self._path), np.int64))

    @cached_property
    def values(self) -> Values:
        """The values of all sequences, one after the other."""
        return _map(self._path, self._dtype)


class TokenStore:
    """The tokens of sentences as text: a line for each token."""

    def __init__(self, path: Path) -> None:
        self._lines = SequenceStore(path, np.uint8)

    def blocks(self) -> Iterator[tuple[list[str], Values]]:
        """The tokens of some thousand sentences, one after the other, and the number of each sentence's; then those of
        the next sentences."""
        for start in range(0, len(self), _SENTENCES_AT_ONCE):
            offsets = self._lines.offsets[start : start + _SENTENCES_AT_ONCE + 1]
            text = self._lines.values[offsets[0] : offsets[-1]]
            line_ends = np.flatnonzero(text == ord("\n"))
            lengths = np.diff(np.searchsorted(line_ends, offsets - offsets[0]))
            yield text.tobytes().decode("utf-8").split("\n")[:-1], lengths

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: int) -> list[str]:
        return self._lines[index].tobytes().decode("utf-8").split("\n")[:-1]

    def __iter__(self) -> Iterator[list[str]]:
        return map(self.__getitem__, range(len(self)))


class VectorStore:
    """The vectors of a split, in which one source is of vectors."""

    def __init__(self, path: Path, source: int, size: int) -> None:
        """`source`: the number of the source that is of vectors, from 0; `size`: F."""
        self._sequences = SequenceStore(path, np.float32)
        self._source, self._size = source, size

    def at_positions(self, index: int, ids: IdArray) -> FloatArray:
        """The vectors of a sentence at their positions among its source's ids, [S, F]; 0 at those of texts."""
        vectors = self._sequences[index].reshape(-1, self._size)
        ends = np.flatnonzero(ids == EOS)
        start = int(ends[self._source - 1]) + 1 if self._source and len(ends) else 0
        rows = np.zeros((len(ids), self._size), dtype=np.float32)
        rows[start : start + len(vectors)] = vectors
        return rows


class SequenceWriter:
    """Writes the files of a `SequenceStore` incrementally."""

    def __init__(self, path: Path, dtype: type[np.generic] = np.int32) -> None:
        self._path = path
        self._dtype = dtype
        self._end = 0
        append_raw(path, np.empty(0))
        append_raw(_offsets_path(path), np.zeros(1, dtype=np.int64))

    def add(self, values: Values, lengths: Values) -> None:
        """Add sequences: their values, concatenated, and the length of each."""
        append_raw(self._path, values.astype(self._dtype, copy=False))
        append_raw(_offsets_path(self._path), self._end + np.cumsum(lengths, dtype=np.int64))
        self._end += len(values)


def write_vectors(path: Path, lines: Iterable[str], source: int) -> None:
    """Write the files of a `VectorStore` from the source lines of a split.

    Raises:
        UserError: a file of vectors can no longer be read.
    """
    writer = SequenceWriter(path, np.float32)
    for line in lines:
        file = line.split(SOURCE_END)[source].strip() if line.strip() else ""
        vectors = read_vectors(file).ravel() if file else np.empty(0, dtype=np.float32)
        writer.add(vectors, np.array([len(vectors)]))


def append_raw(path: Path, values: Values) -> None:
    """Append an array's bytes to a file."""
    # reopened each time: a corpus may have more splits than a process may have open files
    with path.open("ab") as stream:
        stream.write(np.ascontiguousarray(values).data)  # `tofile` does not say why it fails


def _offsets_path(path: Path) -> Path:
    return Path(f"{path}.offsets")


def _map(path: Path, dtype: type[np.generic]) -> Values:
    """The values of a file, mapped into memory."""
    return np.memmap(path, dtype=dtype, mode="r") if path.stat().st_size else np.empty(0, dtype=dtype)
