"""Translate a test set with a system, or reuse translations that an earlier evaluation saved.

A system is a run or an ensemble of runs.
"""

import hashlib
import logging
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from seq2seq_attn import __version__
from seq2seq_attn.errors import UserError
from seq2seq_attn.evaluation.systems import System, decisive_options
from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.files import (
    JsonObject,
    ListedFiles,
    remove_listed,
    write_listed,
    write_listed_json,
)
from seq2seq_attn.runtime.memory import suggest_smaller_batch
from seq2seq_attn.text.normalize import visible
from seq2seq_attn.text.tokenizers.vectors import hash_vectors
from seq2seq_attn.translate.attention_map import PackedMap, pack_map
from seq2seq_attn.translate.plan import build_scorers

log = logging.getLogger(__name__)


class LineCounts(NamedTuple):
    """Counts of problems in the translations of a set. The JSON of reports has the same names."""

    num_cut: int = 0
    """number of translations that the length limit cut, or that were chosen because the length
    limit cut a hypothesis with a higher score"""
    num_unknown_source_tokens: int = 0
    """number of source tokens that the run's vocabulary lacks"""


class SetTranslations(NamedTuple):
    """The translations of a set by a system, with attention maps and unknown tokens for the HTML
    page."""

    lines: Sequence[str]
    counts: LineCounts = LineCounts()
    maps: Sequence[PackedMap | None] = ()
    """the attention map of each line, None for a line without a map; empty if maps are not kept"""
    unknown: Sequence[tuple[tuple[str, ...], tuple[int, ...]] | None] = ()
    """for each line with unknown source tokens, all source tokens of the line and the positions of
    the unknown tokens; None for other lines; empty if unknown tokens were not recorded"""
    no_map: str = "no attention was kept"
    """the reason why lines have no map; completes the message "<run>: ..." """
    seconds: float = 0.0
    """the duration of the translation"""
    is_reused: bool = False
    """whether an earlier evaluation saved the translations"""


def translate_set(
    system: System,
    test_set: EvaluationSet,
    *,
    hyps_dir: Path | None = None,
    reuse_hypotheses: bool = False,
    keep_maps: bool = False,
) -> SetTranslations:
    """Translate each source line of a set.

    Args:
        hyps_dir: The folder in which the translations are saved, with a note of how they were made.
            If None, nothing is saved.
        reuse_hypotheses: Whether to return saved translations, if the same model made these from
            the same lines with the same search.
        keep_maps: Whether to return attention maps for the HTML page.
    """
    folder = "files/" if test_set.is_file else ""
    name = f"{folder}{test_set.name}{system.variation}.txt"
    made_by = _how_made(system, test_set)
    folders = list(dict.fromkeys([hyps_dir, system.hyps_dir]))
    path = system.hyps_dir / name
    if not path.parent.resolve().is_relative_to(system.runs[0].path.resolve()):
        log.warning("%s: neither read nor saved: a link there leads outside the run", path)
        folders.remove(system.hyps_dir)
    if reuse_hypotheses:
        saved = _find_saved(folders, name, made_by, len(test_set.source))
        if saved is not None:
            return saved
    translations = _translate(system, test_set, keep_maps=keep_maps)
    # A folder that leads outside the run has been removed from `folders`.
    if hyps_dir is not None and hyps_dir in folders:
        _save(hyps_dir / name, translations.lines, {**made_by, **translations.counts._asdict()})
    return translations


