"""Train and evaluate from Python, with the names and defaults of the commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seq2seq_attn.commands.cli.options import as_settings
from seq2seq_attn.commands.evaluate import EvaluationRequest
from seq2seq_attn.commands.evaluate import evaluate as run_evaluation
from seq2seq_attn.evaluation.scoring import Settings
from seq2seq_attn.evaluation.systems import Decoding
from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES, MeasureName
from seq2seq_attn.report.build import Report
from seq2seq_attn.report.files import ReportFiles
from seq2seq_attn.run_dir import RunDir, newest_run
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.start import load_settings


def train_model(
    config: str | Path | Sequence[str | Path] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    run_dir: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> RunDir:
    """Train as `seq2seq train` does. Returns the run, with its directory as `path`.

    >>> train_model(["quickstart", "attention/bilinear"], {"seed": 2, "train.max_epochs": 3})  # doctest: +SKIP
    RunDir('runs/2026-11-22-quickstart+bilinear-s2')

    Args:
        config: packaged configuration or YAML file; later ones override earlier ones. None: `multi30k`, or, with
            `resume`, that of the run.
        settings: single settings by dotted key, as `--set` takes them; None is `null`.
        run_dir: where the run is written; None: `runs/<date>-<configuration>-s<seed>`.
        resume: continue the run in `run_dir`, or the newest unfinished run, exactly where it was interrupted.
        overwrite: replace the run in `run_dir`.

    Raises:
        UsageError, UserError: as the command.
    """
    config_names = [str(one) for one in ([config] if isinstance(config, str | Path) else config or [])]
    where = None if run_dir is None else Path(run_dir)
    resolved, where = load_settings(config_names, as_settings(settings or {}), run_dir=where, resume=resume)
    return train(resolved, run_dir=where, resume=resume, overwrite=overwrite)


def evaluate(
    runs: str | Path | Sequence[str | Path] | None = None,
    *,
    split: str | Sequence[str] = (),
    source: str | Path | None = None,
    reference: str | Path | None = None,
    concatenate: Sequence[int] = (),
    metric: Sequence[MeasureName] = DEFAULT_MEASURES,
    ensemble: bool = False,
    by_length: str | None = None,
    beam_size: int | None = None,
    reuse_hypotheses: bool = False,
    device: str = "auto",
    json: str | Path | None = None,
    report: str | Path | None = None,
) -> Report:
    """Translate test sets and score runs, as `seq2seq evaluate` does. `Report.data` has plain values.

    >>> scores = evaluate(["runs/a", "runs/b"], report="comparison.html")  # doctest: +SKIP
    >>> scores.data["sets"][0]["measures"][0]["runs"][0]["score"]         # doctest: +SKIP

    Args:
        runs: run directories; the others are compared with the first. None: the run that finished last.
        split: splits of the runs' corpus; none: its test sets.
        source: instead of splits, a file with one sentence per line, and `reference`, its translation.
        concatenate: for each number K, score sets of K pairs concatenated into one; none: pairs as they are.
        metric: the metrics, the first one also by length.
        ensemble: also score all runs as one model, by the mean of their probabilities.
        by_length: lower edges of the length buckets (`9,12,15`), or `quantiles:N`; None: chosen for the corpus.
        beam_size: None: as each run is configured.
        reuse_hypotheses: reuse saved translations of the same model and settings.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        json, report: files to write, the report as .md or .html. Without both, the report goes to the first run.

    Raises:
        UsageError, UserError: as the command.
    """
    runs = newest_run().path if runs is None else runs
    request = EvaluationRequest(
        [runs] if isinstance(runs, str | Path) else runs,
        splits=[split] if isinstance(split, str) else split,
        source=_path(source),
        reference=_path(reference),
        concatenate=concatenate,
        settings=Settings(by_length, measures=tuple(metric)),
        decoding=Decoding(SearchOptions.given(beam_size=beam_size), device=device, reuse_hypotheses=reuse_hypotheses),
        files=ReportFiles(_path(json), _path(report)),
        ensemble=ensemble,
    )
    return run_evaluation(request)


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)
