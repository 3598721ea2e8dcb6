"""Plan a comparison, an arm for each combination of values, each with several seeds; train,
evaluate, report."""

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
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from yaml import YAMLError

from seq2seq_attn.cli.evaluation import evaluate
from seq2seq_attn.cli.options import OwnText
from seq2seq_attn.cli.own_text import find_settings, from_python
from seq2seq_attn.config import Config, load_config, with_default
from seq2seq_attn.config.explain import all_keys, unknown_key
from seq2seq_attn.config.yaml_text import parse_yaml
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.names import trained_settings
from seq2seq_attn.evaluation.test_sets import has_test_set
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.model.variants import import_variants
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.threads import num_available_cpus
from seq2seq_attn.text.tokenizers.base import NONE
from seq2seq_attn.train.check import check_config
from seq2seq_attn.train.session import RUNS_DIR, locked

ONE_THREAD = "train.num_threads=1"
"""a setting of every run, recorded because the last bits of sums depend on the number of threads"""
MAX_SEEDS = 1_000

_POLL_S = 0.1
_PR_SET_PDEATHSIG = 1
"""of Linux's prctl"""

log = logging.getLogger(__name__)


class PlannedRun(NamedTuple):
    """A run to be trained."""

    run: RunDir
    config: Config
    arguments: tuple[str, ...]
    """the arguments of `seq2seq train` for this configuration"""

    @property
    def log_path(self) -> Path:
        """The training process's output, next to the run directory."""
        return self.run.path.with_name(f"{self.run.path.name}.log")


def compare(
    config: str | Path | Sequence[str | Path] | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    seeds: Sequence[int] = (1, 2, 3),
    output: str | Path | None = None,
    at_once: int | None = None,
    imports: Sequence[str] = (),
    **text: Unpack[OwnText],
) -> Path:
    """Train variants with several seeds and compare their scores, as `seq2seq compare` does, with
    its errors. `vary` has the values of each setting; `config`, `settings` and `text` are those of
    `train_model`. Returns the report's path.

    >>> compare("quickstart", {"attention": ["additive", "bilinear"]}, seeds=[1, 2])  # doctest: +SKIP
    PosixPath('runs/compare-quickstart/report.html')
    """
    if not seeds:
        raise UsageError("seeds=[]: name at least one, for example seeds=[1, 2, 3]")
    if at_once is not None and at_once < 1:
        raise UsageError(f"at_once={at_once}: expected 1 or more")
    import_variants(imports)
    config_names, overrides = find_settings(from_python(config, settings, text))
    planned = plan_runs(
        with_default(config_names),
        [f"{key}={json.dumps([*values])[1:-1]}" for key, values in (vary or {}).items()],
        [*dict.fromkeys(seeds)],
        settings=overrides,
        imports=imports,
        output=None if output is None else Path(output),
    )
    return train_and_compare(planned, at_once)


def train_and_compare(planned: Sequence[PlannedRun], at_once: int | None = None) -> Path:
    """Train the runs, evaluate them on the test sets (on the validation set if there are none), and
    compare. Returns the path of the report. The same call continues where it was stopped.

    Args:
        at_once: number of runs trained in parallel; None: one per CPU core, or one on a GPU.

    Raises:
        UsageError: a configuration cannot train, or a run in the folder was trained with other
            settings.
        UserError: another comparison is at work in the folder, data cannot be prepared, a run in
            the folder was trained on another text, or some runs failed (the report then covers the
            others).
    """
    folder, config = planned[0].run.path.parent, planned[0].config
    with locked(folder, work="comparison", option="--output"):
        for planned_run in planned:
            if NONE in planned_run.config.data.sources:
                raise UsageError(
                    f"data.source_language={NONE}: language models have no translations to compare"
                )
            check_config(planned_run.config)
            _check_settings(planned_run)
        prepare_corpora(planned, show_progress=sys.stderr.isatty())
        is_on_cpu = resolve_device(config.train.device).type == "cpu"
        failed = train_runs(planned, at_once=at_once or (num_available_cpus() if is_on_cpu else 1))
        finished = [planned_run.run.path for planned_run in planned if planned_run not in failed]
        page = folder / "report.html"
        if not has_test_set(config.data):
            log.info("this corpus has no test set: comparing on the validation set")
        if finished:
            report = evaluate(
                finished,
                split=() if has_test_set(config.data) else "valid",
                json=page.with_suffix(".json"),
                report=page,
                device=config.train.device,
                show_progress=sys.stderr.isatty(),
            )
            log.info("%s", report.summary)
        if failed:
            logs = ", ".join(str(planned_run.log_path) for planned_run in failed)
            raise UserError(
                f"{len(failed)} of {len(planned)} runs failed, see {logs}; the same command tries "
                "them again"
            )
        return page


