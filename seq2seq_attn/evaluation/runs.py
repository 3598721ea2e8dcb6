"""A run under evaluation: it translates sets or reuses its saved translations, and its attention is analyzed."""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tqdm import tqdm

from seq2seq_attn import __version__
from seq2seq_attn.config import Config, SearchConfig
from seq2seq_attn.errors import UserError
from seq2seq_attn.evaluation.attention import AttentionAnalyzer
from seq2seq_attn.evaluation.attention_scores import AttentionAnalysis
from seq2seq_attn.evaluation.learning_curve import read_validations
from seq2seq_attn.evaluation.sets import EvaluationSet
from seq2seq_attn.evaluation.texts import LineCounts, RunTexts, UnknownTokens
from seq2seq_attn.files import read_checked_json, sha256_of, write_checked_json, write_lines
from seq2seq_attn.metrics.bleu import TITLES
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.precision import translation_precision
from seq2seq_attn.search.options import AS_CONFIGURED, SearchOptions
from seq2seq_attn.text.corpus import read_lines
from seq2seq_attn.text.tokenizers.base import SOURCE_END, VECTORS
from seq2seq_attn.text.tokenizers.vectors import FloatArray, hash_vectors
from seq2seq_attn.translate.batching import explained_batch_size
from seq2seq_attn.translate.packed_map import PackedMap, pack_translation
from seq2seq_attn.translate.scoring import summaries
from seq2seq_attn.translate.translator import Translator, load

log = logging.getLogger(__name__)

_LINES_HASH = "hypotheses_sha256"
_SOURCE_HASH = "source_sha256"
_VARIATION = {
    "beam_size": "beam",
    "length_penalty": "penalty",
    "max_length_ratio": "ratio",
    "max_length_extra": "extra",
    "coverage_penalty": "coverage",
    "no_repeat_ngram": "ngram",
}
"""the words of file names for search settings"""
_WITHOUT_EFFECT = {"batch_size", "keep_attention", "n_best"}
"""search options that do not decide the best translation"""
_NO_POSITIONS = "its attention does not look at source positions"
_NOT_SHOWN = "its translation is empty, or its map is too large"


@dataclass(frozen=True)
class Decoding:
    """How runs translate."""

    search: SearchOptions = AS_CONFIGURED
    device: str = "auto"
    precision: str = "auto"
    reuse_hypotheses: bool = False
    """take saved translations if the same model made them of the same lines in the same way"""
    show_progress: bool = False

    def variation(self, own: SearchConfig) -> str:
        """The differences from a run's own search settings and from fp32, for file names: `.beam1.penalty0.5.bf16`."""
        search = self.search.over(own)
        changed = {key: getattr(search, key) for key in _VARIATION if getattr(search, key) != getattr(own, key)}
        precision = translation_precision(self.precision, resolve_device(self.device))
        parts = [f".{_VARIATION[key]}{value:g}" for key, value in changed.items()]
        return "".join([*parts, *([f".{precision}"] if precision != "fp32" else [])])


DEFAULT_DECODING = Decoding()


