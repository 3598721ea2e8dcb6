"""Evaluation: run directories, or saved hypotheses, to scores: overall, by sentence length, and against each other.

Several runs are compared with the first one. Lengths are counted in spaCy tokens, whatever tokenises a run, so that all
runs are cut into the same buckets.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seq2seq_attn import __version__
from seq2seq_attn.config import Config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import read_json, sha256_of, write_json, write_text
from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES, MeasureName
from seq2seq_attn.report.build import (
    GERMAN_TO_ENGLISH,
    EvaluationSet,
    Languages,
    LengthOf,
    Report,
    Settings,
    build_report,
)
from seq2seq_attn.report.html import RunTexts, html_report
from seq2seq_attn.report.packed_map import PackedMap, pack_translation
from seq2seq_attn.report.plots import plot_by_length, plot_retention
from seq2seq_attn.report.scores import DEFAULT_RESAMPLING, Resampling
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.text.corpus import read_lines, read_pairs
from seq2seq_attn.translator import Translator, load, resolve_device

log = logging.getLogger(__name__)


def evaluate(
    runs: Sequence[str | Path],
    *,
    splits: Sequence[str] = (),
    source: Path | None = None,
    reference: Path | None = None,
    by_length: str | None = None,
    length_of: LengthOf = "source",
    beam_size: int | None = None,
    length_penalty: float | None = None,
    batch_size: int | None = None,
    measures: Sequence[MeasureName] = DEFAULT_MEASURES,
    resampling: Resampling = DEFAULT_RESAMPLING,
    json_path: Path | None = None,
    report_path: Path | None = None,
    device: str = "auto",
    reuse_hypotheses: bool = False,
    show_progress: bool = False,
) -> Report:
    """Translate, score, write the report. The first run is what the others are compared with.

    Args:
        splits: parts of the runs' corpus; none: its test sets, each apart and pooled. Or, instead of splits:
        source: one sentence a line, plain or .gz, and `reference`, its translation.
        by_length: first lengths of the buckets (`9,12,15`), or `quantiles:N`; None: as fits the corpus.
        length_of: the side whose tokens count as length.
        beam_size: None: as each run is configured; so too `length_penalty` and `batch_size`.
        json_path: where the report goes, plots and Markdown (unless `report_path`) beside it; None: to the first run.
        reuse_hypotheses: take `hyps/<split>.txt` if the same model made it of the same lines in the same way.

    Raises:
        UsageError: files and splits together, one file without the other, an unknown split, runs of different data.
        UserError: a run or a file that cannot be read.
    """
    _check_request(runs, "run to evaluate", report_path)
    run_dirs = [RunDir(run) for run in runs]
    names = _display_names([run.path for run in run_dirs])
    configs = [run.config() for run in run_dirs]
    sets = _find_sets(run_dirs, configs, splits, source, reference, show_progress)
    choices = (beam_size, length_penalty, batch_size, device, reuse_hypotheses, _is_html(report_path), show_progress)
    tasks = [_Translation(run, config, *choices) for run, config in zip(run_dirs, configs, strict=True)]
    hypotheses = {name: [task.translate(one) for one in sets] for name, task in zip(names, tasks, strict=True)}
    descriptions = [
        {"name": name, **_describe_run(run, config), **task.describe()}
        for name, run, config, task in zip(names, run_dirs, configs, tasks, strict=True)
    ]
    data = configs[0].data
    report = build_report(
        sets,
        hypotheses,
        descriptions,
        languages=Languages(data.source_language, data.target_language, "files" if source else data.corpus),
        settings=Settings(by_length, length_of, tuple(measures), resampling),
        device=str(resolve_device(device)),
    )
    name = "report.json" if len(runs) == 1 else "report.comparison.json"
    _write(report, json_path or run_dirs[0].path / name, report_path, sets, [task.texts() for task in tasks])
    return report


def score_files(
    hypotheses: Sequence[Path],
    reference: Path,
    *,
    source: Path | None = None,
    languages: Languages = GERMAN_TO_ENGLISH,
    by_length: str | None = None,
    length_of: LengthOf = "source",
    measures: Sequence[MeasureName] = DEFAULT_MEASURES,
    resampling: Resampling = DEFAULT_RESAMPLING,
    json_path: Path | None = None,
    report_path: Path | None = None,
) -> Report:
    """Score saved hypotheses, one sentence a line, without any model; the first file is what the others are compared
    with. Without a source, lengths are those of the reference. Files are written only if `json_path` says where.

    Raises:
        UserError: a file that cannot be read, or files of different numbers of lines.
    """
    _check_request(hypotheses, "hypotheses to score", report_path)
    if source is None:
        references = read_lines(reference)
        one = EvaluationSet(_set_name(reference), references, references)
        length_of = "reference"
    else:
        one = EvaluationSet(_set_name(source), *read_pairs(source, reference))
    names = _display_names(hypotheses)
    lines = [[read_lines(path)] for path in hypotheses]
    report = build_report(
        [one],
        dict(zip(names, lines, strict=True)),
        [{"name": name, "path": str(path)} for name, path in zip(names, hypotheses, strict=True)],
        languages=languages,
        settings=Settings(by_length, length_of, tuple(measures), resampling),
    )
    if json_path is not None:
        _write(report, json_path, report_path, [one], [RunTexts(of_system) for of_system in lines])
    return report


def _find_sets(
    runs: Sequence[RunDir],
    configs: Sequence[Config],
    splits: Sequence[str],
    source: Path | None,
    reference: Path | None,
    show_progress: bool,
) -> list[EvaluationSet]:
    if (source is None) != (reference is None):
        raise UsageError("--source and --reference go together: name both files, or neither")
    if source is not None and reference is not None:
        if splits:
            raise UsageError("--split and --source: give splits of the corpus or a pair of files, not both")
        return [EvaluationSet(_set_name(source), *read_pairs(source, reference))]
    sets = _sets_of_corpus(configs[0], splits, show_progress)
    for run, config in zip(runs[1:], configs[1:], strict=True):
        if _sets_of_corpus(config, splits, show_progress) != sets:
            raise UsageError(
                f"{run.path} and {runs[0].path} have different test sets; give both --source FILE --reference FILE"
            )
    return sets


def _sets_of_corpus(config: Config, splits: Sequence[str], show_progress: bool) -> list[EvaluationSet]:
    prepared = prepare_corpus(config, show_progress=show_progress)
    for split in splits:
        if split not in prepared.splits:
            raise UsageError(f"--split {split!r}: this corpus has {', '.join(prepared.splits)}")
    chosen = list(dict.fromkeys(splits)) or prepared.test_splits
    if not chosen:
        raise UsageError("this corpus has no test set: give --split valid, or --source FILE --reference FILE")
    return [EvaluationSet(split, *prepared.text(split)) for split in chosen]


class _Translation:
    """Translates sets with one run; the model is loaded when it is first needed."""

    def __init__(
        self,
        run: RunDir,
        config: Config,
        beam_size: int | None,
        length_penalty: float | None,
        batch_size: int | None,
        device: str,
        reuse: bool,
        keep_maps: bool,
        show_progress: bool,
    ) -> None:
        self._run = run
        self._config = config
        self._search: dict[str, Any] = {
            "beam_size": config.search.beam_size if beam_size is None else beam_size,
            "length_penalty": config.search.length_penalty if length_penalty is None else length_penalty,
        }
        self._batch_size = batch_size
        self._device = device
        self._reuse = reuse
        self._keep_maps = keep_maps
        self._show_progress = show_progress
        self._model_hash: str | None = None
        self._translator: Translator | None = None
        self._seconds = 0.0
        self._hypotheses: list[list[str]] = []
        self._maps: list[list[PackedMap | None]] = []
        self._no_map = "its attention does not look at source positions"

    def describe(self) -> dict[str, Any]:
        """How it translated, for the report."""
        return {"search": self._search, "seconds": round(self._seconds, 1), "is_reused": self._translator is None}

    def texts(self) -> RunTexts:
        """All that was translated, set by set, for the HTML report."""
        return RunTexts(self._hypotheses, self._maps, self._config.model_dump(mode="json"), self._no_map)

    def translate(self, one: EvaluationSet) -> list[str]:
        """The translation of each source line, written to `hyps/` too, with a note of how it was made."""
        self._hypotheses.append(self._translate(one))
        return self._hypotheses[-1]

    def _translate(self, one: EvaluationSet) -> list[str]:
        path = self._run.hyps_path(one.name)
        made_by = self._how_made(one.source)
        if self._reuse and (lines := _read_same(path, made_by, len(one.source))) is not None:
            log.info("%s: made by the same model in the same way, reused", path)
            self._maps.append([None] * len(lines))
            self._no_map = "its saved hypotheses were used, which come without attention"
            return lines
        if self._translator is None:
            self._translator = load(self._run.path, self._device)
        started = time.monotonic()
        found = self._translator.translate_lines(
            one.source, **self._search, batch_size=self._batch_size, keep_attention=self._keep_maps
        )
        lines = []
        self._maps.append([])
        for best, *_ in self._with_bar(found, one):
            lines.append(best.text)
            self._maps[-1].append(pack_translation(best))  # at once: a test set's attention is far larger
        self._seconds += time.monotonic() - started
        write_text(path, "".join(f"{line}\n" for line in lines))
        write_json(path.with_suffix(".json"), made_by)
        return lines

    def _with_bar(self, found: Any, one: EvaluationSet) -> Any:
        from tqdm import tqdm

        label = f"{self._run.path.name}, {one.name}"
        return tqdm(found, desc=label, total=len(one.source), unit="line", disable=not self._show_progress)

    def _how_made(self, source: Sequence[str]) -> dict[str, Any]:
        if self._model_hash is None:
            if not self._run.model_path.is_file():
                self._run.best_metadata()  # says what is wrong
            self._model_hash = sha256_of(self._run.model_path)
        return {
            **self._search,
            "model_sha256": self._model_hash,
            "source_sha256": hashlib.sha256("\n".join(source).encode()).hexdigest(),
            "version": __version__,
        }


def _read_same(path: Path, made_by: dict[str, Any], num_lines: int) -> list[str] | None:
    try:
        if read_json(path.with_suffix(".json")) != made_by:
            return None
        lines = read_lines(path)
    except UserError:
        return None
    return lines if len(lines) == num_lines else None


def _describe_run(run: RunDir, config: Config) -> dict[str, Any]:
    """What a score needs to be read: which run, of what, from which seed and commit."""
    try:
        environment = read_json(run.path / "environment.json")
    except UserError:
        environment = None
    return {
        "path": str(run.path),
        "config": config.name,
        "attention": config.model.attention.name,
        "seed": config.seed,
        "lowercases": config.data.tokenizer.lowercase,
        "model": run.best_metadata(),
        "training_environment": environment,
    }


def _write(
    report: Report, json_path: Path, report_path: Path | None, sets: Sequence[EvaluationSet], runs: Sequence[RunTexts]
) -> None:
    """report.json, and beside it the Markdown page and the plots; of several sets the pooled one is drawn. A report
    path that ends in .md is that of the Markdown page, one that ends in .html takes the HTML page."""
    stem = json_path.name.removesuffix(".json")
    suffix = stem.removeprefix("report")  # report.comparison.json -> bleu-by-length.comparison.png
    drawn, unit = report.sets[-1], report.page.unit
    plots = []
    if "bleu" in drawn.scores:
        plots.append(f"bleu-by-length{suffix if stem.startswith('report') else f'.{stem}'}.png")
        plot_by_length(json_path.with_name(plots[0]), drawn, unit=unit)
        if len(drawn.systems) > 1:
            plots.append(plots[0].replace("bleu", "retention", 1))
            plot_retention(json_path.with_name(plots[1]), drawn, unit=unit)
    write_json(json_path, report.data)
    is_html = _is_html(report_path)
    page_path = json_path.with_name(f"{stem}.md") if report_path is None or is_html else report_path
    write_text(page_path, report.markdown(plots))
    written = [json_path, page_path, *map(json_path.with_name, plots)]
    if report_path is not None and is_html:
        write_text(report_path, html_report(report, sets, runs))
        written.append(report_path)
    log.info("written: %s", ", ".join(map(str, written)))


def _is_html(path: Path | None) -> bool:
    return path is not None and path.suffix == ".html"


def _check_request(paths: Sequence[str | Path], what: str, path: Path | None) -> None:
    if not paths:
        raise UsageError(f"no {what}: name at least one")
    if path is not None and path.suffix not in (".md", ".html"):
        raise UsageError(f"--report {str(path)!r}: name a file that ends in .md (Markdown) or .html (with attention)")


def _display_names(paths: Sequence[Path]) -> list[str]:
    """Last parts of the paths if they differ, else the paths."""
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(f"{', '.join(map(str, paths))}: the same twice; name different ones")
    names = [path.resolve().name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _set_name(path: Path) -> str:
    return path.name.removesuffix(".gz")
