"""Compare variants: plan the runs, train them, evaluate them, and write a report.

An arm is a group of runs that differ only in their seed. A comparison has an arm for each
combination of the values of the varied settings.
"""

import ctypes
import itertools
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from seq2seq_attn.api.evaluate import evaluate
from seq2seq_attn.api.settings import LIMITS, ConfigNames, Layers, OwnText, find_layers
from seq2seq_attn.api.shared_output import share_output
from seq2seq_attn.config import Config, dump_config, with_default
from seq2seq_attn.config.explain import all_keys, unknown_key
from seq2seq_attn.config.load import Settings, plain
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.sources import split_names
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.names import NOT_TRAINED, REPEATED, trained_settings
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.model.variants import import_variants
from seq2seq_attn.run import Run
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.threads import num_available_cpus
from seq2seq_attn.train.check import check_config
from seq2seq_attn.train.log_start import log_audit
from seq2seq_attn.train.session import RUNS_DIR, locked

NUM_THREADS = 1
"""CPU threads of every run. The run's configuration records the number, because the last bits of
sums depend on it."""

_POLL_S = 0.1
_PR_SET_PDEATHSIG = 1
"""The option of Linux's `prctl` that signals a process when its parent ends."""

log = logging.getLogger(__name__)


class PlannedRun(NamedTuple):
    """A run to be trained."""

    run: Run
    config: Config

    @property
    def log_path(self) -> Path:
        """Return the log file of the training process, next to the run directory."""
        return Path(f"{self.run.path}.log")

    @property
    def config_path(self) -> Path:
        """Return the configuration file that the training process reads, next to the run
        directory."""
        return Path(f"{self.run.path}.yaml")


def compare(
    config: ConfigNames = None,
    vary: Mapping[str, Iterable[Any]] | None = None,
    settings: Settings | None = None,
    *,
    seeds: Sequence[int] = (1, 2, 3),
    output: str | Path | None = None,
    at_once: int | None = None,
    imports: Sequence[str] = (),
    **text: Unpack[OwnText],
) -> Path:
    """Train variants with several seeds, compare their scores, and return the path of the report,
    as `seq2seq compare` does.

    >>> vary = {"attention": ["additive", "bilinear"]}
    >>> compare("quickstart", vary, {"train.max_updates": 2}, seeds=[1])
    PosixPath('runs/compare-quickstart/report.html')

    Args:
        config: the configuration that all runs share, as in `train_model`.
        vary: the values of each setting that is varied.
        settings: single settings that all runs share, as in `train_model`.
        seeds: the seeds of each variant.
        output: the folder for runs and report; None means `runs/compare-<configuration>`.
        at_once: number of runs trained in parallel; None means one per CPU core, or one on a GPU.
        imports: modules that define variants. Each training process imports them.
        text: the user's parallel text, as in `train_model`.

    Raises:
        UsageError: an argument is not valid, or see `plan_runs` and `train_and_compare`.
        UserError: see `find_layers` and `train_and_compare`.
    """
    seeds = plain(list(seeds))
    if not seeds:
        raise UsageError("seeds=[]: name at least one, for example seeds=[1, 2, 3]")
    if at_once is not None and at_once < 1:
        raise UsageError(f"at_once={at_once}: expected 1 or more")
    import_variants(imports)
    variations: dict[str, list[Any]] = {}
    limits = {}
    for key, values in (vary or {}).items():
        variations[key] = list(values)
        # No limit is chosen for the text if the arms set one. The longest arm decides validations.
        numbers = [value for value in variations[key] if isinstance(value, int)]
        if key in LIMITS and numbers:
            limits[key] = max(numbers)
    layers = find_layers(config, settings, text, varied=limits)
    layers.config_names[:] = with_default(layers.config_names)
    planned = plan_runs(layers, variations, list(dict.fromkeys(seeds)), output=output)
    return train_and_compare(planned, at_once, imports=imports)


