"""Runs: how to train them, how they were trained, BLEU of a run or an ensemble, the gain of one over another, and
translations kept line by line."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from scripts.laboratory.harness.records import Record, read_training
from seq2seq_attn.commands.train_runs import PlannedRun, prepare_corpora, train_runs
from seq2seq_attn.errors import UserError
from seq2seq_attn.evaluation.test_sets import find_sets
from seq2seq_attn.files import sha256_of, write_text
from seq2seq_attn.metrics.bleu import CorpusStatistics, Measure
from seq2seq_attn.metrics.seeds import BootstrapSamples, bootstrap, mean_difference, mean_interval
from seq2seq_attn.metrics.significance import percentile_interval
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.translate.translator import load

NameT = TypeVar("NameT")


def train_all(planned: Sequence[PlannedRun], at_once: int) -> None:
    """Train what is not finished, some runs at a time, each on one thread; resume what was interrupted.

    Raises:
        UsageError: a run was started with other settings.
        UserError: a finished run was trained on another corpus, or training failed.
    """
    if not all(one.is_finished() for one in planned):
        prepare_corpora(planned, show_progress=sys.stderr.isatty())
    if failed := train_runs(planned, at_once=at_once):
        raise UserError(f"training failed, see {', '.join(str(one.log_path) for one in failed)}")


def train_one(path: Path, config_names: Sequence[str], settings: Sequence[str]) -> RunDir:
    """The run of a directory, trained to its end on one thread: from the start, or from where it was interrupted.

    Raises:
        UsageError, UserError: as `train_all`. A finished run's corpus is checked too.
    """
    planned = PlannedRun.of(RunDir(path), config_names, settings)
    if planned.is_finished():
        prepare_corpora([planned])
    train_all([planned], 1)
    return planned.run


def describe_run(run: RunDir) -> Record:
    """How a run was trained, where, and how well its best model validated."""
    environment = run.environment() or {}
    git, trained, best = environment.get("git") or {}, read_training(run.path), run.best_metadata()
    return {
        "validation_bleu": round(float(best["bleu"]), 2),
        "validation_perplexity": round(float(best["perplexity"]), 3),
        "parameters": trained["num_parameters"],
        "precision": trained["precision"],
        "updates": trained["update"],
        "minutes": round(trained["minutes"], 1),
        "commit": (git.get("commit") or "unknown")[:12],
        "is_dirty": git.get("is_dirty"),
        "hardware": environment.get("device_name"),
        "torch": environment.get("packages", {}).get("torch"),
        "trained_at": environment.get("written_at"),
    }


def minutes_before(run: RunDir) -> float:
    """The minutes of training of the runs that a run starts from, one after the other."""
    if (path := run.config().train.start_from) is None:
        return 0.0
    return float(read_training(path)["minutes"]) + minutes_before(RunDir(path))


def score(
    runs: Sequence[RunDir], splits: Sequence[str], *, beam_size: int, device: str = "auto", keep_in: Path | None = None
) -> dict[str, CorpusStatistics]:
    """BLEU statistics of a run, or of the ensemble of several, on splits of its corpus (none: the test sets). Its other
    search settings are the first run's own. `keep_in`: a folder for the translations, which are then not made again."""
    options = SearchOptions.given(beam_size=beam_size, keep_attention=False)
    found = {}
    for one in find_sets([runs[0]], [runs[0].config()], splits):
        if keep_in is None:
            lines = load([run.path for run in runs], device).translate_lines(one.source, options)
            texts = [best.text for best, *_ in lines]
        else:
            kept = translate_to(keep_in / f"{one.name}.jsonl", runs, one.source, options, device=device)
            texts = [best for best, *_ in kept]
        found[one.name] = Measure("bleu", one.references).statistics(texts)
    return found


def score_lines(run: RunDir, sources: Sequence[str], references: Sequence[str]) -> CorpusStatistics:
    """BLEU statistics of a run's translations of some lines, on a CPU."""
    found = load(run.path, "cpu").translate(sources, keep_attention=False)
    return Measure("bleu", list(references)).statistics([translation.text for translation in found])


def bootstrap_by_name(scored: Mapping[NameT, CorpusStatistics]) -> dict[NameT, BootstrapSamples]:
    """Each run's scores over common resamples of the sentence pairs."""
    return dict(zip(scored, bootstrap(list(scored.values())), strict=True))


def score_row(arm: BootstrapSamples, baseline: BootstrapSamples | None = None) -> Record:
    """The score of an arm with its interval, and its gain over a baseline that is not the arm itself."""
    found: Record = {"bleu": asdict(mean_interval(arm))}
    return found if baseline is None or baseline is arm else found | gain_over(baseline, arm)


def gain_over(baseline: BootstrapSamples, arm: BootstrapSamples) -> Record:
    """The gain of an arm, with its interval and the paired bootstrap test."""
    gain = percentile_interval(arm.mean - baseline.mean, arm.means_R - baseline.means_R)
    return {"gain": asdict(gain), "paired_bootstrap": asdict(mean_difference(baseline, arm))}


def translate_to(
    path: Path, runs: Sequence[RunDir], lines: Sequence[str], options: SearchOptions, *, device: str = "auto"
) -> list[list[str]]:
    """Translate lines by a run, or the ensemble of several. Each line's translations, best first, are appended to a
    file at once, so that an interrupted call continues where it stopped.

    Raises:
        UserError: the file holds translations of other lines, by other models or with other options.
    """
    made_by = {
        "models": [sha256_of(run.model_path) for run in runs],
        "lines": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        "options": options.model_dump(exclude_unset=True),
    }
    done = _read_translations(path, made_by)
    if len(done) == len(lines):
        return done
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in (made_by, *done)))
    translator = load([run.path for run in runs], device)
    progress = tqdm(total=len(lines), initial=len(done), desc=path.name, unit="line", disable=not sys.stderr.isatty())
    with path.open("a", encoding="utf-8") as stream, progress:
        for translations in translator.translate_lines(lines[len(done) :], options):
            done.append([translation.text for translation in translations])
            stream.write(f"{json.dumps(done[-1], ensure_ascii=False)}\n")
            stream.flush()
            progress.update()
    return done


def _read_translations(path: Path, made_by: dict[str, Any]) -> list[list[str]]:
    """The whole lines of the file after its first."""
    if not path.exists():
        return []
    first, *rest = path.read_text(encoding="utf-8").split("\n")[:-1] or ["null"]
    if json.loads(first) != made_by:
        raise UserError(f"{path}: translations by other models, of other text or with other options; remove the file")
    return [json.loads(line) for line in rest]
