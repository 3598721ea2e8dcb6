"""Where a corpus comes from: the raw files of Multi30k, of the embedded corpus, or of any parallel text."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seq2seq_attn.config import DataConfig, shorten
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import packaged, sha256_of
from seq2seq_attn.text import corpus, multi30k


@dataclass(frozen=True)
class RawCorpus:
    """Where the raw text is. `files` are read only if the corpus must be prepared."""

    identity: dict[str, Any]
    """what the content hash takes of the raw text"""
    files: Callable[[], dict[str, tuple[Path, Path]]]
    """split to (source file, target file), train first"""
    links: Callable[[], dict[str, Path]] = field(default=dict)
    """split to its gold alignment"""


def find_raw_corpus(data: DataConfig, *, show_progress: bool = False) -> RawCorpus:
    """Where the raw text of a configuration is.

    Raises:
        UsageError: the configuration names no such corpus.
        UserError: a file that is not there.
    """
    if data.corpus == "multi30k":
        return _raw_multi30k(data, show_progress)
    return _raw_captions(data, show_progress) if data.corpus == "captions" else _raw_files(data)


def check_sources(data: DataConfig) -> None:
    """Check what the settings say about the corpus, without looking for a file.

    Raises:
        UsageError: they name no corpus that there can be.
    """
    if data.corpus == "multi30k":
        multi30k.published_splits(data.source_language, data.target_language)
    elif data.corpus == "captions":
        from seq2seq_attn.captions import generator as captions

        languages = (data.source_language, data.target_language)
        captions.check_request(data.captions.min_length, data.captions.max_length, languages)
    else:
        _named_files(data)


def _raw_multi30k(data: DataConfig, show_progress: bool) -> RawCorpus:
    languages = (data.source_language, data.target_language)
    splits = multi30k.published_splits(*languages)

    def files() -> dict[str, tuple[Path, Path]]:
        directory = multi30k.fetch(data.data_dir, data.source_dir, languages=languages, show_progress=show_progress)
        return {split: (directory / source, directory / target) for split, (source, target) in splits.items()}

    # The checksums are known beforehand: a corpus that is prepared needs neither the raw files nor the network.
    return RawCorpus({split: [multi30k.SHA256[name] for name in names] for split, names in splits.items()}, files)


def _raw_captions(data: DataConfig, show_progress: bool) -> RawCorpus:
    from seq2seq_attn.captions import generator as captions

    languages = {"source_language": data.source_language, "target_language": data.target_language}
    options = {**data.captions.model_dump(), **languages}
    # The text follows from the options, the grammar and the lexicon: it need not be generated to know it.
    made_by = [*sorted(Path(captions.__file__).parent.glob("[!_]*.py")), packaged("captions.yaml")]
    identity = {"captions": options, "made_by": {path.name: sha256_of(path) for path in made_by}}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    directory = data.data_dir / f"captions-{digest[:12]}"
    splits = ("train", "valid", "test")

    def files() -> dict[str, tuple[Path, Path]]:
        captions.write_corpus(directory, **options, show_progress=show_progress)
        return {
            split: (directory / f"{split}.{data.source_language}", directory / f"{split}.{data.target_language}")
            for split in splits
        }

    return RawCorpus(identity, files, lambda: {split: directory / f"{split}.links" for split in splits})


def _raw_files(data: DataConfig) -> RawCorpus:
    languages = (data.source_language, data.target_language)
    found = {split: corpus.resolve_pair(spec, *languages) for split, spec in _named_files(data).items()}
    return RawCorpus({split: [sha256_of(path) for path in paths] for split, paths in found.items()}, lambda: found)


def _named_files(data: DataConfig) -> dict[str, str | list[str]]:
    """What the settings name for each split, `train` first."""
    specs: dict[str, str | list[str]] = {}
    for split, spec in (("train", data.train), ("valid", data.valid)):
        if spec is None:
            raise UsageError(
                f"data.{split} is not set: with data.corpus=files, set it to a prefix (PREFIX.{data.source_language}, "
                f"PREFIX.{data.target_language}) or to [source file, target file]"
            )
        specs[split] = spec
    for split, spec in data.test.items():
        if split in specs:
            raise UsageError(f"data.test.{split}: that name is taken; call the test set something else")
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", split):
            raise UsageError(f"data.test: {split!r} names a file, so letters, digits, '_', '-' and '.' only")
        specs[split] = spec
    for split, spec in specs.items():
        if isinstance(spec, list) and len(spec) != 2:
            raise UsageError(f"{split}={shorten(spec)}: expected a prefix or two files, [source file, target file]")
    return specs
