"""The records of experiments: from finished runs and their scores to the values that the pages of
`docs/` show.

Each schema is a function from results to records by file. The forms are those of the records in
`docs/`, so that a new measurement replaces an old one and the page follows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from scripts.laboratory.experiment import Experiment, Results, stem
from scripts.laboratory.harness.records import Record, describe, read_training, short_commit
from scripts.laboratory.harness.runs import (
    Run,
    changed_settings,
    describe_run,
    difference,
    settings_of,
)
from seq2seq_attn.files import read_json
from seq2seq_attn.metrics.table import DEFAULT_METRICS

T = TypeVar("T")
Records = Iterator[tuple[Path, Record]]


def evaluation(results: Results) -> Records:
    """Scores of a few runs with signatures, sizes and settings, overall and by length."""
    yield results.path, _evaluation(results.path.stem, results.experiment, results.report.data)


def _evaluation(name: str, experiment: Experiment, report: Record) -> Record:
    runs = []
    for run in report["runs"]:
        path = Path(run["path"])
        about = describe_run(path)
        entry = _select(run, "name", "config", "attention", "seed", "lowercases", "search")
        entry["training"] = {**read_training(path), "minutes": about["minutes"]}
        entry["num_threads"] = run["training_environment"].get("num_threads")
        entry |= _select(about, "hardware", "commit", "is_dirty", "torch")
        entry["date"] = about["trained_at"]
        runs.append(entry)
    return {
        "name": name,
        "chosen_on": experiment.chosen_on,
        "runs": runs,
        "languages": [report["languages"]["source"], report["languages"]["target"]],
        **_select(report, "length", "sets"),
    }


def _select(values: Record, *keys: str) -> Record:
    """The values of some keys."""
    return {key: values[key] for key in keys}


def points(results: Results) -> Records:
    """The scores of each arm by source length, or by the number of concatenated pairs, with what
    attention did."""
    report = results.report.data
    sets = report["sets"]
    lengths = results.report.scored.lengths
    if results.experiment.evaluate.get("concatenate"):
        rows = sets
        labels = [scores["num_concatenated"] for scores in sets]
        attention = [scores["attention"] for scores in sets]
    else:
        rows = sets[-1]["buckets"]
        labels = [scores["label"] for scores in rows]
        attention = sets[-1]["attention"]["buckets"]
        buckets = results.report.sets[-1].buckets
        lengths = [lengths[-1][scores.bucket.indices] for scores in buckets]
    measured = []
    for label, scores, lengths_N, looks in zip(labels, rows, lengths, attention, strict=True):
        looks_by_arm = _split(results, looks["runs"])
        measured.append(
            {
                "label": str(label),
                "num_pairs": scores["num_pairs"],
                "mean_length": float(lengths_N.mean()),
                "scores": _scores_by_arm(results, scores),
                "attention": {arm: _mean(values) for arm, values in looks_by_arm.items()},
            }
        )
    record = {
        "arms": [_arm(results, arm, runs) for arm, runs in results.runs_by_arm.items()],
        "signatures": {each["name"]: each["signature"] for each in sets[0]["measures"]},
        "length": report["length"]["tokenizer"],
        "points": measured,
        "environment": {**report["environment"], "command": describe("lab")["command"]},
    }
    if rows is not sets:
        record["overall"] = _scores_by_arm(results, sets[-1])
    yield results.path, record


def _scores_by_arm(results: Results, scores: Record) -> Record:
    """The scores of each arm on a set or a range of lengths, by measure."""
    by_arm: Record = {arm: {} for arm in results.runs_by_arm}
    for measure in scores["measures"]:
        for arm, values in _arm_scores(results, measure).items():
            by_arm[arm][measure["name"]] = values
    return by_arm


def _split(results: Results, values: Iterable[T]) -> dict[str, list[T]]:
    """By arm, what a report has for each run."""
    rest = iter(values)
    return {arm: [next(rest) for _ in runs] for arm, runs in results.runs_by_arm.items()}


def _arm_scores(results: Results, measure: Record) -> dict[str, Record]:
    """The mean of each arm with interval, retention and p against the baseline, and the values of
    its seeds."""
    arms: dict[str, Record] = {}
    pooled = measure["groups" if "groups" in measure else "runs"]
    runs_by_arm = _split(results, measure["runs"])
    for (arm, runs), score in zip(runs_by_arm.items(), pooled, strict=True):
        seeds = [run["score"] for run in runs]
        arms[arm] = {"mean": fmean(seeds), "by_seed": seeds, **_select(score, "low", "high")}
        if score.get("retention"):
            arms[arm]["retention"] = score["retention"]
        if score.get("paired_bootstrap"):
            test = _select(score["paired_bootstrap"], "test", "p_value", "p_corrected")
            arms[arm] |= {"p": test["p_corrected"], "paired_bootstrap": test}
    return arms


def _mean(values: Sequence[Record]) -> Record:
    """The means of what the attention of several runs did."""
    means: Record = {}
    for key, first in values[0].items():
        if key == "gold":
            columns = zip(*(value["gold"] for value in values), strict=True)
            means["gold"] = [{**_mean(column), "shift": column[0]["shift"]} for column in columns]
        elif not isinstance(first, str):
            means[key] = None if first is None else fmean(value[key] for value in values)
    return means


def _arm(results: Results, name: str, runs: Sequence[Run]) -> Record:
    about = [describe_run(run.path) for run in runs]
    return {
        "name": name,
        "about": results.experiment.arms[name].about,
        **_select(about[0], "parameters", "updates"),
        "seeds": [run.seed for run in runs],
        "validation": [round(run["validation_bleu"], 1) for run in about],
        "commits": sorted({run["commit"] for run in about}),
    }


def levers(results: Results) -> Records:
    """Validation BLEU of each arm by seed, and its gain over the baseline, which has a record only
    if it is published. The runs of published arms are scored on the test sets; the first of them
    also has a record as an evaluation."""
    experiment = results.experiment
    [validation] = results.report.data["sets"]
    validated = _split(results, _bleu(validation))
    for name, runs in results.runs_by_arm.items():
        is_published = experiment.arms[name].is_published
        is_baseline = name == experiment.baseline
        if is_baseline and not is_published:
            continue
        config = runs[0].config
        settings = settings_of(config)
        path = experiment.arm_path(name)
        former = read_json(path) if path.exists() else {}
        if "settings" not in former or changed_settings(former["settings"], config):
            former = {"runs": []}
        entries = {run["seed"]: run for run in former["runs"]}
        for run, bleu in zip(runs, validated[name], strict=True):
            entry = {"seed": run.seed, "validation": bleu, **describe_run(run.path)}
            entries[run.seed] = entry
            if not is_published:
                continue
            report_name = f"test-{run.path.name}"
            report = results.evaluate([run], report_name, split=(), metric=DEFAULT_METRICS).data
            tests = [scores for scores in report["sets"] if scores["name"].startswith("test_2")]
            entry["test"] = {scores["name"]: _bleu(scores)[0] for scores in tests}
            if run == runs[0]:
                first_path = results.path.with_name(f"{stem(name)}.json")
                yield first_path, _evaluation(stem(name), experiment, report)
        record = {
            **former,
            "settings": settings,
            "config": config.name,
            "beam_size": experiment.evaluate["beam_size"],
            "runs": [entries[seed] for seed in sorted(entries)],
        }
        if is_published:
            record["chosen_on"] = experiment.chosen_on
        if not is_baseline:
            record["against"] = _against(results, name, settings)
        yield path, {**record, "environment": describe("scripts/lab")}


def _against(results: Results, name: str, settings: Record) -> Record:
    """The gain of an arm over the baseline on the validation set, by the paired bootstrap."""
    scores = _arm_scores(results, results.report.data["sets"][0]["measures"][0])
    baseline = results.experiment.baseline
    base_mean = scores[baseline]["mean"]
    runs = results.runs_by_arm[baseline]
    return {
        "config": runs[0].config.name,
        "settings": difference(settings, settings_of(runs[0].config)),
        "seeds": [run.seed for run in results.runs_by_arm[name]],
        "num_runs": len(runs),
        "bleu": round(base_mean, 2),
        "gain": round(scores[name]["mean"] - base_mean, 2),
        **scores[name]["paired_bootstrap"],
        "p_value": scores[name]["p"],
    }


def _bleu(scores: Record) -> list[Record]:
    """The BLEU of each run on a set."""
    measure = scores["measures"][0]
    about = {"num_pairs": scores["num_pairs"], "signature": measure["signature"]}
    return [{"bleu": round(run["score"], 2), **about} for run in measure["runs"]]


def mechanisms(results: Results) -> Records:
    """A record per arm that grows: scores of each seed by length, what attention did, how it was
    trained."""
    for name, runs in results.runs_by_arm.items():
        arm = results.experiment.arms[name]
        path = results.experiment.arm_path(name)
        command = f"seq2seq train -c quickstart -c {arm.configs[0]}"
        for key, value in arm.set.items():
            command += f" --set {key}={value}".replace("True", "true")
        record = read_json(path) if path.exists() else {}
        if record.get("command") != command:
            record = {"row": name, "command": command, "captions": [], "multi30k": []}
        corpus = runs[0].config.data.corpus
        known = {entry["seed"]: entry for entry in record[corpus]}
        for run in runs:
            about = describe_run(run.path)
            if known.get(run.seed, {}).get("trained_at") != about["trained_at"]:
                scores = _seed_scores(results, run) if corpus == "captions" else {}
                known[run.seed] = {"seed": run.seed, **scores, **about}
        yield path, {**record, corpus: [known[seed] for seed in sorted(known)]}


def _seed_scores(results: Results, run: Run) -> Record:
    report = results.evaluate([run], f"report-{run.path.name}").data
    [test] = report["sets"]
    [attention] = test["attention"]["runs"]
    [score] = test["measures"][0]["runs"]
    by_length = []
    for bucket in test["buckets"]:  # without signatures
        bleu = bucket["measures"][0]["runs"][0]["score"]
        by_length.append({**_select(bucket, "label", "num_pairs"), "bleu": round(bleu, 2)})
    gold = attention.get("gold", [])
    return {
        **_bleu(test)[0],
        "low": round(score["low"], 2),
        "high": round(score["high"], 2),
        "by_length": by_length,
        "error_rates": {str(at["shift"]): _rounded(at["error_rate"]) for at in gold},
        **{key: _rounded(attention[key]) for key in ("entropy", "dropped", "repeated")},
        "search": report["runs"][0]["search"],
        "scored_at_commit": short_commit(report["environment"]),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


SCHEMAS: dict[str, Callable[[Results], Records]] = {
    schema.__name__: schema for schema in (evaluation, levers, mechanisms, points)
}
