"""Locate the raw text of a corpus: Multi30k, the embedded corpus, or the user's own files; and
extra training pairs (`data.extra`), without any sentence of the corpus's validation and test
sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seq2seq_attn.config import DataConfig, shorten
from seq2seq_attn.config.layout import SourceLayout
from seq2seq_attn.data import own_text
from seq2seq_attn.data.links import IBM1
from seq2seq_attn.data.store import split_path
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import sha256_of
from seq2seq_attn.text import captions, multi30k
from seq2seq_attn.text.corpus import Text
from seq2seq_attn.text.lines import iter_lines
from seq2seq_attn.text.normalize import bare
from seq2seq_attn.text.tokenizers.base import SIDES
from seq2seq_attn.text.tokenizers.vectors import hash_vectors, real_name

EXTRA = ".extra"
"""the lines of extra pairs, as a split"""
PACKAGED_NEEDS = (
    "if the configuration is a packaged one, the comment at its top says how to make what it needs"
)
"""after an error about a file or a run that a configuration names"""
_DENIED = "equal letters, digits and marks, case ignored; with one source, tabs are spaces"
"""which sentences count as one of a validation or test set: part of the folder's hash"""
_DENIED_FILES = "equal real paths"
"""the same for files of vectors"""


class RawCorpus(NamedTuple):
    """A corpus that was found, before it is read."""

    identity: dict[str, Any]
    """the part of the folder's hash that stands for the raw text"""
    locate: Callable[[], Mapping[str, Text]]
    """the text of each split; downloads it where necessary, so it is called only if the corpus must
    be prepared"""
    gold: Mapping[str, Path] = {}
    """files of gold alignments by split"""


def find_raw_corpus(data: DataConfig, *, show_progress: bool = False) -> RawCorpus:
    """Locate the raw text of a configuration.

    Raises:
        UsageError: the configuration does not name a valid corpus.
        UserError: a file does not exist.
    """
    languages = (*data.sources, data.target_language)
    if data.corpus == "multi30k":
        published = multi30k.published_splits(*languages)

        def fetch() -> Mapping[str, Text]:
            folder = multi30k.fetch(
                data.data_dir, data.source_dir, languages=languages, show_progress=show_progress
            )
            return {
                split: Text(tuple(folder / name for name in names), languages)
                for split, names in published.items()
            }

        # the checksums are known in advance, so a prepared corpus needs neither the raw files nor
        # the network
        hashes = {
            split: [multi30k.SHA256[name] for name in names] for split, names in published.items()
        }
        return RawCorpus(hashes, fetch)
    if data.corpus == "captions":
        files = captions.find_captions(data.source_dir, data.source_name, data.target_language)
        return RawCorpus(
            identity={split: [*map(sha256_of, paths)] for split, paths in files.items()},
            locate=lambda: {
                split: Text((paths.source, paths.target), languages)
                for split, paths in files.items()
            },
            gold={split: paths.links for split, paths in files.items()},
        )
    texts = own_text.find_splits(data)
    splits = {
        split: [*_hashes(data.layout, text), *text.columns, text.has_header]
        for split, text in texts.items()
    }
    rules = {
        "languages": texts["train"].languages,
        "filter": sorted(data.filter),
        "set_aside": own_text.SET_ASIDE,
    }
    return RawCorpus({"splits": splits, **rules}, lambda: texts)


def split_names(data: DataConfig) -> list[str]:
    """The splits of a corpus, `train` and `valid` first. Files need not exist. Raises UsageError:
    the configuration does not name a valid corpus, a text is named that the corpus does not read, a
    source language is given twice, or several sources or a source of vectors are combined with
    settings for a single text."""
    for key, spec in (("train", data.train), ("valid", data.valid), ("test", data.test)):
        if spec and data.corpus != "files":
            raise UsageError(
                f"data.{key}={shorten(spec)}: not read with data.corpus={data.corpus}; set "
                "data.corpus=files, or use --train TEXT"
            )
    if len(data.sources) > 1 and len(data.sources) > len(data.layout.columns):
        raise UsageError(
            f"data.source_languages={shorten(data.source_languages)}: none stands alone"
        )
    if len(set(data.sources)) < len(data.sources):
        raise UsageError(
            f"data.source_languages={shorten(data.source_languages)}: a language is given twice; "
            "name each source once"
        )
    if not data.layout.is_one_text:
        need = (
            "needs a single source of text, but "
            f"data.source_languages={shorten(data.sources)}: name one language"
        )
        if data.links is not None:
            raise UsageError(f"data.links={shorten(data.links)}: {need}, or set data.links=null")
        if data.tokenizer.sentences:
            raise UsageError(
                f"data.tokenizer.sentences=true: {need}, or set data.tokenizer.sentences=false"
            )
    languages = (*data.sources, data.target_language)
    if data.corpus == "multi30k":
        return list(multi30k.published_splits(*languages))
    if data.corpus == "captions":
        captions.check_languages(data.source_name, data.target_language)
        return [*captions.SPLITS]
    return list(
        dict.fromkeys(["train", "valid", *own_text.name_splits(data)])
    )  # valid may be set aside


