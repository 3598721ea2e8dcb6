"""Locate the raw text of a corpus: Multi30k, the embedded corpus, or the user's own files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from seq2seq_attn.config import DataConfig, shorten
from seq2seq_attn.config.data import LimitConfig
from seq2seq_attn.data import own_text
from seq2seq_attn.data.links import GOLD, links_file, links_identity
from seq2seq_attn.data.vectors import hashes_of_vectors
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import sha256_of, sha256_of_values, write_lines
from seq2seq_attn.text import captions, multi30k
from seq2seq_attn.text.corpus import iter_lines, iter_raw_lines
from seq2seq_attn.text.parallel import Text
from seq2seq_attn.text.tokenizers.base import VECTORS


@dataclass(frozen=True)
class RawCorpus:
    """The location of the raw text. `files` is called only if the corpus must be prepared."""

    identity: dict[str, Any]
    """the part of the folder's hash that stands for the raw text"""
    files: Callable[[], dict[str, tuple[Path, Path]]]
    """maps each split to (source file, target file), train first"""
    links: dict[str, Path] = field(default_factory=dict)
    """maps each split to its file of gold alignments; they exist once `files` was called"""
    train_links: Path | None = None
    """the Pharaoh file for `data.links`, one line per training pair of `files`; exists once `files` was called"""
    notes: list[str] = field(default_factory=list)
    """one line per change that `files` made to the text; empty before"""

    def limited(self, limit: LimitConfig, directory: Path) -> RawCorpus:
        """The first pairs of each split, with their links. Files of a split with a limit are copied to `directory`."""

        def head(path: Path, split: str, kind: str) -> Path:
            return _head(path, limit.for_split(split), directory / f"{split}.{kind}")

        files = {
            split: (head(source, split, "source"), head(target, split, "target"))
            for split, (source, target) in self.files().items()
        }
        links = {split: head(path, split, "gold") for split, path in self.links.items()}
        train_links = None if self.train_links is None else head(self.train_links, "train", "links")
        return replace(self, files=lambda: files, links=links, train_links=train_links)


def _head(path: Path, num_lines: int | None, copy: Path) -> Path:
    """A file with the first lines of another; without a number, the file itself."""
    if num_lines is None:
        return path
    copy.parent.mkdir(exist_ok=True)
    with copy.open("wb") as stream:
        stream.writelines(line + b"\n" for line in islice(iter_raw_lines(path), num_lines))
    return copy


def find_raw_corpus(data: DataConfig, *, show_progress: bool = False) -> RawCorpus:
    """Locate the raw text of a configuration.

    Raises:
        UsageError: the configuration does not name a valid corpus.
        UserError: a file does not exist.
    """
    if data.corpus == "multi30k":
        return _raw_multi30k(data, show_progress)
    return _raw_captions(data) if data.corpus == "captions" else _raw_files(data)


def split_names(data: DataConfig) -> list[str]:
    """The splits of a corpus, `train` and `valid` first. Files need not exist.

    Raises:
        UsageError: the configuration does not name a valid corpus.
    """
    check_sources(data)
    languages = (*data.sources, data.target_language)
    if data.corpus == "multi30k":
        return list(multi30k.published_splits(*languages))
    if data.corpus == "captions":
        captions.check_languages(data.source_name, data.target_language)
        return [*captions.SPLITS]
    return list(dict.fromkeys(["train", "valid", *own_text.name_splits(data)]))  # valid may be set aside


def check_sources(data: DataConfig) -> None:
    """Raises UsageError if a text is named that the corpus does not read, a source language is given twice, or several
    sources or a source of vectors are combined with settings for a single text."""
    for key, named in (("train", data.train), ("valid", data.valid), ("test", data.test)):
        if named and data.corpus != "files":
            raise UsageError(
                f"data.{key}={shorten(named)}: not read with data.corpus={data.corpus}; set data.corpus=files, or use "
                "--train TEXT"
            )
    given = shorten(data.source_languages)
    if len(set(data.sources)) < len(data.sources):
        raise UsageError(f"data.source_languages={given}: a language is given twice; name each source once")
    if data.sources == [VECTORS]:
        need = f"needs a source of text, but the only source is {VECTORS}: name a language"
    elif len(data.sources) > 1:
        need = f"needs a single source, but data.source_languages={given} names several: name one"
    else:
        return
    if data.links is not None:
        raise UsageError(f"data.links={shorten(data.links)}: {need}, or set data.links=null")
    if data.tokenizer.sentences:
        raise UsageError(f"data.tokenizer.sentences=true: {need}, or set data.tokenizer.sentences=false")


def _raw_multi30k(data: DataConfig, show_progress: bool) -> RawCorpus:
    languages = (*data.sources, data.target_language)
    splits = multi30k.published_splits(*languages)

    def files() -> dict[str, tuple[Path, Path]]:
        directory = multi30k.fetch(data.data_dir, data.source_dir, languages=languages, show_progress=show_progress)
        paths = {split: [directory / name for name in names] for split, names in splits.items()}
        if len(data.sources) == 1:
            return {split: (source, target) for split, (source, target) in paths.items()}
        texts = {split: Text(tuple(sides), languages) for split, sides in paths.items()}
        return own_text.write_splits(directory / "-".join(languages), texts)[0]

    # the checksums are known in advance, so a prepared corpus needs neither the raw files nor the network
    identity = {split: [multi30k.SHA256[name] for name in names] for split, names in splits.items()}
    return RawCorpus(identity, files, train_links=links_file(data))


def _raw_captions(data: DataConfig) -> RawCorpus:
    splits = captions.find_captions(data.source_dir, data.source_name, data.target_language)
    files = {split: (paths.source, paths.target) for split, paths in splits.items()}
    identity = {split: [*map(sha256_of, paths)] for split, paths in splits.items()}
    is_reversed = data.source_name != captions.SOURCE
    directory = data.data_dir / f"captions-{sha256_of_values(identity)[:12]}"
    links = {split: directory / f"{split}.links" if is_reversed else paths.links for split, paths in splits.items()}

    def with_links() -> dict[str, tuple[Path, Path]]:
        for split, paths in splits.items() if is_reversed else ():
            write_lines(links[split], map(captions.reverse_links, iter_lines(paths.links)))
        return files

    return RawCorpus(
        identity, with_links, links, train_links=links["train"] if data.links == GOLD else links_file(data)
    )


def _raw_files(data: DataConfig) -> RawCorpus:
    texts = own_text.find_splits(data)
    identity: dict[str, Any] = {
        split: [*map(sha256_of, text.paths), *hashes_of_vectors(data.sources, text), *text.columns]
        for split, text in texts.items()
    }
    identity |= {"languages": texts["train"].languages, "filter": sorted(data.filter), "set_aside": own_text.SET_ASIDE}
    links = links_identity(data)
    directory = data.data_dir / f"own-{sha256_of_values({'text': identity, **links})[:12]}"
    notes: list[str] = []

    @cache  # `limited` asks again
    def rewritten() -> dict[str, tuple[Path, Path]]:
        written, notes[:] = own_text.write_splits(directory, texts, drop=data.filter, links=links_file(data))
        return written

    train_links = directory / own_text.TRAIN_LINKS if links_file(data) else None
    return RawCorpus(identity, rewritten, train_links=train_links, notes=notes)