def _check_settings(planned: PlannedRun) -> None:
    """Raises UsageError if the run exists but was started with other settings."""
    run = planned.run
    if not run.config_path.is_file():
        return
    own, wanted = ({**trained_settings(c), "seed": c.seed} for c in (run.config(), planned.config))
    for key in own | wanted:
        # without a ratio in the plan, the run holds the value that training chose
        is_chosen = (
            key == "search.max_length_ratio" and planned.config.search.max_length_ratio is None
        )
        if own.get(key) != wanted.get(key) and not is_chosen:
            raise UsageError(
                f"{run.path}: trained with {key}={own.get(key)!r}, not {wanted.get(key)!r}; remove "
                "it, or write elsewhere"
            )


def prepare_corpora(planned: Sequence[PlannedRun], *, show_progress: bool = False) -> None:
    """Prepare each corpus once, not in each process, and check that the finished runs were trained
    on it. The resume of an interrupted run checks that itself. Raises UsageError, UserError: as
    `prepare_corpus`, or a finished run was trained on another corpus."""
    contents: dict[str, str] = {}
    for run, config, _ in planned:
        data = config.data.model_dump_json()
        if data not in contents:
            contents[data] = prepare_corpus(config, show_progress=show_progress).text_hashes()[
                "content"
            ]
        if run.is_finished() and run.text_hashes()["content"] != contents[data]:
            raise UserError(
                f"{run.path}: trained on another corpus (the text or the version of a tokenizer "
                "has changed since); choose another --output, or remove this run"
            )


def plan_runs(
    config_names: Sequence[str],
    vary: Sequence[str],
    seeds: Sequence[int],
    *,
    settings: Sequence[str] = (),
    imports: Sequence[str] = (),
    output: Path | None = None,
) -> list[PlannedRun]:
    """Every arm with every seed. The order is by seed, so that an interrupted comparison has all
    arms of the first seeds. Raises UsageError: as `load_config`, or two arms are the same."""
    variations = [_parse_variation(text) for text in vary]
    base = load_config(config_names, settings).name
    folder = output or RUNS_DIR / f"compare-{base.replace('/', '-')}"
    arms: dict[str, list[str]] = {}
    for values in itertools.product(*(values for _, values in variations)):
        chosen = {key: value for (key, _), value in zip(variations, values, strict=True)}
        label = "+".join(_label(key, value) for key, value in chosen.items())
        name = label or base.replace("/", "-")
        if name in arms:
            raise UsageError(f"--vary: two arms are named {name}; give each value once")
        varied = {**chosen, "name": f"{base}+{label}" if label else base}
        arms[name] = [f"{key}={json.dumps(value, default=str)}" for key, value in varied.items()]
    planned = []
    for seed, (name, varied_settings) in itertools.product(seeds, arms.items()):
        overrides = [*settings, *varied_settings, f"seed={seed}", ONE_THREAD]
        repeated = {"-c": config_names, "--set": overrides, "--import": imports}
        arguments = tuple(
            word
            for option, values in repeated.items()
            for value in values
            for word in (option, value)
        )
        planned.append(
            PlannedRun(
                RunDir(folder / f"{name}-s{seed}"), load_config(config_names, overrides), arguments
            )
        )
    names: dict[str, str] = {}
    for _, config, _ in planned[: len(arms)]:
        other = names.setdefault(json.dumps(trained_settings(config), sort_keys=True), config.name)
        if other != config.name:
            raise UsageError(
                f"--vary: {other} and {config.name} train the same; vary a setting that decides "
                "what is trained"
            )
    return planned