def _hashes(layout: SourceLayout, text: Text) -> list[str]:
    """The hashes of the files of a text, and that of the files that its source of vectors names.
    Raises UserError: a file cannot be read."""
    hashes = [*map(sha256_of, text.paths)]
    if layout.vector_column is not None:
        hashes.append(hash_vectors(layout.vector_files(source for source, _ in text.pairs())))
    return hashes


def find_extra(data: DataConfig) -> list[Text]:
    """Locate the texts that `data.extra` names.

    Raises:
        UsageError: word alignments are given, which extra pairs lack; or as `find_text`.
        UserError: a file does not exist.
    """
    if (data.extra or data.mix) and data.links not in (None, IBM1):
        raise UsageError(
            f"data.links={shorten(data.links)}: aligns the pairs of the corpus, not those of "
            f"data.extra and data.mix; set data.links={IBM1} or null"
        )
    try:
        return [own_text.find_data_text(spec, data) for spec in data.extra]
    except UserError as error:
        raise type(error)(f"data.extra: {error}; {PACKAGED_NEEDS}") from None


def extra_identity(data: DataConfig) -> dict[str, Any]:
    """The part of the folder's hash that depends on the extra pairs; empty without. Raises
    UsageError, UserError as `find_extra`."""
    texts = find_extra(data)
    if not texts:
        return {}
    denied = f"{_DENIED}; {_DENIED_FILES}" if data.layout.vector_column is not None else _DENIED
    hashes = [_hashes(data.layout, text) for text in texts]
    return {"extra": {"texts": hashes, "in_vocab": data.extra_in_vocab, "denied": denied}}


def write_extra(
    directory: Path,
    texts: Iterable[tuple[str, Iterable[tuple[str, str]]]],
    data: DataConfig,
    held_out: Sequence[str],
) -> tuple[int, list[str]]:
    """Write the pairs of named texts as split `EXTRA` beside the lines of the corpus in
    `directory`, without those that have a sentence of one of its splits `held_out` on either side.
    Returns their number, and a note about each text. Raises UserError: a text cannot be read."""
    denied: set[str] = set()
    for split in held_out:
        sources, targets = (iter_lines(split_path(directory, split, side)) for side in SIDES)
        denied |= sentence_keys(sources, data.layout) | sentence_keys(targets)
    num_pairs = 0
    notes = []
    paths = [split_path(directory, EXTRA, side) for side in SIDES]
    sources_file, targets_file = (path.open("w", encoding="utf-8", newline="\n") for path in paths)
    with sources_file, targets_file:
        for name, pairs in texts:
            num_kept = num_dropped = 0
            for source, target in pairs:
                if denied.isdisjoint(
                    sentence_keys([source], data.layout) | sentence_keys([target])
                ):
                    sources_file.write(
                        f"{source}\n" if data.layout.columns else "\n"
                    )  # language models read none
                    targets_file.write(f"{target}\n")
                    num_kept += 1
                else:
                    num_dropped += 1
            notes.append(
                f"extra: {name}: {num_kept:,} pairs; {num_dropped:,} dropped, because they "
                "contain a sentence of a validation or test set"
            )
            num_pairs += num_kept
    return num_pairs, notes


def sentence_keys(lines: Iterable[str], layout: SourceLayout | None = None) -> set[str]:
    """The sentences of these lines as `bare` leaves them, without blank ones; a source line with
    several columns has a sentence per column. `layout`: of source lines. The key of a file of
    vectors is its real path."""
    keys = set()
    for line in lines:
        sentences = [line] if layout is None else layout.split(line)
        for column, sentence in enumerate(sentences):
            is_file = layout is not None and column == layout.vector_column
            keys.add(real_name(sentence) if is_file else bare(sentence))
    return keys - {""}
