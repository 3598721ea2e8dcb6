"""A prepared corpus, one folder: ids and vectors in memory-mapped files, their text, vocabularies and tokenizers.

The files hold open ids: a token that its side's vocabulary lacks has an id of its own, from the vocabulary's size on.
Batches have UNK in its place; only its surface id (`surface.py`) says which token it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.data.id_store import IdStore
from seq2seq_attn.data.surface import POSITIONS, IdArray, Positions, Spellings, surface_of
from seq2seq_attn.data.vectors import VectorStore, vectors_prefix
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_checked_json, read_regular, sha256_of, sha256_of_values
from seq2seq_attn.text.tokenizers.base import SIDES, Side, Tokenizer
from seq2seq_attn.text.tokenizers.factory import load_tokenizer
from seq2seq_attn.text.vocab import UNK, Vocab

if TYPE_CHECKING:
    from seq2seq_attn.data.batch import Batch, LinkArray

FORMAT_VERSION = 2
"""Increased when the files change. Older folders are then prepared again."""
TOKENS_VERSION = 1
"""Increased when the same text gives other tokens or ids. Part of the folder's hash."""
SURFACES_NAME = "surfaces.npy"
META_NAME = "meta.json"
VALID_SOURCES = "valid_sources_sha256"
"""A run's best model has this hash in its metadata, so that `evaluate` knows which pairs training did not see."""
TRAIN_TEXT = "train_text_sha256"
"""The same for the training pairs, so that `evaluate` groups runs of the same text only."""
_AGAIN = "prepare the data again"


class PairStore:
    """The sentence pairs of a split as ids, without specials, optionally with links between their tokens."""

    def __init__(
        self,
        source: IdStore,
        target: IdStore,
        links: IdStore | None = None,
        spellings: Spellings | None = None,
        vectors: VectorStore | None = None,
    ) -> None:
        """`links`: source and target positions alternate. Without `spellings`, ids are those of the vocabularies, and
        no target token is known to be a source token."""
        self._source = source
        self._target = target
        self._links = links
        self._spellings = spellings
        self._vectors = vectors

    def __len__(self) -> int:
        return len(self._source)

    def source(self, index: int) -> IdArray:
        """int32 ids of a source sentence, unknown tokens as UNK."""
        ids = self._source[index]
        return ids if self._spellings is None else _known(ids, self._spellings.num_source_ids)

    def target(self, index: int) -> IdArray:
        """int32 ids of a target sentence, unknown tokens as UNK."""
        ids = self._target[index]
        return ids if self._spellings is None else _known(ids, self._spellings.num_target_ids)

    @property
    def has_links(self) -> bool:
        """Whether the pairs have links."""
        return self._links is not None

    def links(self, index: int) -> LinkArray:
        """int32 [links, 2], source and target positions; a view into the file.

        Raises:
            ValueError: the pairs have no links.
        """
        if self._links is None:
            raise ValueError("these pairs have no links")
        return self._links[index].reshape(-1, 2)

    @property
    def source_lengths(self) -> npt.NDArray[np.int64]:
        """[pairs], tokens."""
        return np.diff(self._source.offsets)

    @property
    def target_lengths(self) -> npt.NDArray[np.int64]:
        """[pairs], tokens."""
        return np.diff(self._target.offsets)

    def batch(self, indices: Sequence[int]) -> Batch:
        """The pairs at these indices, padded."""
        from seq2seq_attn.data.batch import collate  # torch, which reading a run's settings does without

        sources = [self._source[index] for index in indices]
        targets = [self._target[index] for index in indices]
        links = [self.links(index) for index in indices] if self.has_links else None
        spellings, store = self._spellings, self._vectors
        vectors = None if store is None else [*map(store.at_positions, indices, sources)]
        if spellings is None:
            return collate(sources, targets, indices, links, vectors=vectors)
        surfaces = [
            surface_of(spellings.on_target_side(source), target, spellings.num_target_ids)
            for source, target in zip(sources, targets, strict=True)
        ]
        sources = [_known(source, spellings.num_source_ids) for source in sources]
        targets = [_known(target, spellings.num_target_ids) for target in targets]
        return collate(sources, targets, indices, links, surfaces, vectors)


def _known(open_ids: IdArray, num_ids: int) -> IdArray:
    """Unknown tokens as UNK."""
    return np.where(open_ids < num_ids, open_ids, np.int32(UNK))