def _parse_variation(text: str) -> tuple[str, list[Any]]:
    """The key and the values, one per arm, of `KEY=VALUE,VALUE,...`. A section with a name can
    stand for it: `attention` for `model.attention.name`. Raises UsageError: the text has another
    form, or the key is unknown."""
    key, equals, listed = text.partition("=")
    key = key.strip()
    try:
        values = parse_yaml(f"[{listed}]") if equals else []
    except YAMLError as error:
        raise UsageError(f"--vary {text}: not a list of values ({error})") from None
    if not key or not values:
        raise UsageError(
            f"--vary {text}: expected KEY=VALUE,VALUE, for example attention=additive,bilinear"
        )
    if key in ("seed", "name"):
        advice = "use --seeds" if key == "seed" else "vary another"
        raise UsageError(f"--vary {text}: not a setting of an arm; {advice}")
    if "." not in key:
        names = [full_key for full_key in all_keys() if full_key.endswith(f".{key}.name")]
        if len(names) != 1:
            raise UsageError(f"--vary {text}: {unknown_key(key)}")
        key = names[0]
    return key, values


def _label(key: str, value: Any) -> str:
    """The name of a value in names of directories."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if not key.endswith(".name"):
        text = f"{key.rpartition('.')[2]}={text}"
    return re.sub(r"[^\w.=-]+", "-", text).strip("-")


def parse_seeds(text: str) -> list[int]:
    """The numbers of `1-3` or `1,2,5`. Raises UsageError: the text has another form."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*", part, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < first + MAX_SEEDS:
            raise UsageError(
                f"--seeds {text}: expected seeds such as 1-3 or 1,2,5; a range ascends and has at "
                f"most {MAX_SEEDS:,}"
            )
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def train_runs(planned: Sequence[PlannedRun], *, at_once: int) -> list[PlannedRun]:
    """Train all unfinished runs, `at_once` in parallel. Returns the runs that failed. A failure
    does not stop the others; a signal stops all runs, after they have saved their state."""
    waiting = deque(planned_run for planned_run in planned if not planned_run.run.is_finished())
    num_runs, num_ended = len(planned), len(planned) - len(waiting)
    log.info(
        "runs: %d, finished before: %d; %d at a time, one thread each", num_runs, num_ended, at_once
    )
    running: dict[subprocess.Popen[bytes], tuple[PlannedRun, float]] = {}
    failed, durations_s = [], list[float]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                planned_run = waiting.popleft()
                running[_start(planned_run)] = planned_run, time.monotonic()
            for process in [process for process in running if process.poll() is not None]:
                planned_run, began_at = running.pop(process)
                num_ended += 1
                if process.returncode:
                    failed.append(planned_run)
                durations_s.append(time.monotonic() - began_at)
                outcome = _describe_outcome(planned_run, process.returncode, durations_s[-1])
                left_s = (num_runs - num_ended) * sum(durations_s) / len(durations_s) / at_once
                left = f"; about {left_s / 60:.1f} minutes left" if left_s else ""
                log.info(
                    "%d of %d: %s: %s%s",
                    num_ended,
                    num_runs,
                    planned_run.run.path.name,
                    outcome,
                    left,
                )
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


def _start(planned: PlannedRun) -> subprocess.Popen[bytes]:
    def end_with_parent() -> None:
        """Let the system signal this process when its parent is killed, so that it saves its state
        and stops."""
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    # `python -m` looks for modules in the current folder, the installed command does not
    isolation = [] if str(Path.cwd()) in sys.path else ["-P"]
    command = [sys.executable, *isolation, "-m", "seq2seq_attn", "train", *planned.arguments]
    planned.log_path.parent.mkdir(parents=True, exist_ok=True)
    with planned.log_path.open("ab") as file:
        return subprocess.Popen(
            [*command, "--run-dir", str(planned.run.path), "--resume"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C reaches this process alone, which stops the others
            preexec_fn=end_with_parent if sys.platform == "linux" else None,
        )


def _describe_outcome(planned: PlannedRun, code: int, seconds: float) -> str:
    if code == 0:
        metric = planned.config.train.validation.metric
        score = planned.run.load_best().values[metric]
        title = METRICS[metric].title if metric in METRICS else metric
        return f"validation {title} {score:.1f}, {seconds / 60:.1f} minutes"
    lines = planned.log_path.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "no output")
    return f"failed with exit code {code}, log in {planned.log_path}: {last}"
