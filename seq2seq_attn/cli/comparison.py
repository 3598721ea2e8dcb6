"""Plan a comparison, an arm for each combination of values, each with several seeds; train, evaluate, report."""

from __future__ import annotations

import itertools
import json
import logging
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2seq_attn.cli.evaluation import evaluate_runs
from seq2seq_attn.cli.train_runs import PlannedRun, prepare_corpora, train_runs
from seq2seq_attn.config import load_config
from seq2seq_attn.config.explain import all_keys, unknown_key
from seq2seq_attn.config.yaml_text import YamlError, parse_yaml
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.names import trained_settings
from seq2seq_attn.evaluation.systems import Decoding
from seq2seq_attn.evaluation.test_sets import has_test_set
from seq2seq_attn.report.files import ReportFiles
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.cpus import num_available_cpus
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.train.check import check_config
from seq2seq_attn.train.session import RUNS_DIR, locked

MAX_SEEDS = 1_000

log = logging.getLogger(__name__)


def train_and_compare(planned: Sequence[PlannedRun], at_once: int | None = None) -> Path:
    """Train the runs, evaluate them on the test sets (on the validation set if there are none), and compare. Returns
    the path of the report. The same call continues where it was stopped.

    Args:
        at_once: number of runs trained in parallel; None: one per CPU core, or one on a GPU.

    Raises:
        UsageError: a configuration cannot train, or a run in the folder was trained with other settings.
        UserError: another comparison is at work in the folder, data cannot be prepared, a run in the folder was trained
            on another text, or some runs failed (the report then covers the others).
    """
    with locked(planned[0].run.path.parent, work="comparison", option="--output"):
        return _train_and_compare(planned, at_once)


def _train_and_compare(planned: Sequence[PlannedRun], at_once: int | None) -> Path:
    for planned_run in planned:
        check_config(planned_run.config)
        planned_run.check_settings()
    prepare_corpora(planned, show_progress=sys.stderr.isatty())
    is_on_cpu = resolve_device(planned[0].config.train.device).type == "cpu"
    failed = train_runs(planned, at_once=at_once or (num_available_cpus() if is_on_cpu else 1))
    finished = [planned_run for planned_run in planned if planned_run not in failed]
    page = planned[0].run.path.parent / "report.html"
    if finished:
        _evaluate(finished, ReportFiles(page.with_suffix(".json"), page))
    if failed:
        logs = ", ".join(str(planned_run.log_path) for planned_run in failed)
        raise UserError(f"{len(failed)} of {len(planned)} runs failed, see {logs}; the same command tries them again")
    return page


def _evaluate(finished: Sequence[PlannedRun], files: ReportFiles) -> None:
    config = finished[0].config
    splits = [] if has_test_set(config.data) else ["valid"]
    if splits:
        log.info("this corpus has no test set: comparing on the validation set")
    decoding = Decoding(device=config.train.device, show_progress=sys.stderr.isatty())
    runs = [planned_run.run.path for planned_run in finished]
    report = evaluate_runs(runs, splits=splits, decoding=decoding, files=files)
    log.info("%s", report.summary)


@dataclass(frozen=True)
class Variation:
    """A key and its values, one per arm."""

    key: str
    values: tuple[Any, ...]

    @classmethod
    def parse(cls, text: str) -> Variation:
        """Parse `KEY=VALUE,VALUE,...`. A section with a name can stand for it: `attention` for `model.attention.name`.

        Raises:
            UsageError: the text has another form, or the key is unknown.
        """
        key, equals, listed = text.partition("=")
        key = key.strip()
        try:
            values = parse_yaml(f"[{listed}]") if equals else []
        except YamlError as error:
            raise UsageError(f"--vary {text}: not a list of values ({error})") from None
        if not key or not values:
            raise UsageError(f"--vary {text}: expected KEY=VALUE,VALUE, for example attention=additive,bilinear")
        if key in ("seed", "name"):
            raise UsageError(
                f"--vary {text}: not a setting of an arm; {'use --seeds' if key == 'seed' else 'vary another'}"
            )
        named = [full_key for full_key in all_keys() if full_key.endswith(f".{key}.name")]
        if "." not in key and len(named) == 1:
            return cls(named[0], tuple(values))
        if "." not in key:
            raise UsageError(f"--vary {text}: {unknown_key(key)}")
        return cls(key, tuple(values))

    def label(self, value: Any) -> str:
        """The name of a value in names of directories."""
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        if not self.key.endswith(".name"):
            text = f"{self.key.rpartition('.')[2]}={text}"
        return re.sub(r"[^\w.=-]+", "-", text).strip("-")


def plan_runs(
    config_names: Sequence[str],
    vary: Sequence[str],
    seeds: Sequence[int],
    *,
    settings: Sequence[str] = (),
    imports: Sequence[str] = (),
    output: Path | None = None,
) -> list[PlannedRun]:
    """Every arm with every seed. The order is by seed, so that an interrupted comparison has all arms of the first
    seeds.

    Raises:
        UsageError: as `load_config`, or two arms are the same.
    """
    variations = [Variation.parse(text) for text in vary]
    base = load_config(config_names, settings)
    folder = output or RUNS_DIR / f"compare-{base.name.replace('/', '-')}"
    arms: dict[str, tuple[str, ...]] = {}
    for values in itertools.product(*(variation.values for variation in variations)):
        chosen = list(zip(variations, values, strict=True))
        label = "+".join(variation.label(value) for variation, value in chosen) or base.name.replace("/", "-")
        if label in arms:
            raise UsageError(f"--vary: two arms are named {label}; give each value once")
        name = json.dumps("+".join([base.name, label]) if chosen else base.name)
        arms[label] = (
            *(f"{variation.key}={json.dumps(value, default=str)}" for variation, value in chosen),
            f"name={name}",
        )
    planned = []
    for seed, (label, own) in itertools.product(seeds, arms.items()):
        run = RunDir(folder / f"{label}-s{seed}")
        planned.append(PlannedRun.of(run, config_names, [*settings, *own, f"seed={seed}"], imports))
    _check_different(planned[: len(arms)])
    return planned


def parse_seeds(text: str) -> list[int]:
    """The numbers of `1-3` or `1,2,5`.

    Raises:
        UsageError: the text has another form.
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*", part, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < first + MAX_SEEDS:
            raise UsageError(
                f"--seeds {text}: expected seeds such as 1-3 or 1,2,5; a range ascends and has at most {MAX_SEEDS:,}"
            )
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def _check_different(arms: Sequence[PlannedRun]) -> None:
    seen: dict[str, PlannedRun] = {}
    for arm in arms:
        former = seen.setdefault(json.dumps(trained_settings(arm.config), sort_keys=True), arm)
        if former is not arm:
            names = f"{former.config.name} and {arm.config.name}"
            raise UsageError(f"--vary: {names} train the same; vary a setting that decides what is trained")