class EvaluatedRun:
    """One run; the model is loaded when it is first needed."""

    def __init__(
        self, run: RunDir, config: Config, decoding: Decoding, *, hyps_dir: Path | None, keep_maps: bool = False
    ) -> None:
        """`hyps_dir` takes the translations; None: they are not saved. `keep_maps`: keep attention maps and sentence
        vectors for the HTML report."""
        self._run = run
        self._config = config
        self._decoding = decoding
        self._hyps_dir = hyps_dir
        self._keep_maps = keep_maps
        options = decoding.search.over(config.search)
        self._search = options.model_copy(update={"keep_attention": keep_maps})
        self._precision = translation_precision(decoding.precision, resolve_device(decoding.device))
        self._seconds = 0.0
        self._is_reused = True
        self._hypotheses: list[list[str]] = []
        self._counts: list[LineCounts] = []
        self._maps: list[list[PackedMap | None]] = []
        self._vectors: list[FloatArray] = []
        self._unknown: list[list[UnknownTokens | None]] = []
        self._no_map: dict[str, None] = {}

    def describe(self) -> dict[str, Any]:
        """Which run, of what, from which seed and commit, and how it translated."""
        return {
            "path": str(self._run.path),
            "config": self._config.name,
            "attention": self._config.model.attention.name,
            "seed": self._config.seed,
            "lowercases": self._config.data.tokenizer.lowercase,
            "model": _with_numbers(self._run.best_metadata()),
            "training_environment": self._run.environment(),
            "search": self._search_values,
            "precision": self._precision,
            "seconds": round(self._seconds, 1),
            "is_reused": self._is_reused,
        }

    @property
    def counts(self) -> list[LineCounts]:
        """Counts of each set that was translated."""
        return self._counts

    def texts(self) -> RunTexts:
        """All that was translated, set by set, for the HTML report."""
        vectors = self._vectors if len(self._vectors) == len(self._hypotheses) else None  # None: some were reused
        return RunTexts(
            self._hypotheses,
            self._maps,
            config=self._config.model_dump(mode="json"),
            no_map=", or ".join(self._no_map) or "no attention was kept",
            vectors=vectors,
            unknown=self._unknown,
            validations=read_validations(self._run.metrics_path),
        )

    def translate(self, test_set: EvaluationSet) -> list[str]:
        """Translate each source line, and save the lines (of files under `files/`) with a note of how they were made.
        Search settings and precision that differ from the run's own are in the file's name: `test.beam1.txt`."""
        with explained_batch_size(self._search.batch_size):
            self._hypotheses.append(self._translate(test_set))
        return self._hypotheses[-1]

    def analyze(self, analyzer: AttentionAnalyzer, hypotheses: Sequence[str]) -> AttentionAnalysis:
        """The attention analysis of these translations; of fixed-vector runs, from the texts alone."""
        with explained_batch_size(self._search.batch_size):
            return analyzer.analyze(hypotheses, self._translator, batch_size=self._search.batch_size)

    @property
    def _own_hyps_dir(self) -> Path:
        """Where the run itself keeps translations."""
        return self._run.hyps_dir

    @property
    def _label(self) -> str:
        """The name in the progress bar."""
        return self._run.path.name

    @cached_property
    def _translator(self) -> Translator:
        return load(self._run.path, self._decoding.device, precision=self._decoding.precision)

    @cached_property
    def _model_hash(self) -> str | list[str]:
        return hash_model(self._run)

    def _summaries(self, lines: Sequence[str]) -> FloatArray | None:
        """The encoder's summary of each line; None: there is no single one."""
        return summaries(self._translator, lines, batch_size=self._search.batch_size)

    def _translate(self, test_set: EvaluationSet) -> list[str]:
        folder = "files/" if test_set.is_file else ""
        name = f"{folder}{test_set.name}{self._decoding.variation(self._config.search)}.txt"
        made_by = self._how_made(test_set)
        if self._decoding.reuse_hypotheses and (saved := self._saved(name, made_by, len(test_set.source))) is not None:
            lines, counted = saved
            self._counts.append(counted)
            self._maps.append([None] * len(lines))
            self._unknown.append([None] * len(lines))
            self._no_map["its saved hypotheses were used, which come without attention"] = None
            return lines
        self._is_reused = False
        translator = self._translator
        self._no_map[_NOT_SHOWN if translator.has_attention else _NO_POSITIONS] = None
        if test_set.num_concatenated > 1:
            translator = translator.with_max_source_length(self._max_source_length(test_set))
        started = time.monotonic()
        translations = translator.translate_lines(test_set.source, self._search)
        lines, counts = [], LineCounts(0, 0)
        self._maps.append([])
        self._unknown.append([])
        shown = tqdm(
            translations,
            desc=f"{self._label}, {test_set.name}",
            total=len(test_set.source),
            unit="line",
            disable=not self._decoding.show_progress,
        )
        for best, *_ in shown:
            lines.append(best.text)
            counts += LineCounts(int(best.is_cut), len(best.unknown))
            self._maps[-1].append(pack_translation(best))  # at once: a test set's attention is far larger
            self._unknown[-1].append(UnknownTokens(tuple(best.source_tokens), best.unknown) if best.unknown else None)
        self._seconds += time.monotonic() - started
        if self._keep_maps and (vectors := self._summaries(test_set.source)) is not None:
            self._vectors.append(vectors)
        if self._hyps_dir is not None:
            self._save(self._hyps_dir / name, lines, {**made_by, **counts.to_dict()})
        self._counts.append(counts)
        return lines

    @property
    def _search_values(self) -> dict[str, Any]:
        """The settings that decide the translations."""
        values = self._search.model_dump(include={"beam_size", "length_penalty", "max_length_ratio"})
        more = self._search.model_dump(include={"coverage_penalty", "no_repeat_ngram"})
        return values | {key: value for key, value in more.items() if value}

    def _saved(self, name: str, made_by: dict[str, Any], num_lines: int) -> tuple[list[str], LineCounts] | None:
        """The translations saved here before, or in the run itself."""
        folders = dict.fromkeys(folder for folder in (self._hyps_dir, self._own_hyps_dir) if folder is not None)
        paths = [path for folder in folders if (path := folder / name).exists()]
        for path in paths:
            if (saved := _read_same(path, made_by, num_lines)) is not None:
                log.info("%s: made by the same model in the same way, reused", path)
                return saved
        for path in paths:
            log.warning("%s: not reused: not made by this model of these lines with these search settings", path)
        return None

    def _save(self, path: Path, lines: Sequence[str], note: dict[str, Any]) -> None:
        is_own = self._hyps_dir == self._own_hyps_dir
        if is_own and not path.parent.resolve().is_relative_to(self._run.path.resolve()):
            log.warning("%s: not saved: a symbolic link there leads outside the run", path)
            return
        if _source_hash(path) not in (None, note[_SOURCE_HASH]):
            log.warning("%s: replaces translations of other lines; to keep both, add --json FILE", path)
        try:
            write_lines(path, lines)
            write_checked_json(path.with_suffix(".json"), {**note, _LINES_HASH: sha256_of(path)})
        except OSError as error:
            log.warning("%s: not saved (%s)", path, error.strerror)

    def _max_source_length(self, test_set: EvaluationSet) -> int:
        """The length above which sources are split. Concatenated pairs are translated in one piece: split at
        sentence ends, they would be single pairs again."""
        return test_set.num_concatenated * self._config.data.max_length

    def _how_made(self, test_set: EvaluationSet) -> dict[str, Any]:
        return {
            **self._search.model_dump(exclude=_WITHOUT_EFFECT),
            "max_source_length": self._max_source_length(test_set),
            "precision": self._precision,
            "model_sha256": self._model_hash,
            _SOURCE_HASH: hashlib.sha256("\n".join(test_set.source).encode()).hexdigest(),
            **self._vectors_hash(test_set),
            "version": __version__,
        }

    def _vectors_hash(self, test_set: EvaluationSet) -> dict[str, str]:
        sources = self._config.data.sources
        if VECTORS not in sources:
            return {}
        files = (line.split(SOURCE_END)[sources.index(VECTORS)] for line in test_set.source if line.strip())
        return {"vectors_sha256": hash_vectors(files)}


