"""Extra training pairs (`data.extra`), without any sentence of the corpus's validation and test sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seq2seq_attn.config import Config, DataConfig, shorten
from seq2seq_attn.data.links import IBM1
from seq2seq_attn.data.own_text import check_headers, find_splits
from seq2seq_attn.data.vectors import hashes_of_vectors
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import sha256_of
from seq2seq_attn.text.corpus import iter_lines
from seq2seq_attn.text.normalize import bare
from seq2seq_attn.text.parallel import Text, find_text
from seq2seq_attn.text.tokenizers.base import SIDES, SOURCE_END, VECTORS
from seq2seq_attn.text.tokenizers.vectors import real_name

PACKAGED_NEEDS = "if the configuration is a packaged one, the comment at its top says how to make what it needs"
"""after an error about a file or a run that a configuration names"""
_DENIED = "equal letters, digits and marks, case ignored; with one source, tabs are spaces"
"""which sentences count as one of a validation or test set: part of the folder's hash"""
_DENIED_VECTORS = "equal real paths"
"""the same for files of vectors"""


def find_extra(data: DataConfig) -> list[Text]:
    """Locate the texts that `data.extra` names.

    Raises:
        UsageError: word alignments are given, which extra pairs lack; a name is not valid; or the columns of tables are
            in different orders.
        UserError: a file does not exist.
    """
    if (data.extra or data.mix) and data.links not in (None, IBM1):
        raise UsageError(
            f"data.links={shorten(data.links)}: aligns the pairs of the corpus, not those of data.extra and data.mix; "
            f"set data.links={IBM1} or null"
        )
    own = find_splits(data).values() if data.extra and data.corpus == "files" else ()
    try:
        texts = [find_text(spec, *data.sources, data.target_language) for spec in data.extra]
    except UserError as error:
        raise type(error)(f"data.extra: {error}; {PACKAGED_NEEDS}") from None
    check_headers([*own, *texts])
    return texts


def extra_identity(data: DataConfig) -> dict[str, Any]:
    """The part of the folder's hash that depends on the extra pairs; empty without.

    Raises:
        UsageError, UserError: as `find_extra`.
    """
    texts = find_extra(data)
    if not texts:
        return {}
    hashes = [[*map(sha256_of, text.paths), *hashes_of_vectors(data.sources, text)] for text in texts]
    denied = f"{_DENIED}; {_DENIED_VECTORS}" if VECTORS in data.sources else _DENIED
    return {"extra": {"texts": hashes, "in_vocab": data.extra_in_vocab, "denied": denied}}


def write_extra(
    directory: Path,
    texts: Sequence[tuple[str, Iterable[tuple[str, str]]]],
    files: Mapping[str, tuple[Path, Path]],
    source_languages: Sequence[str],
) -> tuple[tuple[Path, Path] | None, list[str]]:
    """Write the pairs of the texts, without those that have a sentence of a validation or test set on either side.
    Returns the source and the target file (None without texts), and a note about each text.

    Args:
        directory: made if there are texts.
        texts: the name of each text of extra pairs, and the pairs.
        files: the corpus, source and target file of each split.
        source_languages: which of the sources are vectors.

    Raises:
        UserError: a text cannot be read.
    """
    if not texts:
        return None, []
    denied: set[str] = set()
    for sources_path, targets_path in (paths for split, paths in files.items() if split != "train"):
        denied |= sentence_keys(iter_lines(sources_path), source_languages) | sentence_keys(iter_lines(targets_path))
    directory.mkdir(parents=True)
    written = directory / f"train.{SIDES[0]}", directory / f"train.{SIDES[1]}"
    notes = []
    with written[0].open("w", encoding="utf-8") as sources, written[1].open("w", encoding="utf-8") as targets:
        for name, pairs in texts:
            num_kept = num_dropped = 0
            for source, target in pairs:
                if denied.isdisjoint(sentence_keys([source], source_languages) | sentence_keys([target])):
                    sources.write(f"{source}\n")
                    targets.write(f"{target}\n")
                    num_kept += 1
                else:
                    num_dropped += 1
            notes.append(
                f"extra: {name}: {num_kept:,} pairs; {num_dropped:,} dropped, because they "
                "contain a sentence of a validation or test set"
            )
    return written, notes


def sentence_keys(lines: Iterable[str], languages: Sequence[str] = ("",)) -> set[str]:
    """The sentences of these lines as `bare` leaves them, without blank ones; a line of several sources has a sentence
    per source. `languages` are those of the sources. The key of a file of vectors is its real path."""
    keys = set()
    for line in lines:
        sentences = line.split(SOURCE_END) if len(languages) > 1 else [line]
        for language, sentence in zip(languages, sentences, strict=False):
            keys.add(real_name(sentence) if language == VECTORS else bare(sentence))
    return keys - {""}


def without_extra(config: Config) -> Config:
    """The configuration of the corpus alone, without `data.extra` and `data.mix`."""
    data = config.data.model_copy(update={"extra": [], "extra_in_vocab": False, "mix": 0.0})
    return config.model_copy(update={"data": data})
