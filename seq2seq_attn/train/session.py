"""Start a training session: check its settings, choose and lock the run directory, and set the
number of threads.

Modules that need torch are imported inside functions, so that errors in the settings are reported
without waiting for the import of torch.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq_attn.config import Config, TrainConfig, load_config, with_default
from seq2seq_attn.config.load import Settings
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.weights import read_tensors
from seq2seq_attn.run import LOCK, Run
from seq2seq_attn.run.cleaning import remove_run_leftovers
from seq2seq_attn.train.schedules import FALLING

if TYPE_CHECKING:
    from seq2seq_attn.train.distributed import Group

RUNS_DIR = Path("runs")
OnValidation = Callable[[int, Mapping[str, float]], bool | None]
"""a function of the number of an update and of the scores of its validation by name; training stops
if the function returns True"""

FIXED_ON_RESUME = (
    "seed",
    "data",
    "model",
    "search",
    "train.start_from",
    "train.batch",
    "train.optimizer.name",
    "train.optimizer.average_decay",
    "train.validation.metric",
    "train.validation.num_pairs",
    "train.validation.beam_size",
)
"""Settings that a resume cannot change. The saved state depends on them, or scores before and after
the resume would not be comparable."""
CHANGEABLE = (
    "data.data_dir",
    "data.source_dir",
    "data.num_processes",
    "search.beam_size",
    "search.n_best",
    "search.batch_size",
)
"""Exceptions from FIXED_ON_RESUME: a resume may change these settings, because neither the text nor
a validation depends on them."""

log = logging.getLogger(__name__)


def load_settings(
    config_names: Sequence[str], *settings: Settings, run_dir: Path | None, resume: bool
) -> Config:
    """Load the configuration of a training run.

    If no file of `config_names` sets the name of a configuration, `multi30k` is loaded before these
    files. A resume loads the configuration of the run first, and the files do not change the name
    of the configuration.

    Raises:
        UsageError: a configuration is not valid, or there is no run to resume.
        UserError: the configuration of the run is damaged.
    """
    if resume and run_dir is not None:
        run = Run(run_dir)
        if run.config_path.exists():
            name = {"name": run.config.name}
            return load_config([run.config_path, *config_names], name, *settings)
        if not config_names:
            raise UsageError(
                f"{run_dir}: nothing to resume (no {run.config_path.name}); name a run, or use -c "
                "to start one"
            )
        log.info("%s: no run to resume; starting one", run_dir)
    return load_config(with_default(config_names), *settings)


def newest_unfinished() -> Path:
    """Return the path of the unfinished run in `runs/` that was last written to. Raises UsageError:
    there is no unfinished run."""
    written_s = {}
    for path in RUNS_DIR.glob("*"):
        run = Run(path)
        if run.config_path.exists() and not run.is_finished():
            written = run.last_dir if run.last_dir.exists() else path
            written_s[path] = written.stat().st_mtime
    if not written_s:
        raise UsageError(f"--resume: no unfinished run in {RUNS_DIR}/; name one with --run-dir")
    return max(written_s, key=written_s.__getitem__)


def check_start(
    config: Config, run_dir: Path | None, *, resume: bool, overwrite: bool
) -> Path | None:
    """Make all checks that need no data. Return the result of `choose_run_dir`.

    Raises:
        UsageError: the settings cannot be trained, a resume cannot change a setting, or the
            directory is not free.
        UserError: a file of the run to be resumed is damaged, or word vectors or the run to start
            from cannot be read.
    """
    from seq2seq_attn.train.check import check_config
    from seq2seq_attn.train.pretrained import check_start_values

    check_config(config)
    path = choose_run_dir(run_dir, resume=resume, overwrite=overwrite)
    old = config.data.vocab_from
    replaces_old = overwrite and path and old and path.resolve() == old.resolve()
    if config.data.mix and replaces_old:  # mixing reads the text of the old run
        raise UsageError(
            f"data.mix={config.data.mix:g}: needs the text of {old}, which this replaces; set "
            "another --run-dir"
        )
    if resume and path is not None:
        run = Run(path)
        if run.config_path.exists():
            check_same_run(run.config, config)
        if run.state_path.exists():
            run.check_files()
            return path  # the saved state replaces start values
    check_start_values(config)
    return path


def choose_run_dir(run_dir: Path | None, *, resume: bool, overwrite: bool) -> Path | None:
    """Return the directory to train in: `run_dir`, or with `resume` the newest unfinished run.
    Return None for a new run without a name, for which `create_run_dir` makes a directory.

    Raises:
        UsageError: the directory holds a run that is neither resumed nor overwritten, or files that
            are not a run; or the run to be resumed has no saved state.
        UserError: another process trains in the directory, or the directory contains symbolic
            links.
    """
    if resume and overwrite:
        raise UsageError(
            "--resume and --overwrite: one continues the run, the other replaces it; choose one"
        )
    if run_dir is None and overwrite:
        raise UsageError("--overwrite: replaces a run; name it with --run-dir")
    if run_dir is None and not resume:
        return None
    run_dir = run_dir or newest_unfinished()
    if not str(run_dir).isprintable():
        raise UsageError(f"--run-dir {str(run_dir)!r}: not one line of UTF-8 text; rename it")
    run = Run(run_dir)
    if resume and not run.config_path.exists():
        remove_run_leftovers(run.path)
    run.check_free(overwrite=resume or overwrite)
    run.check_no_links()
    if not run_dir.exists() or run.is_empty():
        return run_dir
    if resume and run.model_path.exists() and not run.state_path.exists():
        raise UsageError(
            f"{run_dir}: has a model, but no saved state to resume (no {run.last_dir.name}/); "
            "--overwrite starts it over"
        )
    with locked(run_dir):  # raises an error now if another process trains there
        return run_dir


def create_run_dir(config: Config, group: Group) -> Path:
    """Create a directory `runs/<date>-<name>-s<seed>`. Return its path on all ranks. If the name is
    taken, -2, -3, ... is appended. Runs that start at the same time get different directories."""
    base = f"{date.today().isoformat()}-{config.name.replace('/', '-')}-s{config.seed}"
    path = RUNS_DIR / base
    with group.in_turn():
        if group.is_first:
            RUNS_DIR.mkdir(exist_ok=True)
            for number in count(2):
                try:
                    path.mkdir()
                    break
                except FileExistsError:
                    path = RUNS_DIR / f"{base}-{number}"
    return group.broadcast(path)


def check_same_run(saved: Config, config: Config) -> None:
    """Check the settings of a resume against the settings of the run, and log a warning for each
    setting that differs.

    Raises:
        UsageError: a resume cannot change a setting that differs.
    """
    for key, (old, new) in saved.changes_to(config).items():
        if key == "search.max_length_ratio" and new is None:
            continue  # the ratio will be computed from the same training pairs again
        if _is_in(key, FIXED_ON_RESUME) and not _is_in(key, CHANGEABLE):
            raise UsageError(
                f"{key}={new!r}: the run was started with {old!r}, which a resume cannot change; "
                "start a new run"
            )
        effect = ""
        if key in ("train.max_epochs", "train.max_updates"):
            effect = _describe_new_end(config.train)
        log.warning("%s: %r in this session, %r before%s", key, new, old, effect)


def _describe_new_end(config: TrainConfig) -> str:
    """Return the end of a warning: what else may change if training ends at another update."""
    effect = ""
    schedule = config.schedule.name
    if schedule in FALLING:
        effect = (
            f"; the learning rate may jump, because train.schedule.name={schedule} depends on the "
            "end of training"
        )
    for name, objective in config.objectives.items():
        if objective.start > 0.0 or objective.end < 1.0:
            effect += f"; train.objectives.{name} starts and ends at other updates"
    return effect


def _is_in(key: str, sections: Sequence[str]) -> bool:
    """Return whether a setting is among `sections` or belongs to a section."""
    return any(f"{key}.".startswith(f"{section}.") for section in sections)


def check_same_data(run: Run, config: Config, prepared: PreparedCorpus) -> None:
    """Check that the corpus of a resume, and the length limit that depends on it, are those of the
    run.

    Raises:
        UserError: the corpus differs.
        UsageError: the length limit differs.
    """
    if run.text_hashes["content"] != prepared.text_hashes()["content"]:
        raise UserError(
            f"{prepared.directory}: not the corpus that {run.path} was started with (its content "
            "hash differs); put the same text and tokenizer versions back, or start a new run"
        )
    before, now = run.config.search.max_length_ratio, config.search.max_length_ratio
    if before != now:
        raise UsageError(
            f"search.max_length_ratio={now:g}: the run was started with {before:g}, which a resume "
            f"cannot change; set search.max_length_ratio={before:g}"
        )


@contextmanager
def locked(
    run_dir: Path, *, work: str = "training run", option: str = "--run-dir"
) -> Iterator[None]:
    """Hold the lock of a folder inside the block, so that no second process works in the folder.
    The folder is created if needed.

    The system releases the lock when the process ends. The lock file is not removed: otherwise two
    processes could lock two files of the same name.

    Args:
        work: the work of the process that holds the lock, for the error message.
        option: the option that names the folder, for the error message.

    Raises:
        UserError: a second process holds the lock.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise UserError(
                f"{run_dir}: in use by another {work} (process {file.read().strip() or 'unknown'});"
                f" stop it, or choose another {option}"
            ) from None
        except OSError as error:
            text = "%s: cannot be locked (%s); do not start another %s there"
            log.warning(text, run_dir, error.strerror, work)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def set_num_threads(config: Config, prepared: PreparedCorpus, resumed: Path | None) -> None:
    """Set the number of CPU threads. The number is, in this order of preference: the configured
    number; the number that the user has set in the environment; the number of the resumed run, if
    the machine has as many CPUs; for processes of `torchrun`, an equal share of the CPUs; a choice
    by the size of the model and the load of the machine.

    Args:
        resumed: the directory of the resumed run; None for a new run.
    """
    from seq2seq_attn.model.build import count_parameters, model_without_weights
    from seq2seq_attn.runtime.device import resolve_device
    from seq2seq_attn.runtime.threads import (
        choose_threads,
        is_set_by_user,
        num_available_cpus,
        set_threads,
    )

    if config.train.num_threads is not None:
        set_threads(config.train.num_threads)
        return
    if is_set_by_user() or resolve_device(config.train.device).type != "cpu":
        return
    if resumed is not None:
        state_path = Run(resumed).state_path
        if state_path.exists():
            number = read_tensors(state_path).values["num_threads"]
            if number <= num_available_cpus():
                set_threads(number)
                return
    num_ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if num_ranks_here > 1:
        set_threads(max(1, num_available_cpus() // num_ranks_here))
        return
    model = model_without_weights(
        config.model,
        num_source_ids=len(prepared.source_vocab),
        num_target_ids=len(prepared.target_vocab),
        vector_sizes=prepared.source_tokenizer.vector_sizes,
    )
    choose_threads(count_parameters(model))
