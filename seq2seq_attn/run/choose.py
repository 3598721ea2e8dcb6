"""Choose runs by name, or the run that finished last."""

import logging
from collections.abc import Sequence
from pathlib import Path

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.run.directory import Run

Runs = str | Path | Run | Sequence[str | Path | Run] | None
"""one or several runs or their names; None if no run is named"""

log = logging.getLogger(__name__)


def newest_run(runs_dir: str | Path = "runs") -> Run:
    """Return the run in a folder that finished last. Raises UserError if the folder has no finished
    run."""
    runs = [Run(path) for path in sorted(Path(runs_dir).glob("*")) if path.is_dir()]
    newest = max(runs, key=lambda run: run.finished_at() or 0.0, default=None)
    if newest and newest.is_finished():
        return newest
    hint = ""  # about the last run that has a model
    for run in runs:
        if run.model_path.is_file():
            hint = f"; {run.path} has a model but has not finished: name it to use it"
    raise UserError(
        f"{runs_dir}/: no finished run; train one with `seq2seq train -c quickstart` (minutes, no "
        f"download), or name its directory{hint}"
    )


def open_runs(named: Runs) -> list[Run]:
    """Open the named runs, and warn about runs whose training has not finished. With None, open
    the run in `runs/` that finished last. A `Run` is returned unchanged, without a warning.

    Raises:
        UserError: see `Run.open` and `newest_run`.
        UsageError: `named` is empty.
    """
    if named is None:
        newest = newest_run()
        data = newest.config.data
        log.info("model: %s, %s to %s", newest.path, data.source_name, data.target_language)
        return [newest]
    names = [named] if isinstance(named, str | Path | Run) else named
    if not names:
        raise UsageError("no run: name at least one")
    runs = [Run.open(name) for name in names]
    for run in runs:
        if run not in names and run.last_dir.exists() and not run.is_finished():
            log.warning(
                "%s: its training has not finished; its best model so far is used", run.path
            )
    return runs
