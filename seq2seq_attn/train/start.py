"""Before training: choose the run directory, new or resumed, and load the settings.

Modules that import torch are imported where they are used, so that mistakes in the settings are reported at once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq_attn.config import Config, config_from_dict, load_config, with_default
from seq2seq_attn.errors import UsageError

if TYPE_CHECKING:
    import torch


RUNS_DIR = Path("runs")
CONFIG = "config.yaml"
MODEL = "model.safetensors"
LAST = "last"

DECIDES_THE_RUN = (
    *("seed", "data", "model", "train.start_from", "train.batch"),
    *("train.optimizer.name", "train.optimizer.average_decay"),
)
"""Settings that a resume cannot change, because the saved state depends on them."""
MAY_MOVE = ("data.data_dir", "data.source_dir", "data.num_processes")

log = logging.getLogger(__name__)


def load_settings(
    sources: Sequence[str], overrides: Sequence[str], *, run_dir: Path | None, resume: bool
) -> tuple[Config, Path | None]:
    """The configuration of a command line (default `multi30k`), and the run directory if that is decided. A resumed run
    has its own configuration, with `sources` and `overrides` on top.

    Raises:
        UsageError: as `load_config`, or there is nothing to resume.
        UserError: the run's configuration is damaged.
    """
    if resume and run_dir is None:
        run_dir = newest_unfinished(RUNS_DIR)
    own = run_dir / CONFIG if resume and run_dir is not None else None
    if own is not None and own.exists():
        from seq2seq_attn.run_dir import RunDir

        name = RunDir(own.parent).config().name  # changed settings do not rename the run
        return load_config([str(own), *sources], [f"name={json.dumps(name)}", *overrides]), run_dir
    if resume and not sources:
        raise UsageError(f"{run_dir}: nothing to resume (no {CONFIG}); name a run, or use -c to start one")
    return load_config(with_default(sources), overrides), run_dir


def newest_unfinished(runs_dir: Path) -> Path:
    """The unfinished run that was last written to.

    Raises:
        UsageError: there is none.
    """
    from seq2seq_attn.run_dir import RunDir

    runs = [path.parent for path in runs_dir.glob(f"*/{CONFIG}") if not RunDir(path.parent).is_finished()]
    if not runs:
        raise UsageError(f"--resume: no unfinished run in {runs_dir}/; name one with --run-dir")
    return max(runs, key=_last_written_at)


def choose_run_dir(config: Config, run_dir: Path | None, *, resume: bool, overwrite: bool) -> Path:
    """The directory to train in: as named, or `runs/<date>-<name>-s<seed>`, with -2, -3, ... if that is taken.

    Raises:
        UsageError: the directory holds a run that is neither resumed nor overwritten, or something else; or the run to
            be resumed has no saved state.
        UserError: another process trains there, or the directory contains links.
    """
    if resume and overwrite:
        raise UsageError("--resume and --overwrite: one continues the run, the other replaces it; choose one")
    from seq2seq_attn.run_dir import RunDir
    from seq2seq_attn.train.checkpoint import has_state
    from seq2seq_attn.train.lock import locked

    if run_dir is None and not resume:
        return _new_name(config)
    run_dir = run_dir or newest_unfinished(RUNS_DIR)
    try:
        str(run_dir).encode()
    except UnicodeEncodeError:
        raise UsageError(f"--run-dir {str(run_dir)!r}: not UTF-8, the encoding of a run's files; rename it") from None
    if run_dir.exists() and not run_dir.is_dir():
        raise UsageError(f"{run_dir}: a file; --run-dir expects a directory")
    if resume and not (run_dir / CONFIG).exists():
        _clear_leftovers(run_dir)
    if resume:
        RunDir(run_dir).check_no_links()
    if not run_dir.exists() or RunDir(run_dir).is_empty():
        return run_dir
    if not (run_dir / CONFIG).exists():
        raise UsageError(f"{run_dir}: not empty and not a run directory (it has no {CONFIG}); choose another --run-dir")
    if not (resume or overwrite):
        raise UsageError(f"{run_dir}: already holds a run; --resume continues it, --overwrite replaces it")
    if resume and (run_dir / MODEL).exists() and not has_state(run_dir / LAST):
        raise UsageError(
            f"{run_dir}: has a model, but no saved state to resume (no {LAST}/); --overwrite starts it over"
        )
    with locked(run_dir):  # report another process before data is prepared
        return run_dir


def check_start(config: Config, run_dir: Path | None, *, resume: bool, overwrite: bool) -> Path:
    """Make all checks that need no data, and return the directory to train in.

    Raises:
        UsageError: the settings cannot be trained or cannot be changed by a resume, or the directory is taken.
        UserError: the state to be resumed is damaged, or word vectors or the run to start from cannot be read.
    """
    from seq2seq_attn.train import checkpoint
    from seq2seq_attn.train.check import check_config
    from seq2seq_attn.train.pretrained import check_pretrained
    from seq2seq_attn.train.word_vectors import check_vectors

    check_config(config)
    path = choose_run_dir(config, run_dir, resume=resume, overwrite=overwrite)
    if resume and checkpoint.has_state(path / LAST):
        check_same_run(config_from_dict(checkpoint.read_values(path / LAST)["config"]), config)
    else:
        check_vectors(config.model)
        check_pretrained(config)
    return path


def check_same_run(saved: Config, config: Config) -> None:
    """Check the settings of a resume against those of the run.

    Raises:
        UsageError: a setting differs that a resume cannot change.
    """
    changes = _differences(saved.model_dump(mode="json"), config.model_dump(mode="json"))
    for key, (old, new) in changes.items():
        if key == "search.max_length_ratio" and new is None:
            continue  # will be chosen again from the same training pairs
        if _is_under(key, DECIDES_THE_RUN) and not _is_under(key, MAY_MOVE):
            raise UsageError(
                f"{key}={new!r}: the run was started with {old!r}, which a resume cannot change; start a new run"
            )
        log.warning("%s: %r in this session, %r before", key, new, old)


def compare_sessions(values: Mapping[str, Any], *, device: torch.device, num_processes: int) -> None:
    """Warn about differences between this session and the one that saved `values`."""
    import torch

    if device.type == "cpu" and values["num_threads"] != torch.get_num_threads():
        text = "%d CPU threads in this session, %d before: the last bits of sums may differ; see train.num_threads"
        log.warning(text, torch.get_num_threads(), values["num_threads"])
    if (before := values.get("num_processes", 1)) != num_processes:
        text = "%d processes in this session, %d before: dropout masks will differ"
        log.warning(text, num_processes, before)


def _new_name(config: Config) -> Path:
    base = f"{date.today().isoformat()}-{config.name.replace('/', '-')}-s{config.seed}"
    number, path = 1, RUNS_DIR / base
    while path.exists():
        number += 1
        path = RUNS_DIR / f"{base}-{number}"
    return path


def _last_written_at(run_dir: Path) -> tuple[float, str]:
    last_dir = run_dir / LAST
    return (last_dir if last_dir.exists() else run_dir).stat().st_mtime, run_dir.name


def _clear_leftovers(run_dir: Path) -> None:
    """Remove the temporary file of a process that was killed while it wrote the first file."""
    for leftover in run_dir.glob(f".{CONFIG}.*.tmp"):
        leftover.unlink()


def _is_under(key: str, prefixes: Sequence[str]) -> bool:
    return any(key == prefix or key.startswith(f"{prefix}.") for prefix in prefixes)


def _differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = {}
    for key in {**old, **new}:
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            found |= _differences(before, after, f"{prefix}{key}.")
        elif before != after:
            found[prefix + key] = (before, after)
    return found
