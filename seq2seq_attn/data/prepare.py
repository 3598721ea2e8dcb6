"""From raw text to a prepared corpus: read, tokenise, check, count, numericalise; reused while nothing changes."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import logging
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.config import Config, DataConfig
from seq2seq_attn.data.numericalize import TokenizedSide
from seq2seq_attn.data.sources import RawCorpus, find_raw_corpus
from seq2seq_attn.data.store import FORMAT_VERSION, META_NAME, IdStore, PreparedCorpus, vocab_path
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_json, write_text
from seq2seq_attn.text import corpus
from seq2seq_attn.text.tokenizers import SIDES, Tokenizer, build_tokenizers
from seq2seq_attn.text.vocab import Vocab, build_vocab

Log = Callable[[str], None]
_STALE_AFTER_S = 24 * 3600.0
"""A half-made folder this old belongs to a process that was killed."""


def prepare_corpus(config: Config, *, show_progress: bool = False, log: Log | None = None) -> PreparedCorpus:
    """The corpus of a configuration, prepared; reused from `data_dir/prepared/` if the same text was prepared the
    same way before, made otherwise.

    Args:
        config: its `data` section is read.
        show_progress: draw tqdm bars on stderr.
        log: takes one-line notices; None: the log.

    Raises:
        UsageError: the configuration names no such corpus.
        UserError: raw files that cannot be had or read, or do not match each other.
    """
    log = log or logging.getLogger(__name__).info
    raw = find_raw_corpus(config.data, show_progress=show_progress)
    what = _what_matters(config.data, raw)
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    directory = config.data.data_dir / "prepared" / f"{config.data.corpus}-{digest[:12]}"
    existing = _reusable(directory, digest, log)
    if existing is not None:
        log(f"{directory}: prepared before, reused")
        return existing
    started = time.monotonic()
    _build(directory, config.data, raw, {"hash": digest, **what}, show_progress)
    log(f"{directory}: prepared in {time.monotonic() - started:.1f} s")
    return PreparedCorpus(directory)


def audit_report(prepared: PreparedCorpus) -> str:
    """What was read, found and dropped, as text for a terminal."""
    meta = prepared.meta
    limits = meta["config"]
    lines = [f"{prepared.directory}  ({prepared.source_language} -> {prepared.target_language})", ""]
    lines += corpus.audit_lines(prepared.audit)
    train = prepared.audit["train"]
    dropped = train["dropped"]
    reasons = {
        "a side is blank": dropped["blank"],
        f"a side has more than {limits['max_length']} tokens": dropped["over_long"],
        f"one side has more than {limits['max_length_ratio']:g} times the other's tokens": dropped["ratio"],
    }
    sizes = " and ".join(f"{len(vocab):,}" for vocab in (prepared.source_vocab, prepared.target_vocab))
    joint = " (one vocabulary for both)" if limits["vocab"]["joint"] else ""
    lines += [
        "",
        f"dropped from train: {sum(dropped.values()):,} of {train['pairs_read']:,} pairs",
        *(f"  {count:,} because {reason}" for reason, count in reasons.items() if count),
        "valid and test sets are kept as they are; duplicates and overlaps are counted, never dropped",
        f"vocabulary: {sizes} ids, source and target{joint}",
    ]
    return "\n".join(lines)


def _what_matters(data: DataConfig, raw: RawCorpus) -> dict[str, Any]:
    """All that decides the content of the folder, and nothing else: not where files lie, not the model."""
    tokenizer = data.tokenizer.model_dump()
    if data.tokenizer.name != "sentencepiece":
        tokenizer = {key: tokenizer[key] for key in ("name", "lowercase")}
    package = data.tokenizer.name if data.tokenizer.name != "characters" else None
    return {
        "format": FORMAT_VERSION,
        "raw": raw.identity,
        "config": {
            "source_language": data.source_language,
            "target_language": data.target_language,
            "max_length": data.max_length,
            "max_length_ratio": data.max_length_ratio,
            "tokenizer": tokenizer,
            "vocab": data.vocab.model_dump(),
        },
        "versions": {package: importlib.metadata.version(package)} if package else {},
    }


def _reusable(directory: Path, digest: str, log: Log) -> PreparedCorpus | None:
    if not directory.exists():
        return None
    try:
        return _open(directory, digest)
    except UserError as error:
        log(f"{str(error).removesuffix('; prepare the data again')}; preparing the data again")
        return None


def _open(directory: Path, digest: str) -> PreparedCorpus:
    prepared = PreparedCorpus(directory)
    if prepared.meta.get("hash") != digest:
        raise UserError(f"{directory}: holds another corpus than its name says")
    return prepared


def _build(directory: Path, data: DataConfig, raw: RawCorpus, meta: dict[str, Any], show_progress: bool) -> None:
    lines = {split: corpus.read_pairs(*paths) for split, paths in raw.files().items()}
    tokenizers = _tokenizers(data, lines["train"])
    sides = _tokenize(lines, tokenizers, show_progress)
    limits = (data.max_length, data.max_length_ratio)
    faults = {split: corpus.find_faults(sides[0].lengths[split], sides[1].lengths[split], *limits) for split in lines}
    keep = {
        split: found.is_good if split == "train" else np.ones_like(found.is_good) for split, found in faults.items()
    }
    if not keep["train"].any():
        raise UserError(
            f"train: none of its {len(keep['train'])} pairs is left without the blank and over-long ones and the ratio "
            f"outliers; look at the files, or raise data.max_length={data.max_length}"
        )
    vocabs = _vocabs(data, [side.counts("train", keep["train"]) for side in sides])
    audit = {
        split: corpus.audit_split(
            lines[split],
            faults[split],
            [side.audit(split, vocab) for side, vocab in zip(sides, vocabs, strict=True)],
            train=None if split == "train" else lines["train"],
        ).to_dict()
        for split in lines
    }
    with _new_folder(directory, meta["hash"]) as temporary:
        for name, tokenizer, vocab in zip(SIDES, tokenizers, vocabs, strict=True):
            tokenizer.save(temporary, name)
            vocab.save(vocab_path(temporary, name))
        for split, kept in keep.items():
            _write_split(temporary, split, kept, lines[split], sides, vocabs)
        for split, path in raw.links().items():
            _write_lines(temporary / f"{split}.links", corpus.read_lines(path), keep[split])
        sizes = {path.name: path.stat().st_size for path in sorted(temporary.iterdir())}
        write_json(temporary / META_NAME, {**meta, "splits": list(lines), "audit": audit, "files": sizes})


def _tokenizers(data: DataConfig, train: tuple[list[str], list[str]]) -> tuple[Tokenizer, Tokenizer]:
    return build_tokenizers(
        *train,
        source_language=data.source_language,
        target_language=data.target_language,
        **data.tokenizer.model_dump(),
    )


def _tokenize(
    lines: Mapping[str, tuple[list[str], list[str]]], tokenizers: Sequence[Tokenizer], show_progress: bool
) -> list[TokenizedSide]:
    return [
        TokenizedSide(
            {split: pair[i] for split, pair in lines.items()},
            tokenizer,
            progress=f"tokenising {SIDES[i]}" if show_progress else None,
        )
        for i, tokenizer in enumerate(tokenizers)
    ]


def _vocabs(data: DataConfig, counters: Sequence[Counter[str]]) -> list[Vocab]:
    if data.vocab.joint:
        counters = [counters[0] + counters[1]] * 2
    return [
        build_vocab(counter, max_size=data.vocab.max_size, min_frequency=data.vocab.min_frequency)
        for counter in counters
    ]


def _write_split(
    directory: Path,
    split: str,
    keep: npt.NDArray[np.bool_],
    lines: tuple[list[str], list[str]],
    sides: Sequence[TokenizedSide],
    vocabs: Sequence[Vocab],
) -> None:
    for name, of_side, side, vocab in zip(SIDES, lines, sides, vocabs, strict=True):
        lengths = side.lengths[split]
        ids = side.ids(split, vocab)[np.repeat(keep, lengths)]
        IdStore.write(directory / f"{split}.{name}", ids, lengths[keep])
        _write_lines(directory / f"{split}.{name}.txt", of_side, keep)


def _write_lines(path: Path, lines: Sequence[str], keep: npt.NDArray[np.bool_]) -> None:
    write_text(path, "".join(f"{line}\n" for line, kept in zip(lines, keep.tolist(), strict=True) if kept))


@contextmanager
def _new_folder(directory: Path, digest: str) -> Iterator[Path]:
    """A temporary folder that becomes `directory` once it is complete, in place of what is there."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    for left_over in directory.parent.glob(".*.tmp"):
        if time.time() - left_over.stat().st_mtime > _STALE_AFTER_S:
            shutil.rmtree(left_over, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", suffix=".tmp", dir=directory.parent))
    try:
        yield temporary
        temporary.chmod(0o755)  # mkdtemp makes 0700: prepared data may be shared
        if directory.exists():
            try:
                _open(directory, digest)
            except UserError:
                # renamed before it is removed: nobody sees it half removed
                directory.rename(temporary / "damaged")
                shutil.rmtree(temporary / "damaged")
            else:
                return  # another process was first, with the same content
        try:
            temporary.rename(directory)
        except OSError:
            if not directory.exists():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
