"""Start a training session: check its settings, lock the run directory, set the number of threads,
catch signals.

Ctrl-C, SIGTERM and SIGHUP end training after the current update, with a saved state. The first
signal is only recorded; the training loop checks `StopRequest.is_set` between updates. At the
second signal the process exits at once. The last saved state stays valid in any case.

A signal that was ignored when the process started stays ignored. `nohup` ignores SIGHUP so that its
command outlives the terminal, and a shell without job control ignores SIGINT for commands started
with `&` (POSIX, section 2.11), because Ctrl-C is meant for the foreground command but reaches all
processes of the terminal.

Modules that import torch are imported where they are used, so that mistakes in the settings are
reported at once.
"""

import fcntl
import logging
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from itertools import count
from pathlib import Path
from types import FrameType

from seq2seq_attn.config import Config, load_config, with_default
from seq2seq_attn.config.load import Settings
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.weights import read_tensors
from seq2seq_attn.run import LOCK, Run
from seq2seq_attn.train.schedules import FALLING

RUNS_DIR = Path("runs")

FIXED_ON_RESUME = (
    *("seed", "data", "model", "search", "train.start_from", "train.batch"),
    *("train.optimizer.name", "train.optimizer.average_decay"),
    *(f"train.validation.{key}" for key in ("metric", "num_pairs", "beam_size")),
)
"""Settings that a resume cannot change: the saved state depends on them, or scores before and after
the resume could not be compared."""
CHANGEABLE = (
    *("data.data_dir", "data.source_dir", "data.num_processes"),
    *(f"search.{key}" for key in ("beam_size", "n_best", "batch_size")),
)
"""The settings among these that a resume may change, as neither the text nor a validation depends
on them."""

log = logging.getLogger(__name__)


def load_settings(
    config_names: Sequence[str], *settings: Settings, run_dir: Path | None, resume: bool
) -> Config:
    """The configuration of `load_config` (default `multi30k`). A resumed run has its own
    configuration, with `config_names` and `settings` on top; they do not rename it.

    Raises:
        UsageError: as `load_config`, or there is nothing to resume.
        UserError: the run's configuration is damaged.
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
    """The unfinished run in `runs/` that was last written to. Raises UsageError: there is none."""
    runs = [
        run
        for run in map(Run, RUNS_DIR.glob("*"))
        if run.config_path.exists() and not run.is_finished()
    ]
    if not runs:
        raise UsageError(f"--resume: no unfinished run in {RUNS_DIR}/; name one with --run-dir")
    written = [
        ((run.last_dir if run.last_dir.exists() else run.path).stat().st_mtime, run.path)
        for run in runs
    ]
    return max(written)[1]


def check_start(
    config: Config, run_dir: Path | None, *, resume: bool, overwrite: bool
) -> Path | None:
    """Make all checks that need no data, and return the directory to train in, as `choose_run_dir`
    does.

    Raises:
        UsageError: the settings cannot be trained or cannot be changed by a resume, or the
            directory is taken.
        UserError: a file of the run to be resumed is damaged, or word vectors or the run to start
            from cannot be read.
    """
    from seq2seq_attn.train.check import check_config
    from seq2seq_attn.train.pretrained import check_start_values

    check_config(config)
    path = choose_run_dir(run_dir, resume=resume, overwrite=overwrite)
    old, mix = config.data.vocab_from, config.data.mix
    if overwrite and mix and path and old and path.resolve() == old.resolve():
        raise UsageError(
            f"data.mix={mix:g}: needs the text of {old}, which this replaces; set another --run-dir"
        )
    if resume and path is not None and (run := Run(path)).config_path.exists():
        check_same_run(run.config, config)
        if run.state_path.exists():
            run.check_files()
            return path
    check_start_values(config)
    return path


def choose_run_dir(run_dir: Path | None, *, resume: bool, overwrite: bool) -> Path | None:
    """The directory to train in, as named; None: a new one, which `create_run_dir` names.

    Raises:
        UsageError: the directory holds a run that is neither resumed nor overwritten, or something
            else; or the run to be resumed has no saved state.
        UserError: another process trains there, or the directory contains links.
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
    try:
        str(run_dir).encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"--run-dir {str(run_dir)!r}: not UTF-8, the encoding of a run's files; rename it"
        ) from None
    run = Run(run_dir)
    if resume and not run.config_path.exists():
        run.remove_leftovers()
    run.check_free(overwrite=resume or overwrite)
    run.check_no_links()
    if not run_dir.exists() or run.is_empty():
        return run_dir
    if resume and run.model_path.exists() and not run.state_path.exists():
        raise UsageError(
            f"{run_dir}: has a model, but no saved state to resume (no {run.last_dir.name}/); "
            "--overwrite starts it over"
        )
    with locked(run_dir):  # report another process before data is prepared
        return run_dir


