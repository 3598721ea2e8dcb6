"""Translations of a set by one system, a run or an ensemble of runs: made now, or saved by an earlier evaluation."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from seq2seq_attn import __version__
from seq2seq_attn.errors import UserError
from seq2seq_attn.evaluation.learning_curve import Validation
from seq2seq_attn.evaluation.sets import EvaluationSet
from seq2seq_attn.evaluation.systems import System, decisive_options
from seq2seq_attn.manifest import read_listed, read_listed_json, remove_listed, write_listed, write_listed_json
from seq2seq_attn.runtime.memory import suggest_smaller_batch
from seq2seq_attn.text.normalize import visible
from seq2seq_attn.text.tokenizers.base import SOURCE_END, VECTORS
from seq2seq_attn.text.tokenizers.vectors import hash_vectors
from seq2seq_attn.translate.packed_map import PackedMap, pack_map

log = logging.getLogger(__name__)

_SOURCE_HASH = "source_sha256"
_NO_POSITIONS = "its attention does not look at source positions"
_NOT_SHOWN = "its translation is empty, or its map is too large"
_REUSED = "its saved hypotheses were used, which come without attention"


@dataclass(frozen=True)
class LineCounts:
    """Counts that say whether the scores of a set can be trusted."""

    num_cut: int
    """translations that the length limit cut, or that won because it cut a better one"""
    num_unknown: int
    """source tokens that the run's vocabulary lacks"""

    def __add__(self, other: LineCounts) -> LineCounts:
        return LineCounts(self.num_cut + other.num_cut, self.num_unknown + other.num_unknown)

    def to_dict(self) -> dict[str, int]:
        """Plain values, for JSON."""
        return {"num_cut": self.num_cut, "num_unknown_source_tokens": self.num_unknown}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LineCounts:
        """The counts that `to_dict` wrote."""
        return cls(values["num_cut"], values["num_unknown_source_tokens"])


class UnknownTokens(NamedTuple):
    """The source tokens of a line that are not in a run's vocabulary."""

    source_tokens: tuple[str, ...]
    """all of the line's"""
    positions: tuple[int, ...]
    """of the unknown ones"""


@dataclass(frozen=True)
class SetTranslations:
    """The translations of one set by one system. Attention and unknown tokens are for the HTML page."""

    lines: Sequence[str]
    counts: LineCounts = LineCounts(0, 0)
    maps: Sequence[PackedMap | None] = ()
    """the attention of each line; empty: not kept"""
    unknown: Sequence[UnknownTokens | None] = ()
    """the unknown source tokens of each line; empty: not recorded"""
    no_map: str = "no attention was kept"
    """why a line has no map; completes the message "<run>: ..." """
    seconds: float = 0.0
    is_reused: bool = False
    """whether an earlier evaluation saved them"""


@dataclass(frozen=True)
class SystemTexts:
    """All that the HTML page shows of one system."""

    translations: Sequence[SetTranslations]
    """of each set"""
    config: Mapping[str, Any] = field(default_factory=dict)
    """the resolved configuration as plain values"""
    validations: Sequence[Validation] = ()
    """the validations of its training, by update"""


def translate_set(
    system: System, test_set: EvaluationSet, *, hyps_dir: Path | None = None, keep_maps: bool = False
) -> SetTranslations:
    """Translate each source line, or take saved translations if `system.decoding` says so.

    Args:
        hyps_dir: takes the lines (of files under `files/`) with a note of how they were made; None: they are not saved.
            Search settings and precision that differ from the run's own are in the file's name: `test.beam1.txt`.
        keep_maps: keep attention maps for the HTML page.
    """
    folder = "files/" if test_set.is_file else ""
    name = f"{folder}{test_set.name}{system.decoding.variation(system.config.search)}.txt"
    made_by = _how_made(system, test_set)
    if system.decoding.reuse_hypotheses:
        folders = dict.fromkeys(one for one in (hyps_dir, system.hyps_dir) if one is not None)
        saved = _saved([one / name for one in folders], made_by, len(test_set.source))
        if saved is not None:
            return saved
    with suggest_smaller_batch(system.search.batch_size):
        translations = _translate(system, test_set, keep_maps=keep_maps)
    if hyps_dir is not None:
        note = {**made_by, **translations.counts.to_dict()}
        is_own = hyps_dir == system.hyps_dir
        _save(hyps_dir / name, translations.lines, note, inside=system.runs[0].path if is_own else None)
    return translations


