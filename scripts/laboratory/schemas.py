"""The records of experiments: from finished runs and their scores to the values that the pages of
`docs/` show.

Each schema is a function from results to records by file. The forms are those of the records in
`docs/`, so that a new measurement replaces an old one and the page follows.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
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
from seq2seq_attn import load
from seq2seq_attn.files import read_json
from seq2seq_attn.metrics.bleu import CorpusStatistics, Measure
from seq2seq_attn.metrics.significance import (
    bootstrap,
    holm,
    mean_difference,
    percentile_interval,
    pool,
)
from seq2seq_attn.metrics.table import DEFAULT_METRICS
from seq2seq_attn.text.lines import read_lines

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
        "environment": report["environment"],
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


def systems(results: Results) -> Records:
    """BLEU of each arm on a test set in files, and its gain over the baseline by paired
    resampling."""
    experiment = results.experiment
    reference = Path(experiment.test_reference)
    references = read_lines(reference)
    scored = []
    for arm, run in results.runs:
        names = experiment.arms[arm].test_source or experiment.test_source
        columns = [read_lines(Path(name)) for name in names]
        sources = ["\t".join(line) for line in zip(*columns, strict=True)]
        scored.append(score_lines(run.path, sources, references))
    samples = _split(results, bootstrap(scored))
    pooled = {name: pool(arm_samples) for name, arm_samples in samples.items()}
    baseline = pooled[experiment.baseline]
    others = [arm for name, arm in pooled.items() if name != experiment.baseline]
    tests = iter(holm([mean_difference(baseline, arm) for arm in others]))
    rows = []
    for name, arm_samples in pooled.items():
        config = results.runs_by_arm[name][0].config
        row: Record = {
            "arm": name,
            "output": config.model.output.name,
            "sources": list(config.data.sources),
            "bleu": asdict(arm_samples.interval),
        }
        if name != experiment.baseline:
            gain = arm_samples.mean - baseline.mean
            gains_R = arm_samples.means_R - baseline.means_R
            row["gain"] = asdict(percentile_interval(gain, gains_R))
            row["paired_bootstrap"] = asdict(next(tests))
        rows.append({**row, "seeds": list(arm_samples.values)})
    about = {
        "num_train": results.runs[0][1].config.data.limit.train,
        "test": reference.name.split(".")[0],
        "num_test": len(references),
        "best_single": experiment.baseline,
        "signature": scored[0].signature,
    }
    yield results.path, {"systems": rows, **about, **_header(results)}


def domains(results: Results) -> Records:
    """BLEU of each arm on several test sets in files, by seed."""
    experiment = results.experiment
    signatures = set()
    num_test = {}
    rows = []
    for arm, runs in results.runs_by_arm.items():
        bleu: dict[str, list[float]] = {}
        for name, (source, reference) in experiment.tests.items():
            sources = read_lines(Path(source))
            references = read_lines(Path(reference))
            bleu[name] = []
            for run in runs:
                statistics = score_lines(run.path, sources, references)
                bleu[name].append(round(statistics.score().score, 2))
                signatures.add(statistics.signature)
            num_test[name] = len(references)
        rows.append(
            {
                "arm": arm,
                "about": experiment.arms[arm].about,
                "seeds": [run.seed for run in runs],
                "minutes": [read_training(run.path)["minutes"] for run in runs],
                "bleu": bleu,
            }
        )
    [signature] = signatures
    about = {"num_test": num_test, "signature": signature, **_header(results)}
    yield results.path, {"systems": rows, **about}


def score_lines(path: Path, sources: Sequence[str], references: Sequence[str]) -> CorpusStatistics:
    """BLEU statistics of a run's translations of some lines on the CPU."""
    translations = load(path, "cpu").translate(sources, keep_attention=False)
    texts = [translation.text for translation in translations]
    return Measure("bleu", list(references)).statistics(texts)


def _header(results: Results) -> Record:
    """The question's data, settings and seeds, for records of systems."""
    first = results.runs[0][1]
    set_texts = []
    for key, value in first.settings.items():
        if not key.startswith("data."):
            set_texts.append(f"{key}={json.dumps(value)}")
    return {
        "what": results.experiment.about,
        "chosen_on": results.experiment.chosen_on,
        "config": results.experiment.configs[0],
        "set": set_texts,
        "num_seeds": max(len(runs) for runs in results.runs_by_arm.values()),
        "seed": first.seed,
        "environment": describe("scripts/lab"),
    }


SCHEMAS: dict[str, Callable[[Results], Records]] = {
    schema.__name__: schema for schema in (domains, evaluation, levers, mechanisms, points, systems)
}
