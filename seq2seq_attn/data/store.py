"""Read and write the folder of a prepared corpus: ids, tokens, vectors and links in memory-mapped
files; text; vocabularies and tokenizers.

A memory-mapped file holds the values of all sentences, one after the other, without a header. A
file beside it holds the offset of each sentence.

Shapes: S source positions without EOS, F dimension of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.data.line_facts import NUM_LINES, LineFacts, find_line_facts
from seq2seq_attn.files import check_files, read_json, sha256_of_values
from seq2seq_attn.text.known_words import WORDS
from seq2seq_attn.text.tokenizers.base import SIDES, Side, Tokenizer
from seq2seq_attn.text.tokenizers.factory import load_source, load_tokenizer
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.text.tokenizers.vectors import FloatArray, place_vectors
from seq2seq_attn.text.vocab import ExtendedIds, Vocab, extended_ids

if TYPE_CHECKING:
    from seq2seq_attn.data.batch import Batch, LinkArray

FORMAT_VERSION = 4
"""The version of the folder's format. It is increased when the same text would give different
files. The folder is named by a hash that includes the version, so the text is prepared again."""
META_NAME = "meta.json"
LINKS = "links"
"""the kind of the lines of word alignments in `split_path`"""
RUN_CORPUS = "corpus.json"
"""the file in a run directory with the hashes of the run's corpus (`PreparedCorpus.text_hashes`)"""

Values = npt.NDArray[Any]


