"""The records of experiments: from finished runs and their scores to the values that the pages of `docs/` show.

Each schema is a function from results to records by file. The forms are those of the records in `docs/`, so that a new
measurement replaces an old one and the page follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from scripts.laboratory.captions.corpora import surnames_of
from scripts.laboratory.experiment import Experiment, stem
from scripts.laboratory.harness.records import Record, describe, read_training
from scripts.laboratory.harness.runs import Run, bootstrap_by_name, describe_run, score_lines, score_row
from scripts.laboratory.harness.settings import changed_settings, difference, settings_of
from scripts.laboratory.results import Results
from seq2seq_attn.files import read_json
from seq2seq_attn.metrics.bleu import CorpusStatistics
from seq2seq_attn.metrics.significance import BootstrapSamples, pool
from seq2seq_attn.metrics.table import DEFAULT_METRICS
from seq2seq_attn.text.corpus import read_lines

Records = Iterator[tuple[Path, Record]]


def evaluation(results: Results) -> Records:
    """Scores of a few runs with signatures, sizes and settings, overall and by length."""
    yield results.path, _evaluation(results.path.stem, results.experiment, results.report.data)


def _evaluation(name: str, experiment: Experiment, report: Record) -> Record:
    return {
        "name": name,
        "chosen_on": experiment.chosen_on,
        "runs": [_evaluated_run(run) for run in report["runs"]],
        "languages": [report["languages"]["source"], report["languages"]["target"]],
        "length": report["length"],
        "sets": report["sets"],
    }


def _evaluated_run(run: Record) -> Record:
    path = Path(run["path"])
    about = describe_run(path)
    return {
        **{key: run[key] for key in ("name", "config", "attention", "seed", "lowercases", "search")},
        "training": {**read_training(path), "minutes": about["minutes"]},
        "num_threads": run["training_environment"].get("num_threads"),
        **{key: about[key] for key in ("hardware", "commit", "is_dirty", "torch")},
        "date": about["trained_at"],
    }


def points(results: Results) -> Records:
    """The scores of each arm by source length, or by the number of concatenated pairs, with what attention did."""
    report, experiment = results.report, results.experiment
    sets, lengths = report.data["sets"], report.scored.lengths
    if experiment.evaluate.get("concatenate"):
        measured = [
            _point(results, scores, scores["num_concatenated"], float(lengths_N.mean()), scores["attention"]["runs"])
            for scores, lengths_N in zip(sets, lengths, strict=True)
        ]
    else:
        rows, attention = report.sets[-1].buckets, sets[-1]["attention"]["buckets"]
        means = [float(lengths[-1][row.bucket.indices].mean()) for row in rows]
        buckets = zip(sets[-1]["buckets"], means, attention, strict=True)
        measured = [_point(results, scores, scores["label"], mean, part["runs"]) for scores, mean, part in buckets]
    yield (
        results.path,
        {
            "arms": [_arm(results, arm, runs) for arm, runs in results.runs_by_arm.items()],
            "signatures": {measure["name"]: measure["signature"] for measure in sets[0]["measures"]},
            "length": report.data["length"]["tokenizer"],
            "points": measured,
            "environment": report.data["environment"],
        },
    )


def _point(results: Results, scores: Record, label: Any, mean_length: float, attention: Sequence[Record]) -> Record:
    arms = list(results.runs_by_arm)
    by_arm: Record = {arm: {} for arm in arms}
    for measure in scores["measures"]:
        for arm, score in zip(arms, _arm_scores(results, measure), strict=True):
            by_arm[arm][measure["name"]] = score
    return {
        "label": str(label),
        "num_pairs": scores["num_pairs"],
        "mean_length": mean_length,
        "scores": by_arm,
        "attention": {arm: _mean([attention[i] for i in _indices(results, arm)]) for arm in arms},
    }


def _indices(results: Results, arm: str) -> list[int]:
    return [index for index, (name, _) in enumerate(results.runs) if name == arm]


def _arm_scores(results: Results, measure: Record) -> Iterator[Record]:
    """The mean of each arm with interval, retention and p against the baseline, and the values of its seeds."""
    for index, arm in enumerate(results.runs_by_arm):
        seeds = [measure["runs"][i]["score"] for i in _indices(results, arm)]
        score = measure["groups"][index] if "groups" in measure else measure["runs"][index]
        kept, test = score.get("retention"), score.get("paired_bootstrap")
        yield {
            "mean": fmean(seeds),
            "by_seed": seeds,
            "low": score["low"],
            "high": score["high"],
            **({"retention": kept} if kept else {}),
            **({"p": test["p_value"]} if test else {}),
        }


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
    arm, about = results.experiment.arms[name], [describe_run(run.path) for run in runs]
    return {
        "name": name,
        "about": arm.about,
        "parameters": about[0]["parameters"],
        "seeds": [run.seed for run in runs],
        "updates": about[0]["updates"],
        "validation": [round(one["validation_bleu"], 1) for one in about],
        "commits": sorted({one["commit"] for one in about}),
    }


def levers(results: Results) -> Records:
    """Validation BLEU of each arm by seed, and its gain over the baseline, which has a record only if it is published.
    The runs of published arms are scored on the test sets; the first of them also has a record as an evaluation."""
    experiment, [validation] = results.experiment, results.report.data["sets"]
    for name, runs in results.runs_by_arm.items():
        arm, config = experiment.arms[name], runs[0].config
        is_baseline = name == experiment.baseline
        if is_baseline and not arm.is_published:
            continue
        settings, path = settings_of(config), experiment.arm_path(name)
        former = read_json(path) if path.exists() else {}
        if "settings" not in former or changed_settings(former["settings"], config):
            former = {"runs": []}
        entries = {run["seed"]: run for run in former["runs"]}
        for run, index in zip(runs, _indices(results, name), strict=True):
            entry = {"seed": run.seed, "validation": _bleu(validation, index), **describe_run(run.path)}
            if arm.is_published:
                report = results.evaluate([run], f"test-{run.path.name}", split=(), metric=DEFAULT_METRICS).data
                sets = (one for one in report["sets"] if one["name"].startswith("test_2"))
                entry["test"] = {one["name"]: _bleu(one, 0) for one in sets}
                if run == runs[0]:
                    yield results.path.with_name(f"{stem(name)}.json"), _evaluation(stem(name), experiment, report)
            entries[run.seed] = entry
        values = {
            "settings": settings,
            "config": config.name,
            "beam_size": experiment.evaluate["beam_size"],
            "runs": [entries[seed] for seed in sorted(entries)],
            **({"chosen_on": experiment.chosen_on} if arm.is_published else {}),
            **({} if is_baseline else {"against": _against(results, name, settings)}),
        }
        yield path, {**former, **values, "environment": describe("scripts/lab")}


def _against(results: Results, name: str, settings: Record) -> Record:
    """The gain of an arm over the baseline on the validation set, by the paired bootstrap."""
    arms = results.runs_by_arm
    scores = dict(zip(arms, _arm_scores(results, results.report.data["sets"][0]["measures"][0]), strict=True))
    runs, base = arms[results.experiment.baseline], scores[results.experiment.baseline]
    return {
        "config": runs[0].config.name,
        "settings": difference(settings, settings_of(runs[0].config)),
        "seeds": [run.seed for run in arms[name]],
        "num_runs": len(runs),
        "bleu": round(base["mean"], 2),
        "gain": round(scores[name]["mean"] - base["mean"], 2),
        "p_value": scores[name]["p"],
    }


def _bleu(scores: Record, index: int) -> Record:
    """The BLEU of a run on a set."""
    measure = scores["measures"][0]
    bleu = round(measure["runs"][index]["score"], 2)
    return {"bleu": bleu, "num_pairs": scores["num_pairs"], "signature": measure["signature"]}


def mechanisms(results: Results) -> Records:
    """A record per arm that grows: scores of each seed by length, what attention did, how it was trained."""
    for name, runs in results.runs_by_arm.items():
        arm = results.experiment.arms[name]
        settings = "".join(f" --set {key}={value}".replace("True", "true") for key, value in arm.set.items())
        begun: Record = {"row": name, "command": f"seq2seq train -c quickstart -c {arm.configs[0]}{settings}"}
        begun |= {"captions": [], "multi30k": []}
        path = results.experiment.arm_path(name)
        record = read_json(path) if path.exists() else begun
        if record["command"] != begun["command"]:
            record = begun
        corpus = runs[0].config.data.corpus
        known = {entry["seed"]: entry for entry in record[corpus]}
        for run in runs:
            entry, about = known.get(run.seed, {}), describe_run(run.path)
            if entry.get("trained_at") != about["trained_at"]:
                scores = _seed_scores(results, run) if corpus == "captions" else {}
                known[run.seed] = {"seed": run.seed, **scores, **about}
        yield path, {**record, corpus: [known[seed] for seed in sorted(known)]}


def _seed_scores(results: Results, run: Run) -> Record:
    report = results.evaluate([run], f"report-{run.path.name}").data
    [test] = report["sets"]
    [measure] = test["measures"]
    [attention] = test["attention"]["runs"]
    [score] = measure["runs"]
    return {
        **{key: round(score[name], 2) for key, name in (("bleu", "score"), ("low", "low"), ("high", "high"))},
        "num_pairs": test["num_pairs"],
        "signature": measure["signature"],
        "by_length": [
            {
                "label": bucket["label"],
                "num_pairs": bucket["num_pairs"],
                "bleu": round(bucket["measures"][0]["runs"][0]["score"], 2),
            }
            for bucket in test["buckets"]
        ],
        "error_rates": {str(gold["shift"]): _rounded(gold["error_rate"]) for gold in attention.get("gold", [])},
        **{key: _rounded(attention[key]) for key in ("entropy", "dropped", "repeated")},
        "search": report["runs"][0]["search"],
        "scored_at_commit": ((report["environment"].get("git") or {}).get("commit") or "unknown")[:12],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def systems(results: Results) -> Records:
    """BLEU of each arm on a test set in files, and its gain over the baseline."""
    experiment = results.experiment
    assert experiment.test is not None
    references = read_lines(Path(experiment.test.reference))
    scored: dict[tuple[str, int], CorpusStatistics] = {}
    for arm, run in results.runs:
        columns = [read_lines(Path(name)) for name in experiment.arms[arm].source or experiment.test.source]
        sources = ["\t".join(line) for line in zip(*columns, strict=True)]
        scored[arm, run.seed] = score_lines(run.path, sources, references)[1]
    samples = bootstrap_by_name(scored)
    pooled: dict[str, BootstrapSamples] = {
        name: pool([samples[name, run.seed] for run in runs]) for name, runs in results.runs_by_arm.items()
    }
    rows = []
    for name, arm_samples in pooled.items():
        config = results.runs_by_arm[name][0].config
        row = {"arm": name, "output": config.model.output.name, "sources": list(config.data.sources)}
        score = score_row(arm_samples, None if name == experiment.baseline else pooled[experiment.baseline])
        rows.append({**row, **score, "seeds": list(arm_samples.values)})
    first = next(iter(scored.values()))
    about = {
        "num_train": results.runs[0][1].config.data.limit.train,
        "test": Path(experiment.test.reference).name.split(".")[0],
        "num_test": len(references),
        "best_single": experiment.baseline,
        "signature": first.signature,
    }
    yield results.path, {"systems": rows, **about, **results.header()}


def names(results: Results) -> Records:
    """How many names that training never showed are translated right, of the test pairs that have one.

    A name is right where the translation has it as often as the reference.
    """
    experiment = results.experiment
    assert experiment.test is not None
    references = read_lines(Path(experiment.test.reference))
    trained = read_lines(Path(experiment.test.reference).with_name("train.en"))
    seen = {name for line in trained for name in surnames_of(line)}
    [file] = experiment.test.source
    pairs = zip(read_lines(Path(file)), references, strict=True)
    test = [
        (pair, held_out) for pair in pairs if (held_out := [name for name in surnames_of(pair[1]) if name not in seen])
    ]
    sources, references = [pair[0] for pair, _ in test], [pair[1] for pair, _ in test]
    rows = []
    for arm, run in results.runs:
        for options in experiment.arms[arm].translate:
            hypotheses, bleu = score_lines(run.path, sources, references, **options)
            num_right = 0
            for hypothesis, (_, wanted) in zip(hypotheses, test, strict=True):
                num_right += sum(len(re.findall(name, hypothesis)) == wanted.count(name) for name in wanted)
            row = {"output": arm, "unk": options.get("unk", "keep"), "seed": run.seed, "right": num_right}
            row |= {"names": sum(len(wanted) for _, wanted in test), "bleu": round(bleu.score().score, 1)}
            rows.append({**row, "signature": bleu.signature})
    counts = {"held_out_surnames": len({name for _, wanted in test for name in wanted}), "test_pairs": len(test)}
    yield results.path, {"systems": rows, **counts, **results.header()}


SCHEMAS: dict[str, Callable[[Results], Records]] = {
    schema.__name__: schema for schema in (evaluation, levers, mechanisms, names, points, systems)
}