class PreparedCorpus:
    """A folder that `prepare_corpus` wrote."""

    def __init__(self, directory: Path) -> None:
        """Open a folder and check that it is complete.

        Raises:
            UserError: it is not a prepared corpus of this version, or a file is missing or damaged.
        """
        self.directory = directory
        try:
            meta = read_checked_json(directory / META_NAME)
        except UserError as error:
            raise UserError(f"{error}; {_AGAIN}") from None
        if meta.get("format") != FORMAT_VERSION:
            raise UserError(f"{directory}: not a prepared corpus of format {FORMAT_VERSION}; {_AGAIN}")
        self.meta: dict[str, Any] = meta
        files = meta.get("files")
        if not (isinstance(files, dict) and {"config", "splits", "audit", "hashes"} <= meta.keys()):
            raise UserError(f"{directory / META_NAME}: damaged; {_AGAIN}")
        for name, size in files.items():
            path = directory / name
            actual = path.stat().st_size if path.is_file() else None
            if actual != size:
                state = "missing" if actual is None else f"{actual} bytes instead of {size}"
                raise UserError(f"{path}: {state}; {_AGAIN}")
        for name, digest in meta["hashes"].items():
            if sha256_of(directory / name) != digest:
                raise UserError(f"{directory / name}: damaged (its SHA-256 is not the recorded one); {_AGAIN}")

    def __repr__(self) -> str:
        return f"PreparedCorpus({str(self.directory)!r})"

    @property
    def splits(self) -> list[str]:
        """`train`, `valid`, then the test sets."""
        return list(self.meta["splits"])

    @property
    def test_splits(self) -> list[str]:
        """The test sets."""
        return [split for split in self.splits if split not in ("train", "valid")]

    @property
    def source_language(self) -> str:
        """Code of the source language, `de`; `de+fr+cs` for several."""
        return str(self.meta["config"]["source_language"])

    @property
    def target_language(self) -> str:
        """Code of the target language, `en`."""
        return str(self.meta["config"]["target_language"])

    @property
    def audit(self) -> dict[str, Any]:
        """The audit of each split (`SplitAudit`)."""
        return dict(self.meta["audit"])

    @property
    def content_hash(self) -> str:
        """The hash of all texts, ids, tokenizers and vocabularies, however they were made."""
        return sha256_of_values(self.meta["hashes"])

    def has_hash(self, digest: str | None) -> bool:
        """Whether a run that saved this hash was trained on the same corpus. Runs of earlier versions saved the hash of
        the folder, which depends on what the corpus was made from."""
        return digest in (self.content_hash, self.meta["hash"])

    @property
    def train_sha256(self) -> str:
        """The hash of the lines of the training pairs, whatever tokenizes them."""
        hashes = [self.meta["hashes"][f"train.{side}.txt"] for side in SIDES]
        return sha256_of_values(hashes)

    def valid_sha256(self, side: Side) -> str:
        """The hash of the lines of one side of the validation set, whatever tokenizes them."""
        return str(self.meta["hashes"][f"valid.{side}.txt"])

    @cached_property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of the source side."""
        return load_tokenizer(self.directory, "source")

    @cached_property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of the target side."""
        return load_tokenizer(self.directory, "target")

    @cached_property
    def source_vocab(self) -> Vocab:
        """The vocabulary of the source side."""
        return Vocab.load(vocab_path(self.directory, "source"))

    @cached_property
    def target_vocab(self) -> Vocab:
        """The vocabulary of the target side; equal to the source side's if it is joint."""
        return Vocab.load(vocab_path(self.directory, "target"))

    def pairs(self, split: str) -> PairStore:
        """The pairs of a split as ids, with links between their tokens if configured.

        Raises:
            UserError: there is no such split.
        """
        self._check(split)
        source, target = (IdStore(self.directory / f"{split}.{side}") for side in SIDES)
        links = IdStore(links_prefix(self.directory, split))
        of_vectors = vectors_prefix(self.directory, split)
        vectors = VectorStore(of_vectors, self.source_tokenizer) if VectorStore.exists(of_vectors) else None
        return PairStore(source, target, links if links.exists() else None, self._spellings, vectors)

    def text(self, split: str) -> tuple[list[str], list[str]]:
        """The lines of both sides as published, aligned with `pairs(split)`.

        Raises:
            UserError: there is no such split.
        """
        self._check(split)
        source, target = (_read_exact(self.directory / f"{split}.{side}.txt") for side in SIDES)
        return source, target

    def links(self, split: str) -> list[str] | None:
        """Gold word alignments in Pharaoh format ("0-0 1-2"), aligned with `pairs(split)`; None if the corpus has none.

        Raises:
            UserError: there is no such split.
        """
        self._check(split)
        path = self.directory / f"{split}.links"
        return _read_exact(path) if path.is_file() else None

    @cached_property
    def _spellings(self) -> Spellings:
        if self.target_tokenizer.name == POSITIONS:
            return Positions(len(self.source_vocab), self.target_vocab)
        return Spellings(self.directory / SURFACES_NAME, len(self.source_vocab), len(self.target_vocab))

    def _check(self, split: str) -> None:
        if split not in self.splits:
            raise UserError(f"split {split!r}: this corpus has {', '.join(self.splits)}")


def links_prefix(directory: Path, split: str) -> Path:
    """The prefix of the `IdStore` with the links between the tokens of a split."""
    return directory / f"{split}.links"


def vocab_path(directory: Path, side: Side) -> Path:
    """The path of a side's vocabulary."""
    return directory / f"{side}.vocab"


def _read_exact(path: Path) -> list[str]:
    # what was written: nothing is stripped, a line may be anything without '\n'
    try:
        return read_regular(path).decode("utf-8").split("\n")[:-1]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: damaged ({error}); {_AGAIN}") from None