@dataclass(eq=False)
class SequenceStore:
    """Sequences of values of one type, in a file of values and a file of offsets. Both files are
    memory-mapped on first use."""

    path: Path
    dtype: type[np.generic] = np.int32

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Values:
        """Return the values of a sequence as a view into the file."""
        if not 0 <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def exists(self) -> bool:
        """Return whether the files exist."""
        return _offsets_path(self.path).is_file()

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Return [sequences + 1]: the index in `values` at which each sequence starts, then the
        number of values."""
        return np.array(_map(_offsets_path(self.path), np.int64))

    @cached_property
    def values(self) -> Values:
        """Return the values of all sequences, one after the other."""
        return _map(self.path, self.dtype)


class TokenStore:
    """The tokens of sentences, in a memory-mapped file of text with a line for each token."""

    def __init__(self, path: Path) -> None:
        self._lines = SequenceStore(path, np.uint8)

    def __getitem__(self, index: int) -> list[str]:
        return self._lines[index].tobytes().decode("utf-8").split("\n")[:-1]

    def __iter__(self) -> Iterator[list[str]]:
        return map(self.__getitem__, range(len(self._lines)))


class SequenceWriter:
    """Write the files of a `SequenceStore` in parts."""

    def __init__(self, path: Path, dtype: type[np.generic] = np.int32) -> None:
        self._path = path
        self._dtype = dtype
        self._end = 0
        _append(path, np.empty(0))
        _append(_offsets_path(path), np.zeros(1, dtype=np.int64))

    def add(self, values: Values, lengths: Values) -> None:
        """Append sequences to the files.

        Args:
            values: the values of all sequences, concatenated.
            lengths: the number of values of each sequence.
        """
        _append(self._path, values.astype(self._dtype, copy=False))
        _append(_offsets_path(self._path), self._end + np.cumsum(lengths, dtype=np.int64))
        self._end += len(values)


def write_vectors(directory: Path, split: str, source: Source) -> None:
    """Write the vectors of the files that the source lines of a split name.

    Raises:
        UserError: a file of vectors can no longer be read.
    """
    writer = SequenceWriter(split_path(directory, split, "vectors"), np.float32)
    lines = iter_exact(split_path(directory, split, "source", "txt"))
    tokenized = TokenStore(split_path(directory, split, "source", "tokens"))
    for line, tokens in zip(lines, tokenized, strict=True):
        positions = source.vector_positions(tokens)
        vectors = source.vectors(line, tokens)[positions.start : positions.stop].ravel()
        writer.add(vectors, np.array([len(vectors)]))


def _append(path: Path, values: Values) -> None:
    """Append values to a file."""
    # The file is opened each time because a corpus may have more files than a process may open.
    with path.open("ab") as stream:
        # `ndarray.tofile` would hide the reason for a failure
        stream.write(np.ascontiguousarray(values).data)


def _offsets_path(path: Path) -> Path:
    return Path(f"{path}.offsets")


def _map(path: Path, dtype: type[np.generic]) -> Values:
    """Map a file of values into memory."""
    if not path.stat().st_size:
        return np.empty(0, dtype=dtype)  # an empty file cannot be mapped
    return np.memmap(path, dtype=dtype, mode="r")


@dataclass(frozen=True)
class PairStore:
    """The sentence pairs of a split as ids of the vocabularies, without specials."""

    source_ids: SequenceStore
    target_ids: SequenceStore
    token_links: SequenceStore | None = None
    """links of each pair, in which source and target positions alternate; None if the corpus has no
    links"""
    find_vectors: Callable[[int], FloatArray] | None = None
    """a function that takes the index of a pair and returns the vectors [S, F] of its source; None
    if all sources are texts"""
    find_extended: Callable[[int], ExtendedIds] | None = None
    """a function that takes the index of a pair and returns the pair's extended ids. If None, no
    target token can be copied from the source."""

    def __len__(self) -> int:
        return len(self.source_ids)

    def swapped(self) -> PairStore:
        """Return the pairs with source and target swapped, without links, vectors and extended
        ids."""
        return PairStore(self.target_ids, self.source_ids)

    def links(self, index: int) -> LinkArray:
        """Return the links of a pair as a view into the file: int32 [links, 2], source position and
        target position.

        Raises:
            ValueError: the pairs have no links.
        """
        if self.token_links is None:
            raise ValueError("these pairs have no links")
        return self.token_links[index].reshape(-1, 2)

    @property
    def source_lengths(self) -> npt.NDArray[np.int64]:
        """[pairs], number of source tokens without specials."""
        return np.diff(self.source_ids.offsets)

    @property
    def target_lengths(self) -> npt.NDArray[np.int64]:
        """[pairs], number of target tokens without specials."""
        return np.diff(self.target_ids.offsets)

    def batch(self, indices: Sequence[int], *, with_extended: bool = True) -> Batch:
        """Return the pairs at these indices as a padded batch.

        Only outputs that copy source tokens read extended ids. `with_extended=False` saves the time
        to compute them.
        """
        # `batch` is imported late because it imports torch, which worker processes do not need.
        from seq2seq_attn.data.batch import collate

        sources = [self.source_ids[index] for index in indices]
        targets = [self.target_ids[index] for index in indices]
        links = None
        extended = None
        vectors = None
        if self.token_links is not None:
            links = list(map(self.links, indices))
        if self.find_extended is not None and with_extended:
            extended = list(map(self.find_extended, indices))
        if self.find_vectors is not None:
            vectors = list(map(self.find_vectors, indices))
        return collate(sources, targets, indices, links=links, extended=extended, vectors=vectors)


class PreparedCorpus:
    """A prepared corpus: a folder that `prepare_corpus` wrote."""

    def __init__(self, directory: Path) -> None:
        """Open a folder, and check that it is complete.

        Raises:
            UserError: the folder is not a prepared corpus of this version, or a file is missing or
                damaged.
        """
        self.directory = directory
        self._hashes = check_files(directory)
        self.meta: dict[str, Any] = read_json(directory / META_NAME)

    def __repr__(self) -> str:
        return f"PreparedCorpus({str(self.directory)!r})"

    @property
    def splits(self) -> list[str]:
        """Return the names of the splits: `train`, `valid`, then the test sets."""
        return list(self.meta["splits"])

    @property
    def test_splits(self) -> list[str]:
        """Return the names of the test sets."""
        return [split for split in self.splits if split not in ("train", "valid")]

    @property
    def audit(self) -> dict[str, Any]:
        """Return the result of `SplitBuilder.audit` for each split."""
        return dict(self.meta["audit"])

    def text_hashes(self, sides: tuple[Side, Side] = SIDES) -> dict[str, str]:
        """Return the hashes by which a run recognizes its corpus.

        `content` is a hash of all files except the metadata and the known words, so that `content`
        does not depend on how the files were made. `train` is a hash of the training text, which
        does not depend on the tokenizer. `words`, which exists only with `data.vocab_from`, is the
        hash of the known words of the other run. `mixed`, which exists only with `data.mix`, is the
        `train` hash of the corpus from which pairs are drawn.

        Args:
            sides: the side that the run translates from, and the side that it translates to.
        """
        content = dict(self._hashes)
        content.pop(META_NAME)
        content.pop(WORDS, None)
        train = [self._hashes[f"train.{side}.txt"] for side in sides]
        hashes = {"content": sha256_of_values(content), "train": sha256_of_values(train)}
        if "words" in self.meta:
            hashes["words"] = self.meta["words"]
        if "mix" in self.meta:
            hashes["mixed"] = self.meta["mix"]["text"]
        return hashes

    def line_facts(self, sides: tuple[Side, Side] = SIDES) -> LineFacts:
        """Return the facts about the training lines. `sides` are the side that a run translates
        from, and the side that it translates to."""
        path = partial(split_path, self.directory, "train")
        sizes = [np.diff(SequenceStore(path(side, "tokens")).offsets) for side in sides]
        tokenizer: Source = self.source_tokenizer if sides == SIDES else self.target_tokenizer
        lines: Iterable[str] = ()
        # Lines are split into sentences only if the source is a single text that is translated into
        # text. No other lines are searched for sentences.
        if isinstance(tokenizer, Tokenizer) and not self.target_tokenizer.has_positions:
            step = 1 + len(sizes[0]) // NUM_LINES
            lines = islice(iter_exact(path(sides[0], "txt")), 0, None, step)
        return find_line_facts(lines, *sizes)

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
        """Return the vocabulary of the target side, which equals the vocabulary of the source side
        if the vocabulary is joint."""
        return Vocab.load(vocab_path(self.directory, "target"))

    def pairs(self, split: str) -> PairStore:
        """Return the pairs of a split as ids, with links between their tokens if the corpus was
        prepared with `data.links`."""
        path = partial(split_path, self.directory, split)
        source_tokens, target_tokens = map(TokenStore, side_paths(self.directory, split, "tokens"))
        links = SequenceStore(path("token_links"))
        vectors = SequenceStore(path("vectors"), np.float32)
        size = self.source_tokenizer.vector_size or 0

        def find_vectors(index: int) -> FloatArray:
            tokens = source_tokens[index]
            positions = self.source_tokenizer.vector_positions(tokens)
            return place_vectors(vectors[index].reshape(-1, size), positions, len(tokens))

        def extended(index: int) -> ExtendedIds:
            source = self.target_tokenizer.spell_source(source_tokens[index])
            return extended_ids(source, target_tokens[index], self.target_vocab)

        return PairStore(
            SequenceStore(path("source", "ids")),
            SequenceStore(path("target", "ids")),
            links if links.exists() else None,
            find_vectors if vectors.exists() else None,
            extended,
        )

    def text(self, split: str) -> tuple[list[str], list[str]]:
        """Return the untokenized source lines and target lines, aligned with `pairs(split)`."""
        sources, targets = map(iter_exact, side_paths(self.directory, split, "txt"))
        return list(sources), list(targets)

    def links(self, split: str) -> list[str] | None:
        """Return the gold links of each pair in Pharaoh format ("0-0 1-2"), aligned with
        `pairs(split)`, or None if the split has no gold links."""
        path = split_path(self.directory, split, LINKS)
        return list(iter_exact(path)) if path.is_file() else None


def split_path(directory: Path, split: str, *kind: str) -> Path:
    """Return the path of a file of a split.

    Args:
        directory: the folder of the corpus.
        split: the name of the split.
        kind: for a side, `source` or `target` and then `txt` for its lines, `tokens` for its
            `TokenStore`, or `ids` for the `SequenceStore` of its ids. For both sides, `token_links`
            or `vectors` for a `SequenceStore`, or `links` for the lines of word alignments.
    """
    return directory / ".".join((split, *kind))


def side_paths(directory: Path, split: str, *kind: str) -> list[Path]:
    """Return the paths of the files of source and target of a split. The arguments are those of
    `split_path`, but `kind` does not name the side."""
    return [split_path(directory, split, side, *kind) for side in SIDES]


def vocab_path(directory: Path, side: Side) -> Path:
    """Return the path of the vocabulary of a side."""
    return directory / f"{side}.vocab"


def iter_exact(path: Path) -> Iterator[str]:
    """Yield the lines of a file that `open_lines` wrote. Only the final '\\n' of each line is
    removed, so that a line may contain any other character."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield line[:-1]


def open_lines(path: Path, mode: str = "w") -> IO[str]:
    """Open a text file whose lines end in '\\n' on every operating system."""
    return path.open(mode, encoding="utf-8", newline="\n")