def train_and_compare(
    planned: Sequence[PlannedRun], at_once: int | None = None, *, imports: Sequence[str] = ()
) -> Path:
    """Train the runs, evaluate them, compare their scores, and return the path of the report.

    The runs are evaluated on the test sets, or on the validation set if the corpus has no test
    sets. If a call is interrupted, the same call continues from there.

    Args:
        planned: the runs and their configurations.
        at_once: number of runs trained in parallel; None means one per CPU core, or one on a GPU.
        imports: modules that define variants. Each training process imports them.

    Raises:
        UsageError: a configuration cannot be trained, or a run in the folder was trained with
            different settings.
        UserError: a second comparison uses the folder, data cannot be prepared, a run in the folder
            was trained on different text, or some runs failed. If runs failed, the report covers
            the finished runs.
    """
    folder = planned[0].run.path.parent
    config = planned[0].config
    # A comparison that is refused leaves no folder.
    for planned_run in planned:
        if not planned_run.config.data.layout.columns:
            raise UsageError(
                "data.source_language=none: language models have no translations to compare"
            )
        check_config(planned_run.config)
        _check_settings(planned_run)
    prepare_corpora(planned)
    with locked(folder, work="comparison", option="--output"):
        if at_once is None:
            is_on_cpu = resolve_device(config.train.device).type == "cpu"
            at_once = num_available_cpus() if is_on_cpu else 1
        failed = train_runs(planned, at_once=at_once, imports=imports)
        finished = [planned_run.run.path for planned_run in planned if planned_run not in failed]
        page = folder / "report.html"
        if finished:
            _report(finished, config, page)
        if failed:
            logs = ", ".join(str(planned_run.log_path) for planned_run in failed)
            raise UserError(
                f"{len(failed)} of {len(planned)} runs failed, see {logs}; the same command tries "
                "them again"
            )
        return page


def _report(runs: Sequence[Path], config: Config, page: Path) -> None:
    """Evaluate the runs. Write the report to `page`, and its numbers to a JSON file beside it."""
    splits = []
    if split_names(config.data) == ["train", "valid"]:
        log.info("this corpus has no test set: comparing on the validation set")
        splits = ["valid"]
    json_path = page.with_suffix(".json")
    report = evaluate(runs, split=splits, json=json_path, report=page, device=config.train.device)
    log.info("%s", report.summary)


def _check_settings(planned: PlannedRun) -> None:
    """Check that an existing run was started with the planned settings, or raise UsageError."""
    run = planned.run
    if not run.config_path.is_file():
        return
    for key, (saved, wanted) in run.config.changes_to(planned.config).items():
        if key == "search.max_length_ratio" and wanted is None:
            continue  # training chose the value that was saved
        if key == "seed" or key not in NOT_TRAINED:
            raise UsageError(
                f"{run.path}: trained with {key}={saved!r}, not {wanted!r}; remove it, or write "
                "elsewhere"
            )


def prepare_corpora(planned: Sequence[PlannedRun]) -> None:
    """Prepare each corpus, and check that finished runs were trained on the prepared corpus.

    A corpus is prepared once, rather than in each training process. Interrupted runs are not
    checked here, because they check the corpus when they are resumed.

    Raises:
        UsageError: a configuration does not name a valid corpus.
        UserError: a corpus cannot be prepared, or a finished run was trained on a different corpus.
    """
    contents = {}
    for run, config in planned:
        data = config.data.model_dump_json()
        if data not in contents:
            prepared = prepare_corpus(config)
            log_audit(prepared)
            contents[data] = prepared.text_hashes()["content"]
        if run.is_finished() and run.text_hashes["content"] != contents[data]:
            raise UserError(
                f"{run.path}: trained on another corpus (the text or the version of a tokenizer "
                "has changed since); choose another --output, or remove this run"
            )


def plan_runs(
    layers: Layers,
    vary: Mapping[str, Iterable[Any]],
    seeds: Sequence[int],
    *,
    output: str | Path | None = None,
) -> list[PlannedRun]:
    """Return the runs of every arm with every seed.

    Runs are in the order of seeds, so that an interrupted comparison has all arms of the first
    seeds. Arms with equal settings are a null comparison, which shows how far scores differ by the
    seeds alone. The seeds of a repeated arm follow the seeds of the arm before.

    Raises:
        UsageError: a configuration is not valid, two arms have the same name, or arms with equal
            settings have a single seed.
    """
    base = layers.load().name
    folder = Path(output or RUNS_DIR / f"compare-{base.replace('/', '-')}")
    arms: dict[str, dict[str, Any]] = {}
    shifts = {}
    num_arms = Counter[str]()  # by their settings
    variations = [_list_values(key, values) for key, values in vary.items()]
    combinations = list(itertools.product(*variations))
    share_output(layers, map(dict, combinations))
    for combination in combinations:
        varied = dict(combination)
        label = "+".join(_label(key, value) for key, value in combination)
        config = layers.load(varied)
        settings = json.dumps(trained_settings(config), sort_keys=True)
        repetition = num_arms[settings]
        num_arms[settings] += 1
        end = _repetition_end(repetition)
        name = f"{label or base.replace('/', '-')}{end}"
        if name in arms or (repetition and len(seeds) == 1):
            raise UsageError(
                f"--vary: {name} trains like another arm; give each value once, of a setting that "
                "decides what is trained, or two or more --seeds for a comparison of seeds alone"
            )
        arms[name] = {**varied, "name": f"{base}+{label}{end}" if label else base}
        shifts[name] = repetition * max(seeds)
    planned = []
    for seed, (name, varied) in itertools.product(seeds, arms.items()):
        own_seed = shifts[name] + seed
        fixed = {"seed": own_seed, "train.num_threads": NUM_THREADS}
        config = layers.load(varied, fixed)
        planned.append(PlannedRun(Run(folder / f"{name}-s{own_seed}"), config))
    return planned


