"""The vectors of a source in a prepared corpus, memory-mapped like the ids of its sentences.

Shapes: S source positions without EOS, F dimension of a vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from seq2seq_attn.data.sequences import SequenceStore, SequenceWriter
from seq2seq_attn.text.parallel import Text
from seq2seq_attn.text.tokenizers.base import SOURCE_END, VECTORS, Tokenizer
from seq2seq_attn.text.tokenizers.several import vector_sizes
from seq2seq_attn.text.tokenizers.vectors import FloatArray, hash_vectors, read_vectors
from seq2seq_attn.text.vocab import EOS, IdArray

_NONE: FloatArray = np.zeros(0, dtype=np.float32)


class VectorStore:
    """The vectors of a split."""

    def __init__(self, path: Path, tokenizer: Tokenizer) -> None:
        """`tokenizer`: that of the source side, in which one source is of vectors."""
        self._sequences = SequenceStore(path, np.float32)
        self._number, self._size = source_of_vectors(tokenizer)

    def at_positions(self, index: int, ids: IdArray) -> FloatArray:
        """The vectors of a sentence at their positions among its source's ids, [S, F]; 0 at those of texts."""
        vectors = self._sequences[index].reshape(-1, self._size)
        ends = np.flatnonzero(ids == EOS)
        start = int(ends[self._number - 1]) + 1 if self._number and len(ends) else 0
        rows = np.zeros((len(ids), self._size), dtype=np.float32)
        rows[start : start + len(vectors)] = vectors
        return rows


def vectors_path(directory: Path, split: str) -> Path:
    """The path of the `VectorStore` of a split, if a source is of vectors."""
    return directory / f"{split}.vectors"


def source_of_vectors(tokenizer: Tokenizer) -> tuple[int, int]:
    """The number of the source that is of vectors, from 0, and the dimension of its vectors."""
    return next((number, size) for number, size in enumerate(vector_sizes(tokenizer)) if size is not None)


def hashes_of_vectors(sources: Sequence[str], text: Text) -> list[str]:
    """The hash of the files that the source of vectors names; none if all sources are texts.

    Raises:
        UserError: a file cannot be read.
    """
    if VECTORS not in sources:
        return []
    number = list(sources).index(VECTORS)
    return [hash_vectors(source.split(SOURCE_END)[number] for source, _ in text.pairs() if source.strip())]


def write_vectors(path: Path, lines: Iterable[str], tokenizer: Tokenizer) -> None:
    """Write the files of a `VectorStore` from the source lines of a split.

    Raises:
        UserError: a file of vectors can no longer be read.
    """
    number, _ = source_of_vectors(tokenizer)
    writer = SequenceWriter(path, np.float32)
    for line in lines:
        file = line.split(SOURCE_END)[number].strip() if line.strip() else ""
        vectors = read_vectors(file).ravel() if file else _NONE
        writer.add(vectors, np.array([len(vectors)]))