def _translate(system: System, test_set: EvaluationSet, *, keep_maps: bool) -> SetTranslations:
    translator = system.translator
    if test_set.num_concatenated > 1:
        translator = translator.with_max_source_length(_max_source_length(system, test_set))
    started = time.monotonic()
    lines, counts = [], LineCounts(0, 0)
    maps: list[PackedMap | None] = []
    unknown: list[UnknownTokens | None] = []
    shown = tqdm(
        translator.translate_lines(test_set.source, keep_attention=keep_maps, **system.decoding.search),
        desc=visible(f"{system.label}, {test_set.name}"),
        total=len(test_set.source),
        unit="line",
        disable=not system.decoding.show_progress,
    )
    for best, *_ in shown:
        lines.append(best.text)
        counts += LineCounts(int(best.is_cut), len(best.unknown))
        attention = best.attention_map()
        maps.append(None if attention is None else pack_map(attention))  # at once: a test set's attention is far larger
        unknown.append(UnknownTokens(tuple(best.source_tokens), best.unknown) if best.unknown else None)
    seconds = time.monotonic() - started
    no_map = _NOT_SHOWN if translator.has_attention else _NO_POSITIONS
    return SetTranslations(lines, counts, maps, unknown, no_map, seconds)


def _saved(paths: Sequence[Path], made_by: dict[str, Any], num_lines: int) -> SetTranslations | None:
    """The translations in the first of these files that the same model made of the same lines in the same way."""
    paths = [path for path in paths if path.exists()]
    for path in paths:
        if (saved := _read_same(path, made_by, num_lines)) is not None:
            log.info("%s: made by the same model in the same way, reused", path)
            return saved
    for path in paths:
        log.warning("%s: not reused: not made by this model of these lines with these search settings", path)
    return None


def _read_same(path: Path, made_by: dict[str, Any], num_lines: int) -> SetTranslations | None:
    try:
        note, lines = read_listed_json(path.with_suffix(".json")), read_listed(path)[0].decode().split("\n")[:-1]
        counts = LineCounts.from_dict(note)
    except (KeyError, UserError):  # missing or damaged
        return None
    if note != {**made_by, **counts.to_dict()} or len(lines) != num_lines:
        return None
    return SetTranslations(lines, counts, no_map=_REUSED, is_reused=True)


def _save(path: Path, lines: Sequence[str], note: dict[str, Any], *, inside: Path | None) -> None:
    """Save translations with a note. `inside`: the run that keeps them, out of which no symbolic link may lead."""
    if inside is not None and not path.parent.resolve().is_relative_to(inside.resolve()):
        log.warning("%s: not saved: a symbolic link there leads outside the run", path)
        return
    if _source_hash(path) not in (None, note[_SOURCE_HASH]):
        log.warning("%s: replaces translations of other lines; to keep both, add --json FILE", path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_listed(path.with_suffix(".json"))  # the note never belongs to other lines
        write_listed(path, "".join(f"{line}\n" for line in lines).encode())
        write_listed_json(path.with_suffix(".json"), note)
    except (OSError, UserError) as error:
        log.warning("%s: not saved (%s)", path, error)


def _source_hash(path: Path) -> Any:
    """The hash of the source lines of saved translations; None if there are none, or it is not known."""
    try:
        return read_listed_json(path.with_suffix(".json")).get(_SOURCE_HASH)
    except UserError:
        return None


def _max_source_length(system: System, test_set: EvaluationSet) -> int:
    """The length above which sources are split. Concatenated pairs are translated in one piece: split at sentence ends,
    they would be single pairs again."""
    return test_set.num_concatenated * system.config.data.max_length


def _how_made(system: System, test_set: EvaluationSet) -> dict[str, Any]:
    return {
        **decisive_options(system.search),
        "max_source_length": _max_source_length(system, test_set),
        "precision": system.precision,
        "model_sha256": system.model_hash,
        _SOURCE_HASH: hashlib.sha256("\n".join(test_set.source).encode()).hexdigest(),
        **_vectors_hash(system.config.data.sources, test_set),
        "version": __version__,
    }


def _vectors_hash(sources: Sequence[str], test_set: EvaluationSet) -> dict[str, str]:
    if VECTORS not in sources:
        return {}
    files = (line.split(SOURCE_END)[sources.index(VECTORS)] for line in test_set.source if line.strip())
    return {"vectors_sha256": hash_vectors(files)}