def _repetition_end(repetition: int) -> str:
    """Return the end of an arm's name. `repetition` earlier arms have equal settings."""
    if repetition == 0:
        return ""
    return REPEATED if repetition == 1 else f"{REPEATED}-{repetition}"


def _list_values(key: str, values: Iterable[Any]) -> list[tuple[str, Any]]:
    """Return a list with a pair for each value of a setting: the full key of the setting, and the
    value.

    A key without a dot is a section and means the name of its variant: `attention` means
    `model.attention.name`. Raises UsageError if there are no values, if the key is unknown, or if
    the key is `seed` or `name`, which cannot be varied.
    """
    listed = plain(list(values))
    if not key or not listed:
        raise UsageError(
            f"--vary {key}=: expected KEY=VALUE,VALUE, for example attention=additive,bilinear"
        )
    if key in ("seed", "name"):
        advice = "use --seeds" if key == "seed" else "vary another"
        raise UsageError(f"--vary {key}: not a setting of an arm; {advice}")
    if "." not in key:
        names = [full_key for full_key in all_keys() if full_key.endswith(f".{key}.name")]
        if len(names) != 1:
            raise UsageError(f"--vary {key}: {unknown_key(key)}")
        key = names[0]
    return list(itertools.product([key], listed))


def _label(key: str, value: Any) -> str:
    """Return the text that stands for a value of a setting in the names of run directories."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if not key.endswith(".name"):
        text = f"{key.rpartition('.')[2]}={text}"
    return re.sub(r"[^\w.=-]+", "-", text).strip("-")


def train_runs(
    planned: Sequence[PlannedRun], *, at_once: int, imports: Sequence[str] = ()
) -> list[PlannedRun]:
    """Train all unfinished runs, `at_once` in parallel, and return the runs that failed.

    A failed run does not stop other runs. A signal stops all runs, which save their state first.
    """
    waiting = deque(planned_run for planned_run in planned if not planned_run.run.is_finished())
    num_ended = len(planned) - len(waiting)
    log.info(
        f"runs: {len(planned)}, finished before: {num_ended}; {at_once} at a time, one thread each"
    )
    running: dict[subprocess.Popen[bytes], PlannedRun] = {}
    failed = []
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                planned_run = waiting.popleft()
                running[_start(planned_run, imports)] = planned_run
            for process in list(running):
                if process.poll() is None:
                    continue
                planned_run = running.pop(process)
                num_ended += 1
                if process.returncode:
                    failed.append(planned_run)
                outcome = _describe_outcome(planned_run, process.returncode)
                name = planned_run.run.path.name
                log.info("%d of %d: %s: %s", num_ended, len(planned), name, outcome)
            time.sleep(_POLL_S)
    finally:
        if running:
            log.info(
                "stopping training (%d); the state is saved, and the same command resumes it",
                len(running),
            )
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    return failed


def _start(planned: PlannedRun, imports: Sequence[str]) -> subprocess.Popen[bytes]:
    """Write the configuration of a run and start the process that trains or resumes the run."""

    def end_with_parent() -> None:
        """Ask Linux to send SIGTERM to the training process when its parent is killed, so that
        training saves its state and stops."""
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    # `python -m` imports modules from the current folder, and the installed command does not.
    # -P makes the training process behave like this process.
    isolation = [] if str(Path.cwd()) in sys.path else ["-P"]
    command = [sys.executable, *isolation, "-m", "seq2seq_attn", "train", "--resume"]
    command += [f"--run-dir={planned.run.path}", f"--config={planned.config_path}"]
    command += [f"--import={module}" for module in imports]
    planned.log_path.parent.mkdir(parents=True, exist_ok=True)
    planned.config_path.write_text(dump_config(planned.config), encoding="utf-8")
    with planned.log_path.open("ab") as file:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C reaches only this process, which stops training
            preexec_fn=end_with_parent if sys.platform == "linux" else None,
        )


def _describe_outcome(planned: PlannedRun, code: int) -> str:
    """Return the validation score of a finished run, or the last line of a failed run's log."""
    if code == 0:
        metric = planned.config.train.validation.metric
        score = planned.run.load_best().values[metric]
        title = METRICS[metric].title if metric in METRICS else metric
        return f"validation {title} {score:.1f}"
    output = planned.log_path.read_text(encoding="utf-8", errors="replace").strip()
    last = output.rpartition("\n")[2] or "no output"
    return f"failed with exit code {code}, log in {planned.log_path}: {last}"
