"""A prepared corpus, one folder: ids, tokens and vectors in memory-mapped files, text, vocabularies
and tokenizers.

A memory-mapped file holds the values of all sentences, one after the other, without a header. A
file beside it holds the offsets of the sentences.

Shapes: S source positions without EOS, F dimension of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.files import check_files, read_json, sha256_of_values
from seq2seq_attn.text.tokenizers.base import SIDES, Side, Tokenizer
from seq2seq_attn.text.tokenizers.factory import load_source, load_tokenizer
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.text.tokenizers.vectors import FloatArray, place_vectors
from seq2seq_attn.text.vocab import EOS, ExtendedIds, IdArray, Vocab, extended_ids

if TYPE_CHECKING:
    from seq2seq_attn.data.batch import Batch, LinkArray

FORMAT_VERSION = 1
"""Increased when the same text gives other files. Part of the folder's hash, so the text is
prepared again."""
META_NAME = "meta.json"
RUN_CORPUS = "corpus.json"
"""the file in a run directory with the hashes by which it knows its corpus"""

Values = npt.NDArray[Any]


class SequenceStore:
    """Sequences of values of one type. The files are opened on first use."""

    def __init__(self, path: Path, dtype: type[np.generic] = np.int32) -> None:
        self._path = path
        self._dtype = dtype

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Values:
        """The values of a sequence, a view into the file."""
        if not 0 <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
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

    def __getitem__(self, index: int) -> list[str]:
        return self._lines[index].tobytes().decode("utf-8").split("\n")[:-1]

    def __iter__(self) -> Iterator[list[str]]:
        return map(self.__getitem__, range(len(self._lines)))


class SequenceWriter:
    """Writes the files of a `SequenceStore` incrementally."""

    def __init__(self, path: Path, dtype: type[np.generic] = np.int32) -> None:
        self._path = path
        self._dtype = dtype
        self._end = 0
        _append(path, np.empty(0))
        _append(_offsets_path(path), np.zeros(1, dtype=np.int64))

    def add(self, values: Values, lengths: Values) -> None:
        """Add sequences: their values, concatenated, and the length of each."""
        _append(self._path, values.astype(self._dtype, copy=False))
        _append(_offsets_path(self._path), self._end + np.cumsum(lengths, dtype=np.int64))
        self._end += len(values)


def write_vectors(directory: Path, split: str, source: Source) -> None:
    """Write the vectors that the source lines of a split name. Raises UserError: a file of vectors
    can no longer be read."""
    writer = SequenceWriter(split_path(directory, split, "vectors"), np.float32)
    lines = iter_exact(split_path(directory, split, "source", "txt"))
    tokenized = TokenStore(split_path(directory, split, "source", "tokens"))
    for line, tokens in zip(lines, tokenized, strict=True):
        positions = source.vector_positions(tokens)
        vectors = source.vectors(line, tokens)[positions.start : positions.stop].ravel()
        writer.add(vectors, np.array([len(vectors)]))


def _append(path: Path, values: Values) -> None:
    # reopened each time: a corpus may have more splits than a process may have open files
    with path.open("ab") as stream:
        stream.write(np.ascontiguousarray(values).data)  # `tofile` does not say why it fails


def _offsets_path(path: Path) -> Path:
    return Path(f"{path}.offsets")


def _map(path: Path, dtype: type[np.generic]) -> Values:
    if not path.stat().st_size:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")


class PairStore:
    """The sentence pairs of a split as ids of the vocabularies, without specials."""

    def __init__(
        self,
        source: SequenceStore,
        target: SequenceStore,
        *,
        links: SequenceStore | None = None,
        vectors: Callable[[int, IdArray], FloatArray] | None = None,
        extended: Callable[[int], ExtendedIds] | None = None,
    ) -> None:
        """`links`: source and target positions alternate. `vectors` gives those at the positions of
        a pair's source ids. `extended` gives the extended ids of a pair; without, no target token
        is known to be a source token."""
        self._source = source
        self._target = target
        self._links = links
        self._vectors = vectors
        self._extended = extended

    def __len__(self) -> int:
        return len(self._source)

    def swapped(self) -> PairStore:
        """The pairs from target to source, without links, vectors and extended ids."""
        return PairStore(self._target, self._source)

    def source(self, index: int) -> IdArray:
        """int32 ids of a source sentence, a view into the file."""
        return self._source[index]

    def target(self, index: int) -> IdArray:
        """int32 ids of a target sentence, a view into the file."""
        return self._target[index]

    def links(self, index: int) -> LinkArray:
        """int32 [links, 2], source and target positions; a view into the file. Raises ValueError:
        the pairs have no links."""
        if self._links is None:
            raise ValueError("these pairs have no links")
        return self._links[index].reshape(-1, 2)

    @property
    def source_lengths(self) -> npt.NDArray[np.int64]:
        """[pairs], tokens without specials."""
        return np.diff(self._source.offsets)

    @property
    def target_lengths(self) -> npt.NDArray[np.int64]:
        """[pairs], tokens without specials."""
        return np.diff(self._target.offsets)

    def batch(self, indices: Sequence[int], *, with_extended: bool = True) -> Batch:
        """The pairs at these indices, padded. Extended ids serve outputs that copy;
        `with_extended=False` saves the time to compute them."""
        # torch, which reading a run's settings does without
        from seq2seq_attn.data.batch import collate

        sources = [self.source(index) for index in indices]
        targets = [self.target(index) for index in indices]
        links = None
        extended = None
        vectors = None
        if self._links is not None:
            links = [self.links(index) for index in indices]
        if self._extended is not None and with_extended:
            extended = [self._extended(index) for index in indices]
        if self._vectors is not None:
            vectors = list(map(self._vectors, indices, sources))
        return collate(sources, targets, indices, links=links, extended=extended, vectors=vectors)


class PreparedCorpus:
    """A folder that `prepare_corpus` wrote."""

    def __init__(self, directory: Path) -> None:
        """Open a folder and check that it is complete. Raises UserError: it is not a prepared
        corpus of this version, or a file is missing or damaged."""
        self.directory = directory
        self._hashes = check_files(directory)
        self.meta: dict[str, Any] = read_json(directory / META_NAME)

    def __repr__(self) -> str:
        return f"PreparedCorpus({str(self.directory)!r})"

    @property
    def splits(self) -> list[str]:
        """`train`, `valid`, then the test sets."""
        return list(self.meta["splits"])

    @property
    def test_splits(self) -> list[str]:
        return [split for split in self.splits if split not in ("train", "valid")]

    @property
    def audit(self) -> dict[str, Any]:
        """The audit of each split (`SplitBuilder.audit`)."""
        return dict(self.meta["audit"])

    def text_hashes(self, sides: tuple[Side, Side] = SIDES) -> dict[str, str]:
        """The hashes by which a run knows its corpus: of the `content` of all files, however they
        were made; of the `train` text, whatever tokenizes it; and of the text that `data.mix` draws
        `mixed` pairs from. `sides`: those that the run translates from and to."""
        content = dict(self._hashes)
        content.pop(META_NAME)
        train = [self._hashes[f"train.{side}.txt"] for side in sides]
        hashes = {"content": sha256_of_values(content), "train": sha256_of_values(train)}
        if "mix" in self.meta:
            hashes["mixed"] = self.meta["mix"]["text"]
        return hashes

    @cached_property
    def source_tokenizer(self) -> Source:
        return load_source(self.directory)

    @cached_property
    def target_tokenizer(self) -> Tokenizer:
        return load_tokenizer(self.directory, "target")

    @cached_property
    def source_vocab(self) -> Vocab:
        return Vocab.load(vocab_path(self.directory, "source"))

    @cached_property
    def target_vocab(self) -> Vocab:
        """The vocabulary of the target side; equal to the source side's if it is joint."""
        return Vocab.load(vocab_path(self.directory, "target"))

    def pairs(self, split: str) -> PairStore:
        """The pairs of a split as ids, with links between their tokens if configured."""
        path = partial(split_path, self.directory, split)
        source_tokens = TokenStore(path("source", "tokens"))
        target_tokens = TokenStore(path("target", "tokens"))
        links = SequenceStore(path("token_links"))
        vectors = SequenceStore(path("vectors"), np.float32)
        size = self.source_tokenizer.vector_size or 0

        def placed(index: int, ids: IdArray) -> FloatArray:
            positions = self.source_tokenizer.vector_positions(ids.tolist(), EOS)
            return place_vectors(vectors[index].reshape(-1, size), positions, len(ids))

        def extended(index: int) -> ExtendedIds:
            source = self.target_tokenizer.spell_source(source_tokens[index])
            return extended_ids(source, target_tokens[index], self.target_vocab)

        return PairStore(
            SequenceStore(path("source", "ids")),
            SequenceStore(path("target", "ids")),
            links=links if links.exists() else None,
            vectors=placed if vectors.exists() else None,
            extended=extended,
        )

    def text(self, split: str) -> tuple[list[str], list[str]]:
        """The lines of both sides as published, aligned with `pairs(split)`."""
        source = list(iter_exact(split_path(self.directory, split, "source", "txt")))
        target = list(iter_exact(split_path(self.directory, split, "target", "txt")))
        return source, target

    def links(self, split: str) -> list[str] | None:
        """Gold word alignments in Pharaoh format ("0-0 1-2"), aligned with `pairs(split)`; None if
        there are none."""
        path = split_path(self.directory, split, "links")
        return list(iter_exact(path)) if path.is_file() else None


def split_path(directory: Path, split: str, *kind: str) -> Path:
    """The path of a file of a split. With `source` or `target`: its lines (`txt`), the `TokenStore`
    (`tokens`), or the `SequenceStore` of ids (`ids`). Else the stores of `token_links` and
    `vectors`, and the lines of gold `links`."""
    return directory / ".".join((split, *kind))


def vocab_path(directory: Path, side: Side) -> Path:
    """The path of a side's vocabulary."""
    return directory / f"{side}.vocab"


def iter_exact(path: Path) -> Iterator[str]:
    """The lines of a file that `open_lines` wrote. Nothing is stripped: a line may be anything
    without '\\n'."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield line[:-1]


def open_lines(path: Path, mode: str = "w") -> IO[str]:
    """Open a file for lines that end in '\\n' alone."""
    return path.open(mode, encoding="utf-8", newline="\n")