def _translate(system: System, test_set: EvaluationSet, *, keep_maps: bool) -> SetTranslations:
    """Translate each source line of a set with the system's model."""
    translator = system.translator
    if test_set.num_concatenated > 1:
        translator = translator.with_max_source_length(_max_source_length(system, test_set))
    started = time.monotonic()
    lines = []
    maps = []
    unknown = []
    num_cut = num_unknown = num_broken = 0
    with suggest_smaller_batch(system.search.batch_size):
        translations = tqdm(
            # Lines are not split into sentences: a line has a single reference, and its score tells
            # how the model translates the line as a whole.
            translator.translate_lines(
                test_set.source,
                keep_attention=keep_maps,
                glossary=system.glossary,
                split_sentences="off",
                **system.options,
            ),
            desc=visible(f"{system.name}, {test_set.name}"),
            total=len(test_set.source),
            unit="line",
            disable=None,
        )
        for line_translations in translations:
            best = line_translations[0]
            lines.append(best.text)
            num_cut += best.is_cut
            num_broken += not math.isfinite(best.log_prob)
            num_unknown += len(best.unknown_positions)
            positions = best.unknown_positions
            unknown.append((tuple(best.source_tokens), positions) if positions else None)
            # Maps are packed line by line, because the unpacked maps of a set need far more memory.
            attention = best.attention_map()
            maps.append(None if attention is None else pack_map(attention))
    if num_broken:
        message = "%s, %s: %d lines not translated: the model's probabilities are 0 or not numbers"
        log.warning(message, system.name, test_set.name, num_broken)
    no_map = "its attention does not look at source positions"
    if translator.has_attention:
        no_map = "its translation is empty, or its map is too large"
    seconds = time.monotonic() - started
    return SetTranslations(lines, LineCounts(num_cut, num_unknown), maps, unknown, no_map, seconds)


def _find_saved(
    folders: Sequence[Path | None], name: str, made_by: JsonObject, num_lines: int
) -> SetTranslations | None:
    """Return the saved translations from the first folder in which the note of the file `name`
    equals `made_by`. If there is no such folder, log a warning for each file `name`, and return
    None."""
    paths = []
    for folder in folders:
        if folder is not None and (folder / name).exists():
            paths.append(folder / name)
    for path in paths:
        files = ListedFiles(path.parent)
        try:
            note = files.read_json(path.with_suffix(".json").name)
            lines = files.read(path.name).decode().split("\n")[:-1]
            # `_save` added the counts to `made_by`, so the note without them is compared with it.
            counts = LineCounts(*[note.pop(field) for field in LineCounts._fields])
        except Exception:  # A file is missing or damaged.
            continue
        if note == made_by and len(lines) == num_lines:
            log.info("%s: made by the same model in the same way, reused", path)
            no_map = "its saved hypotheses were used, which come without attention"
            return SetTranslations(lines, counts, no_map=no_map, is_reused=True)
    for path in paths:
        log.warning(
            "%s: not reused: not made by this model of these lines with these search settings", path
        )
    return None


def _save(path: Path, lines: Sequence[str], note: JsonObject) -> None:
    """Save translations with a note of how they were made."""
    note_path = path.with_suffix(".json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_listed(note_path)  # so that a note never describes other lines
        write_listed(path, "".join(f"{line}\n" for line in lines).encode())
        write_listed_json(note_path, note)
    except (OSError, UserError) as error:
        log.warning("%s: not saved (%s)", path, error)


def _how_made(system: System, test_set: EvaluationSet) -> JsonObject:
    """Return all values that decide the translations of a set, for a note in JSON."""
    made_by: JsonObject = {
        **decisive_options(system.search),
        "max_source_length": _max_source_length(system, test_set),
        "precision": system.resolved_precision,
        "glossary": [list(entry) for entry in system.glossary],
        "model_sha256": system.model_hash,
        "source_sha256": hashlib.sha256("\n".join(test_set.source).encode()).hexdigest(),
        "version": __version__,
    }
    if system.search.scorers:
        build_scorers(system.translator, system.search)  # loads the runs that scorers read
        hashes = {}
        for run, scorer in system.translator.scorer_runs.items():
            hashes[run] = scorer.infos[0].sha256
        made_by["scorers_sha256"] = hashes
    layout = system.config.data.layout
    if layout.vector_column is not None:
        made_by["vectors_sha256"] = hash_vectors(layout.vector_files(test_set.source))
    return made_by


def _max_source_length(system: System, test_set: EvaluationSet) -> int:
    """Return the length above which a source line is split before translation. The length grows
    with the number of concatenated pairs, because the line would otherwise be split again."""
    return test_set.num_concatenated * system.config.data.max_length
