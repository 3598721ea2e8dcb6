"""Before training: choose the run directory, new or resumed, and load the settings.

Modules that import torch are imported where they are used, so that mistakes in the settings are reported at once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from itertools import count
from pathlib import Path

from seq2seq_attn.config import Config, load_config, with_default
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.run_dir import RunDir

RUNS_DIR = Path("runs")

FIXED_ON_RESUME = (
    *("seed", "data", "model", "train.start_from", "train.batch"),
    *("train.optimizer.name", "train.optimizer.average_decay"),
    *(f"train.validation.{key}" for key in ("metric", "num_pairs", "beam_size")),
    *(f"search.{key}" for key in ("method", "length_penalty", "coverage_penalty", "no_repeat_ngram", "scorers")),
    *(f"search.{key}" for key in ("max_length_ratio", "max_length_extra")),
)
"""Settings that a resume cannot change: the saved state depends on them, or scores before and after the resume could
not be compared."""
RELOCATABLE = ("data.data_dir", "data.source_dir", "data.num_processes")

log = logging.getLogger(__name__)


def load_settings(
    config_names: Sequence[str], overrides: Sequence[str], *, run_dir: Path | None, resume: bool
) -> tuple[Config, Path | None]:
    """The configuration of a command line (default `multi30k`), and the run directory if that is decided. A resumed run
    has its own configuration, with `config_names` and `overrides` on top.

    Raises:
        UsageError: as `load_config`, or there is nothing to resume.
        UserError: the run's configuration is damaged.
    """
    if resume and run_dir is None:
        run_dir = newest_unfinished()
    if resume and run_dir is not None:
        own = RunDir(run_dir)
        if own.config_path.exists():
            name = json.dumps(own.config().name, ensure_ascii=False)  # changed settings do not rename the run
            return load_config([str(own.config_path), *config_names], [f"name={name}", *overrides]), run_dir
        if not config_names:
            raise UsageError(
                f"{run_dir}: nothing to resume (no {own.config_path.name}); name a run, or use -c to start one"
            )
        log.info("%s: no run to resume; starting one", run_dir)
    return load_config(with_default(config_names), overrides), run_dir


def newest_unfinished() -> Path:
    """The unfinished run in `runs/` that was last written to.

    Raises:
        UsageError: there is none.
    """
    runs = [run for run in map(RunDir, RUNS_DIR.glob("*")) if run.config_path.exists() and not run.is_finished()]
    if not runs:
        raise UsageError(f"--resume: no unfinished run in {RUNS_DIR}/; name one with --run-dir")
    return max(runs, key=_last_written_at).path


def choose_run_dir(run_dir: Path | None, *, resume: bool, overwrite: bool) -> Path | None:
    """The directory to train in, as named; None: a new one, which `create_run_dir` names.

    Raises:
        UsageError: the directory holds a run that is neither resumed nor overwritten, or something else; or the run to
            be resumed has no saved state.
        UserError: another process trains there, or the directory contains links.
    """
    if resume and overwrite:
        raise UsageError("--resume and --overwrite: one continues the run, the other replaces it; choose one")
    from seq2seq_attn.train.checkpoint import has_state
    from seq2seq_attn.train.session import locked

    if run_dir is None and overwrite:
        raise UsageError("--overwrite: replaces a run; name it with --run-dir")
    if run_dir is None and not resume:
        return None
    run_dir = run_dir or newest_unfinished()
    try:
        str(run_dir).encode()
    except UnicodeEncodeError:
        raise UsageError(f"--run-dir {str(run_dir)!r}: not UTF-8, the encoding of a run's files; rename it") from None
    run = RunDir(run_dir)
    if resume and not run.config_path.exists():
        run.remove_leftovers()
    run.check_free(overwrite=resume or overwrite)
    run.check_no_links()
    if not run_dir.exists() or run.is_empty():
        return run_dir
    if resume and run.model_path.exists() and not has_state(run.last_dir):
        raise UsageError(
            f"{run_dir}: has a model, but no saved state to resume (no {run.last_dir.name}/); "
            "--overwrite starts it over"
        )
    with locked(run_dir):  # report another process before data is prepared
        return run_dir


def create_run_dir(config: Config) -> Path:
    """Create a directory `runs/<date>-<name>-s<seed>`, with -2, -3, ... if that is taken. Runs that start at the same
    time get different ones."""
    base = f"{date.today().isoformat()}-{config.name.replace('/', '-')}-s{config.seed}"
    RUNS_DIR.mkdir(exist_ok=True)
    for number in count(1):
        path = RUNS_DIR / (base if number == 1 else f"{base}-{number}")
        with suppress(FileExistsError):
            path.mkdir()
            break
    return path


def check_start(config: Config, run_dir: Path | None, *, resume: bool, overwrite: bool) -> Path | None:
    """Make all checks that need no data, and return the directory to train in, as `choose_run_dir` does.

    Raises:
        UsageError: the settings cannot be trained or cannot be changed by a resume, or the directory is taken.
        UserError: a file of the run to be resumed is damaged, or word vectors or the run to start from cannot be read.
    """
    from seq2seq_attn.train.check import check_config
    from seq2seq_attn.train.checkpoint import has_state
    from seq2seq_attn.train.pretrained import check_start_values

    check_config(config)
    path = choose_run_dir(run_dir, resume=resume, overwrite=overwrite)
    if resume and path is not None and (run := RunDir(path)).config_path.exists():
        check_same_run(run.config(), config)
        if has_state(run.last_dir):
            run.check_files()
            return path
    check_start_values(config)
    return path


def check_same_run(saved: Config, config: Config) -> None:
    """Check the settings of a resume against those of the run.

    Raises:
        UsageError: a setting differs that a resume cannot change.
    """
    for key, (old, new) in saved.changes_to(config).items():
        if key == "search.max_length_ratio" and new is None:
            continue  # will be chosen again from the same training pairs
        if _is_under(key, FIXED_ON_RESUME) and not _is_under(key, RELOCATABLE):
            raise UsageError(
                f"{key}={new!r}: the run was started with {old!r}, which a resume cannot change; start a new run"
            )
        log.warning("%s: %r in this session, %r before", key, new, old)


def check_same_data(run: RunDir, config: Config, prepared: PreparedCorpus) -> None:
    """Check the corpus of a resume, and the length limit that follows from it, against those of the run.

    Raises:
        UserError: another corpus.
        UsageError: another length limit.
    """
    if run.text_hashes()["content"] != prepared.text_hashes()["content"]:
        raise UserError(
            f"{prepared.directory}: not the corpus that {run.path} was started with (its content hash differs); put the"
            " same text and tokenizer versions back, or start a new run"
        )
    before, now = run.config().search.max_length_ratio, config.search.max_length_ratio
    if before != now:
        raise UsageError(
            f"search.max_length_ratio={now:g}: the run was started with {before:g}, which a resume cannot change; set "
            f"search.max_length_ratio={before:g}"
        )


def _last_written_at(run: RunDir) -> tuple[float, str]:
    return (run.last_dir if run.last_dir.exists() else run.path).stat().st_mtime, run.path.name


def _is_under(key: str, prefixes: Sequence[str]) -> bool:
    return any(key == prefix or key.startswith(f"{prefix}.") for prefix in prefixes)