def create_run_dir(config: Config) -> Path:
    """Create a directory `runs/<date>-<name>-s<seed>`, with -2, -3, ... if that is taken. Runs that
    start at the same time get different ones."""
    base = f"{date.today().isoformat()}-{config.name.replace('/', '-')}-s{config.seed}"
    RUNS_DIR.mkdir(exist_ok=True)
    for number in count(1):
        path = RUNS_DIR / (base if number == 1 else f"{base}-{number}")
        with suppress(FileExistsError):
            path.mkdir()
            break
    return path


def check_same_run(saved: Config, config: Config) -> None:
    """Check the settings of a resume against those of the run. Raises UsageError: a setting differs
    that a resume cannot change."""
    for key, (old, new) in saved.changes_to(config).items():
        if key == "search.max_length_ratio" and new is None:
            continue  # will be chosen again from the same training pairs
        is_fixed, is_changeable = (
            any(f"{key}.".startswith(f"{prefix}.") for prefix in prefixes)
            for prefixes in (FIXED_ON_RESUME, CHANGEABLE)
        )
        if is_fixed and not is_changeable:
            raise UsageError(
                f"{key}={new!r}: the run was started with {old!r}, which a resume cannot change; "
                "start a new run"
            )
        is_end = (
            key in ("train.max_epochs", "train.max_updates")
            and config.train.schedule.name in FALLING
        )
        effect = f"; the learning rate jumps, as train.schedule.name={config.train.schedule.name} falls to the new end"
        log.warning("%s: %r in this session, %r before%s", key, new, old, effect if is_end else "")


def check_same_data(run: Run, config: Config, prepared: PreparedCorpus) -> None:
    """Check the corpus of a resume, and the length limit that follows from it, against those of the
    run.

    Raises:
        UserError: another corpus.
        UsageError: another length limit.
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
    """Hold the lock of a run directory, which is created if needed. One training process at a time
    writes to it, or does other `work` in a folder that an `option` names. The system releases the
    lock when the process ends. The file stays: if it were removed, two processes could lock two
    files of the same name. Raises UserError: another process holds the lock."""
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
            log.warning(
                "%s: cannot be locked (%s); do not start another %s there",
                run_dir,
                error.strerror,
                work,
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def set_num_threads(config: Config, prepared: PreparedCorpus, resumed: Path | None) -> None:
    """Set the number of CPU threads: as configured, else as the user has set it, else that of the
    run that is resumed, else chosen by the model's size and the load. Processes of `torchrun` share
    the CPUs equally."""
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
    if resumed is not None and (path := Run(resumed).state_path).exists():
        before = read_tensors(path).values["num_threads"]
        if before <= num_available_cpus():
            set_threads(before)
            return
    if (ranks_here := int(os.environ.get("LOCAL_WORLD_SIZE", "1"))) > 1:
        set_threads(max(1, num_available_cpus() // ranks_here))
        return
    sizes = {
        "num_source_ids": len(prepared.source_vocab),
        "num_target_ids": len(prepared.target_vocab),
    }
    vectors = prepared.source_tokenizer.vector_sizes
    choose_threads(
        count_parameters(model_without_weights(config.model, **sizes, vector_sizes=vectors))
    )


class StopRequest:
    """Whether a signal to this process or to another rank has asked training to stop, and which
    signal."""

    def __init__(self) -> None:
        self.signal_number: int | None = None

    @property
    def is_set(self) -> bool:
        """Whether a signal has arrived."""
        return self.signal_number is not None

    def leave(self) -> None:
        """Raise `KeyboardInterrupt` (exit 130) or `SystemExit` (128 + signal)."""
        if self.signal_number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal_number is not None:
            raise SystemExit(128 + self.signal_number)


@contextmanager
def catch_signals() -> Iterator[StopRequest]:
    """Record SIGINT, SIGTERM and SIGHUP inside the block; restore the former handlers at its end.

    Python allows handlers in the main thread only; in other threads nothing is caught.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    num_signals = 0

    def note(signal_number: int, frame: FrameType | None) -> None:
        nonlocal num_signals
        num_signals += 1
        request.signal_number = signal_number
        if num_signals > 1:  # not `is_set`, which another rank may have caused
            request.leave()
        # not through the log, which is not reentrant: the signal may have interrupted it
        with suppress(OSError):  # a hang-up has closed the terminal
            os.write(
                2,
                f"\n{signal.Signals(signal_number).name}: finishing this update, then saving\n".encode(),
            )

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {
        number: signal.signal(number, note)
        for number in numbers
        if signal.getsignal(number) != signal.SIG_IGN
    }
    if signal.SIGINT not in former:
        log.info(
            "SIGINT is ignored, as in every background job of a script; to stop, run: kill -TERM "
            "%d",
            os.getpid(),
        )
    try:
        yield request
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
