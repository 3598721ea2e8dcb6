"""Locate the raw text of a corpus, and the texts of extra training pairs (`data.extra`).

`data.corpus` chooses Multi30k, captions with gold links, or files of the user.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from seq2seq_attn.config import DataConfig, shorten
from seq2seq_attn.data.links import IBM1
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import sha256_of
from seq2seq_attn.text import captions, multi30k
from seq2seq_attn.text.corpus import KINDS, Spec, Text, find_text
from seq2seq_attn.text.tokenizers.vectors import hash_vectors

PACKAGED_NEEDS = (
    "if the configuration is a packaged one, the comment at its top says how to make what it needs"
)
"""the advice that follows an error about a missing file or run that a configuration names"""


class RawCorpus(NamedTuple):
    """The raw text of a corpus, before its pairs are read."""

    identity: dict[str, Any]
    """the values that stand for the raw text in the hash of the prepared corpus: hashes of the
    files of each split, and for files of the user also the settings that decide what is read"""
    locate: Callable[[], Mapping[str, Text]]
    """a function that returns the text of each split. It is called only if the corpus must be
    prepared, because it may download the text."""
    gold: Mapping[str, Path] = {}
    """the file of gold links of each split; empty if the corpus has no gold links"""


def find_raw_corpus(data: DataConfig) -> RawCorpus:
    """Locate the raw text of the corpus that a configuration names, and hash files that exist.

    Raises:
        UsageError: the configuration does not name a valid corpus.
        UserError: a file does not exist or cannot be read.
    """
    if data.corpus == "multi30k":
        return _find_multi30k(data)
    if data.corpus == "captions":
        return _find_captions(data)
    return _find_own_texts(data)


def _find_own_texts(data: DataConfig) -> RawCorpus:
    """Locate the texts of the user, and hash them when all texts are found."""
    texts = {}
    for split, spec in _name_own_splits(data).items():
        texts[split] = _find_own_text(spec, data)
    splits = {}
    for split, text in texts.items():
        splits[split] = [*_hash_files(text), *text.columns, text.has_header]
    identity = {
        "splits": splits,
        "languages": texts["train"].languages,
        "filter": sorted(data.filter),
    }
    return RawCorpus(identity, lambda: texts)


def _find_multi30k(data: DataConfig) -> RawCorpus:
    """Describe Multi30k in the languages of a configuration. Nothing is downloaded before `locate`
    is called."""
    languages = (*data.sources, data.target_language)
    published = multi30k.published_splits(*languages)

    def fetch() -> Mapping[str, Text]:
        folder = multi30k.fetch(data.data_dir, data.source_dir, languages=languages)
        texts = {}
        for split, names in published.items():
            texts[split] = Text(tuple([folder / name for name in names]), languages)
        return texts

    # The checksums are constants, so a prepared corpus is found again without the raw files or the
    # network.
    hashes = {}
    for split, names in published.items():
        hashes[split] = [multi30k.SHA256[name] for name in names]
    return RawCorpus(hashes, fetch)


def _find_captions(data: DataConfig) -> RawCorpus:
    """Locate and hash captions with gold links, in `data.source_dir` or else in the package."""
    files = captions.find_captions(data.source_dir, data.source_name, data.target_language)
    languages = (data.source_name, data.target_language)
    hashes = {}
    texts = {}
    gold = {}
    for split, paths in files.items():
        hashes[split] = [sha256_of(path) for path in paths]
        texts[split] = Text((paths.source, paths.target), languages)
        gold[split] = paths.links
    return RawCorpus(hashes, lambda: texts, gold)


def _name_own_splits(data: DataConfig) -> dict[str, Spec]:
    """Return the files or prefixes that hold the user's text, by split, `train` first.

    `valid` is missing if some training pairs become the validation set. The files need not exist.

    Raises:
        UsageError: there is no training text, or the name of a test set is not valid.
    """
    if data.train is None:
        raise UsageError(
            "data.train is not set: with data.corpus=files, name your text by --train TEXT: "
            f"{KINDS}"
        )
    for split in data.test:
        if split in ("train", "valid"):
            raise UsageError(
                f"data.test.{split}: the name of another split; give the test set another name"
            )
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", split):
            raise UsageError(
                f"data.test.{split}: not valid as a name; use letters, digits, '_', '-' and '.'"
            )
    splits: dict[str, Spec] = {"train": data.train}
    if data.valid is not None:
        splits["valid"] = data.valid
    return splits | data.test


def _find_own_text(spec: Spec, data: DataConfig) -> Text:
    """Locate a text of the user, in the languages and columns of a configuration."""
    return find_text(spec, *data.sources, data.target_language, columns=data.columns)


def split_names(data: DataConfig) -> list[str]:
    """Check the names of texts and languages, and return the names of the splits: `train`, `valid`,
    then the test sets. The files need not exist.

    Raises:
        UsageError: the configuration does not name a valid corpus; a text is named that the corpus
            does not read; or the sources are not valid (`_check_sources`).
    """
    for key, spec in (("train", data.train), ("valid", data.valid), ("test", data.test)):
        if spec and data.corpus != "files":
            raise UsageError(
                f"data.{key}={shorten(spec)}: not read with data.corpus={data.corpus}; set "
                "data.corpus=files, or use --train TEXT"
            )
    _check_sources(data)
    if data.corpus == "multi30k":
        return list(multi30k.published_splits(*data.sources, data.target_language))
    if data.corpus == "captions":
        captions.check_languages(data.source_name, data.target_language)
        return list(captions.SPLITS)
    _name_own_splits(data)
    return ["train", "valid", *data.test]


def _check_sources(data: DataConfig) -> None:
    """Raise UsageError if a source language is given twice; if `none` is combined with other source
    languages; or if several sources, or a source that is a file of vectors, are combined with
    settings for a single text."""
    named = f"data.source_languages={shorten(data.sources)}"
    # The source language `none`, of a language model, has no column.
    has_none = len(data.sources) > len(data.layout.columns)
    if has_none and len(data.sources) > 1:
        raise UsageError(f"{named}: 'none' cannot be combined with other languages")
    if len(set(data.sources)) < len(data.sources):
        raise UsageError(f"{named}: a language is given twice; name each source once")
    if not data.layout.is_one_text:
        need = f"needs a single source of text, but {named}: name one language"
        if data.links is not None:
            raise UsageError(f"data.links={shorten(data.links)}: {need}, or set data.links=null")
        if data.tokenizer.sentences:
            raise UsageError(
                f"data.tokenizer.sentences=true: {need}, or set data.tokenizer.sentences=false"
            )


def _hash_files(text: Text) -> list[str]:
    """Return the hash of each file of a text. If a source is vectors, the last hash stands for all
    files of vectors that the source lines name.

    Raises:
        UserError: a file cannot be read.
    """
    hashes = [sha256_of(path) for path in text.paths]
    if text.layout.vector_column is not None:
        lines = (source for source, _ in text.pairs())
        hashes.append(hash_vectors(text.layout.vector_files(lines)))
    return hashes


def find_extra(data: DataConfig) -> list[Text]:
    """Locate the texts that `data.extra` names.

    Raises:
        UsageError: `data.links` names word alignments, which the pairs of `data.extra` and
            `data.mix` do not have; or `find_text` raises UsageError.
        UserError: a file does not exist.
    """
    if (data.extra or data.mix) and data.links not in (None, IBM1):
        raise UsageError(
            f"data.links={shorten(data.links)}: aligns the pairs of the corpus, not those of "
            f"data.extra and data.mix; set data.links={IBM1} or null"
        )
    try:
        return [_find_own_text(spec, data) for spec in data.extra]
    except UserError as error:
        raise type(error)(f"data.extra: {error}; {PACKAGED_NEEDS}") from None


def extra_identity(data: DataConfig) -> dict[str, Any]:
    """Return the values that stand for the extra pairs in the hash of the prepared corpus. The
    result is empty if there are no extra pairs.

    Raises:
        UsageError, UserError: see `find_extra`.
    """
    hashes = [[*_hash_files(text), *text.columns] for text in find_extra(data)]
    if not hashes:
        return {}
    return {"extra": {"texts": hashes, "in_vocab": data.extra_in_vocab}}