def hash_model(run: RunDir) -> str:
    """The hash of a run's best model. Raises UserError if there is none."""
    if not run.model_path.is_file():
        run.best_metadata()  # says what is wrong
    return sha256_of(run.model_path)


def _with_numbers(metadata: Mapping[str, str]) -> dict[str, int | float | str]:
    """The numbers among the metadata as numbers: the header of a safetensors file holds strings only."""
    scores = dict.fromkeys(("perplexity", *TITLES), float)
    kinds: dict[str, type[int] | type[float]] = {"update": int, "epoch": int, **scores}
    values: dict[str, int | float | str] = dict(metadata)
    for key in kinds.keys() & metadata.keys():
        try:
            value = kinds[key](metadata[key])
        except ValueError:
            continue
        if math.isfinite(value):  # JSON has no infinity
            values[key] = value
    return values


def _source_hash(path: Path) -> Any:
    """The hash of the source lines of saved translations; None if there are none, or it is not known."""
    try:
        return read_checked_json(path.with_suffix(".json")).get(_SOURCE_HASH)
    except UserError:
        return None


def _read_same(path: Path, made_by: dict[str, Any], num_lines: int) -> tuple[list[str], LineCounts] | None:
    try:
        note = read_checked_json(path.with_suffix(".json"))
        counts, digest = LineCounts.from_dict(note), note.pop(_LINES_HASH)
        if note != {**made_by, **counts.to_dict()} or sha256_of(path) != digest:
            return None
        lines = read_lines(path)
    except (KeyError, OSError, UserError):  # missing or damaged
        return None
    return (lines, counts) if len(lines) == num_lines else None
