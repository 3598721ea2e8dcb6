"""From finished runs to a record: what each arm scores by length, how that compares, what its attention does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from scripts.bottleneck_experiment.plan import Training
from scripts.laboratory.harness.records import Record
from seq2seq_attn.commands.evaluate import EvaluationRequest, evaluate
from seq2seq_attn.evaluation.attention_scores import AnalysisScore
from seq2seq_attn.evaluation.runs import Decoding
from seq2seq_attn.evaluation.scores import Resampling, SetScores
from seq2seq_attn.evaluation.test_sets import find_sets
from seq2seq_attn.files import read_json
from seq2seq_attn.metrics.bleu import IntArray, MeasureName
from seq2seq_attn.metrics.sentence_vectors import project
from seq2seq_attn.model.build import count_parameters
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.report.build import Report, Settings
from seq2seq_attn.report.files import ReportFiles
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.translate.scoring import summaries
from seq2seq_attn.translate.translator import load

MEASURES: tuple[MeasureName, ...] = ("bleu", "chrf")
JOINED = (1, 2, 3, 4, 5, 6)
RESAMPLING = Resampling(num_resamples=1000, num_trials=1000)


def evaluate_lengths(trainings: Sequence[Training], json_path: Path) -> Record:
    """Natural sentences, cut by source length: a point for each bucket of the pooled test sets."""
    report = _evaluate(trainings, json_path)
    pooled = report.sets[-1]
    points: list[Record] = []
    for row in pooled.buckets:
        about: Record = {"label": row.bucket.label, "num_pairs": len(row.bucket)}
        about["mean_length"] = float(report.lengths[-1][row.bucket.indices].mean())
        analyzed = pooled.attention.buckets[len(points)] if pooled.attention else ()
        points.append(about | {"scores": _scores(trainings, pooled, row), "attention": _attention(trainings, analyzed)})
    return _record(trainings, report, pooled, points)


def evaluate_joined(trainings: Sequence[Training], json_path: Path) -> Record:
    """One to six sentences joined: a point for each number."""
    report = _evaluate(trainings, json_path, concatenate=JOINED, by_length="1000")
    points = []
    for one, lengths in zip(report.sets, report.lengths, strict=True):
        about = {"label": str(one.num_concatenated), "num_pairs": one.num_pairs, "mean_length": float(lengths.mean())}
        analyzed = one.attention.overall if one.attention else ()
        points.append(about | {"scores": _scores(trainings, one, one), "attention": _attention(trainings, analyzed)})
    return _record(trainings, report, report.sets[0], points) | {"vectors": _vectors(trainings, report.lengths)}


def _evaluate(
    trainings: Sequence[Training], json_path: Path, *, concatenate: Sequence[int] = (), by_length: str | None = None
) -> Report:
    search = trainings[0].config.search
    request = EvaluationRequest(
        [training.run.path for training in trainings],
        concatenate=concatenate,
        settings=Settings(by_length, measures=MEASURES, resampling=RESAMPLING),
        decoding=Decoding(
            SearchOptions(beam_size=search.beam_size, length_penalty=search.length_penalty), reuse_hypotheses=True
        ),
        files=ReportFiles(json_path, json_path.with_suffix(".md"), "png"),
    )
    return evaluate(request)


def _record(trainings: Sequence[Training], report: Report, one: SetScores, points: list[Record]) -> Record:
    return {
        "arms": [_arm(name, members) for name, members in _by_arm(trainings).items()],
        "signatures": dict(one.signatures),
        "length": report.data["length"]["tokenizer"],
        "resampling": report.data["resampling"],
        "points": points,
        "environment": report.data["environment"],
    }


def _by_arm(trainings: Sequence[Training]) -> dict[str, list[Training]]:
    arms: dict[str, list[Training]] = {}
    for training in trainings:
        arms.setdefault(training.arm.name, []).append(training)
    return arms


def _arm(name: str, members: list[Training]) -> Record:
    first = members[0]
    model = load(first.run.path, "cpu").model
    assert isinstance(model, Seq2Seq)
    environments = [read_json(one.run.path / "environment.json") for one in members]
    finished = [read_json(one.run.path / "finished.json") for one in members]
    return {
        "name": name,
        "about": first.arm.about,
        "is_equal": first.arm.is_equal,
        "parameters": count_parameters(model),
        "seeds": [one.seed for one in members],
        "dropout": first.dropout,
        "updates": finished[0]["update"],
        "minutes": round(fmean(one["minutes"] for one in finished), 1),
        "validation": [round(float(one.run.best_metadata()["bleu"]), 1) for one in members],
        "commits": sorted({one["git"]["commit"][:12] for one in environments if one.get("git")}),
    }


def _scores(trainings: Sequence[Training], one: SetScores, row: Any) -> Record:
    """Arm to measure to its values: of several seeds, the mean and its spread."""
    found: Record = {}
    for measure in MEASURES:
        for arm, score in zip(one.arms, row.scores[measure], strict=True):
            by_seed = [row.run_scores[measure][run].interval.value for run in arm.runs]
            found.setdefault(trainings[arm.runs[0]].arm.name, {})[measure] = _short(score.to_dict(), by_seed)
    return found


def _short(values: Record, by_seed: list[float]) -> Record:
    short: Record = {"mean": fmean(by_seed), "by_seed": by_seed, "low": values["low"], "high": values["high"]}
    if kept := values.get("retention"):
        short["retention"] = {key: kept[key] for key in ("value", "low", "high")}
    if test := values.get("paired_bootstrap"):
        short["p"] = test["p_value"]
    return short


def _attention(trainings: Sequence[Training], analyzed: Sequence[AnalysisScore]) -> Record:
    """Arm to the means over its seeds of what its attention does at one point."""
    by_arm: dict[str, list[Record]] = {}
    for training, score in zip(trainings, analyzed, strict=bool(analyzed)):
        by_arm.setdefault(training.arm.name, []).append(score.to_dict())
    return {name: _mean(values) for name, values in by_arm.items()}


def _vectors(trainings: Sequence[Training], all_lengths: Sequence[IntArray]) -> Record | None:
    """Sentence vectors of the fixed arm's first seed in two dimensions (Sutskever et al. 2014, Fig. 2): as many
    sentences of each number of captions, each with its length."""
    training = next((one for one in trainings if one.arm.name == "fixed"), None)
    if training is None:
        return None
    sets = find_sets([training.run], [training.run.config()], concatenate=JOINED)
    num_each = min(len(one.source) for one in sets)
    translator = load(training.run.path, "cpu")
    vectors_NM = np.concatenate([summaries(translator, one.source[:num_each]) for one in sets])
    lengths_N = np.concatenate([lengths[:num_each] for lengths in all_lengths])
    found = project(vectors_NM)
    return {
        "arm": training.arm.name,
        "seed": training.seed,
        "shares": found.shares_C.tolist(),
        "correlation": float(np.corrcoef(found.points_NC[:, 0], lengths_N)[0, 1]),
        "points": np.round(found.points_NC, 2).tolist(),
        "lengths": lengths_N.tolist(),
    }


def _mean(values: list[Record]) -> Record:
    found: Record = {}
    for key, first in values[0].items():
        if key == "gold":
            found["gold"] = [
                {**_mean([one["gold"][index] for one in values]), "shift": shifted["shift"]}
                for index, shifted in enumerate(first)
            ]
        else:
            found[key] = None if first is None else fmean(one[key] for one in values)
    return found
