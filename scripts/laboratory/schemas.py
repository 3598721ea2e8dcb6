"""The records of experiments: from finished runs and their scores to the values that the pages of
`docs/` show.

Each schema is a function from results to records by file. The forms are those of the records in
`docs/`, so that a new measurement replaces an old one and the page follows.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from scripts.laboratory.captions.corpora import surnames_of
from scripts.laboratory.experiment import Experiment, Results, stem
from scripts.laboratory.harness.records import Record, describe, read_training
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
from seq2seq_attn.metrics.significance import bootstrap, mean_difference, percentile_interval, pool
from seq2seq_attn.metrics.table import DEFAULT_METRICS
from seq2seq_attn.text.lines import read_lines

Records = Iterator[tuple[Path, Record]]


def evaluation(results: Results) -> Records:
    """Scores of a few runs with signatures, sizes and settings, overall and by length."""
    yield results.path, _evaluation(results.path.stem, results.experiment, results.report.data)


def _evaluation(name: str, experiment: Experiment, report: Record) -> Record:
    runs = []
    for run in report["runs"]:
        path = Path(run["path"])
        about = describe_run(path)
        runs.append(
            {
                **{
                    key: run[key]
                    for key in ("name", "config", "attention", "seed", "lowercases", "search")
                },
                "training": {**read_training(path), "minutes": about["minutes"]},
                "num_threads": run["training_environment"].get("num_threads"),
                **{key: about[key] for key in ("hardware", "commit", "is_dirty", "torch")},
                "date": about["trained_at"],
            }
        )
    languages = [report["languages"]["source"], report["languages"]["target"]]
    about_all = {
        "name": name,
        "chosen_on": experiment.chosen_on,
        "runs": runs,
        "languages": languages,
    }
    return {**about_all, "length": report["length"], "sets": report["sets"]}


def points(results: Results) -> Records:
    """The scores of each arm by source length, or by the number of concatenated pairs, with what
    attention did."""
    report, all_lengths = results.report.data, results.report.scored.lengths
    sets = report["sets"]
    if results.experiment.evaluate.get("concatenate"):
        rows, attention = sets, [scores["attention"] for scores in sets]
        labels, lengths = [scores["num_concatenated"] for scores in sets], all_lengths
    else:
        rows, attention = sets[-1]["buckets"], sets[-1]["attention"]["buckets"]
        labels = [scores["label"] for scores in rows]
        lengths = [all_lengths[-1][row.bucket.indices] for row in results.report.sets[-1].buckets]
    measured = []
    for label, scores, lengths_N, looks in zip(labels, rows, lengths, attention, strict=True):
        by_measure = {
            measure["name"]: _arm_scores(results, measure) for measure in scores["measures"]
        }
        arms = results.runs_by_arm
        measured.append(
            {
                "label": str(label),
                "num_pairs": scores["num_pairs"],
                "mean_length": float(lengths_N.mean()),
                "scores": {
                    arm: {name: by_arm[arm] for name, by_arm in by_measure.items()} for arm in arms
                },
                "attention": {
                    arm: _mean(values) for arm, values in _split(results, looks["runs"]).items()
                },
            }
        )
    yield (
        results.path,
        {
            "arms": [_arm(results, arm, runs) for arm, runs in results.runs_by_arm.items()],
            "signatures": {
                measure["name"]: measure["signature"] for measure in sets[0]["measures"]
            },
            "length": report["length"]["tokenizer"],
            "points": measured,
            "environment": report["environment"],
        },
    )


def _split(results: Results, values: Sequence[Record]) -> dict[str, list[Record]]:
    """By arm, what a report has for each run."""
    rest = iter(values)
    return {arm: [next(rest) for _ in runs] for arm, runs in results.runs_by_arm.items()}


def _arm_scores(results: Results, measure: Record) -> dict[str, Record]:
    """The mean of each arm with interval, retention and p against the baseline, and the values of
    its seeds."""
    arms: dict[str, Record] = {}
    pooled = measure["groups" if "groups" in measure else "runs"]
    for (arm, runs), score in zip(_split(results, measure["runs"]).items(), pooled, strict=True):
        seeds = [run["score"] for run in runs]
        arms[arm] = {
            "mean": fmean(seeds),
            "by_seed": seeds,
            "low": score["low"],
            "high": score["high"],
        }
        if kept := score.get("retention"):
            arms[arm]["retention"] = kept
        if test := score.get("paired_bootstrap"):
            arms[arm]["p"] = test["p_value"]
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
    """Validation BLEU of each arm by seed, and its gain over the baseline, which has a record only
    if it is published. The runs of published arms are scored on the test sets; the first of them
    also has a record as an evaluation."""
    experiment, [validation] = results.experiment, results.report.data["sets"]
    validated = _split(results, _bleu(validation))
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
        for run, bleu in zip(runs, validated[name], strict=True):
            entry = {"seed": run.seed, "validation": bleu, **describe_run(run.path)}
            if arm.is_published:
                report = results.evaluate(
                    [run], f"test-{run.path.name}", split=(), metric=DEFAULT_METRICS
                ).data
                tests = [one for one in report["sets"] if one["name"].startswith("test_2")]
                entry["test"] = {one["name"]: _bleu(one)[0] for one in tests}
                if run == runs[0]:
                    yield (
                        results.path.with_name(f"{stem(name)}.json"),
                        _evaluation(stem(name), experiment, report),
                    )
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
    scores = _arm_scores(results, results.report.data["sets"][0]["measures"][0])
    runs, base = (
        results.runs_by_arm[results.experiment.baseline],
        scores[results.experiment.baseline],
    )
    return {
        "config": runs[0].config.name,
        "settings": difference(settings, settings_of(runs[0].config)),
        "seeds": [run.seed for run in results.runs_by_arm[name]],
        "num_runs": len(runs),
        "bleu": round(base["mean"], 2),
        "gain": round(scores[name]["mean"] - base["mean"], 2),
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
        arm, path = results.experiment.arms[name], results.experiment.arm_path(name)
        settings = "".join(
            f" --set {key}={value}".replace("True", "true") for key, value in arm.set.items()
        )
        command = f"seq2seq train -c quickstart -c {arm.configs[0]}{settings}"
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
    [attention], [score] = test["attention"]["runs"], test["measures"][0]["runs"]
    by_length = [
        {
            **{key: bucket[key] for key in ("label", "num_pairs")},
            "bleu": round(bucket["measures"][0]["runs"][0]["score"], 2),
        }
        for bucket in test["buckets"]  # without signatures
    ]
    return {
        **_bleu(test)[0],
        **{key: round(score[key], 2) for key in ("low", "high")},
        "by_length": by_length,
        "error_rates": {
            str(gold["shift"]): _rounded(gold["error_rate"]) for gold in attention.get("gold", [])
        },
        **{key: _rounded(attention[key]) for key in ("entropy", "dropped", "repeated")},
        "search": report["runs"][0]["search"],
        "scored_at_commit": ((report["environment"].get("git") or {}).get("commit") or "unknown")[
            :12
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def systems(results: Results) -> Records:
    """BLEU of each arm on a test set in files, and its gain over the baseline by paired
    resampling."""
    experiment, reference = results.experiment, Path(results.experiment.test_reference)
    references = read_lines(reference)
    scored = []
    for arm, run in results.runs:
        columns = [
            read_lines(Path(name))
            for name in experiment.arms[arm].test_source or experiment.test_source
        ]
        sources = ["\t".join(line) for line in zip(*columns, strict=True)]
        scored.append(score_lines(run.path, sources, references)[1])
    samples = iter(bootstrap(scored))
    pooled = {
        name: pool([next(samples) for _ in runs]) for name, runs in results.runs_by_arm.items()
    }
    baseline, rows = pooled[experiment.baseline], []
    for name, arm_samples in pooled.items():
        config = results.runs_by_arm[name][0].config
        row: Record = {
            "arm": name,
            "output": config.model.output.name,
            "sources": list(config.data.sources),
        }
        row["bleu"] = asdict(percentile_interval(arm_samples.mean, arm_samples.means_R))
        if name != experiment.baseline:
            gain = percentile_interval(
                arm_samples.mean - baseline.mean, arm_samples.means_R - baseline.means_R
            )
            row |= {
                "gain": asdict(gain),
                "paired_bootstrap": asdict(mean_difference(baseline, arm_samples)),
            }
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
    experiment, signatures, num_test = results.experiment, set(), {}
    rows: list[Record] = [
        {"arm": arm, "about": experiment.arms[arm].about} for arm in results.runs_by_arm
    ]
    for row, runs in zip(rows, results.runs_by_arm.values(), strict=True):
        row |= {
            "seeds": [run.seed for run in runs],
            "minutes": [read_training(run.path)["minutes"] for run in runs],
        }
        row["bleu"] = {}
        for name, (source, reference) in experiment.tests.items():
            sources, references = read_lines(Path(source)), read_lines(Path(reference))
            scored = [score_lines(run.path, sources, references)[1] for run in runs]
            row["bleu"][name] = [round(statistics.score().score, 2) for statistics in scored]
            signatures |= {statistics.signature for statistics in scored}
            num_test[name] = len(references)
    [signature] = signatures
    about: Record = {
        "what": experiment.about,
        "chosen_on": experiment.chosen_on,
        "config": experiment.configs[0],
    }
    about |= {"num_test": num_test, "signature": signature, "environment": describe("scripts/lab")}
    yield results.path, {"systems": rows, **about}


def score_lines(
    path: Path, sources: Sequence[str], references: Sequence[str], **options: Any
) -> tuple[list[str], CorpusStatistics]:
    """A run's translations of some lines on the CPU, and their BLEU statistics. `options` are those
    of `translate`."""
    translations = load(path, "cpu").translate(sources, keep_attention=False, **options)
    texts = [translation.text for translation in translations]
    return texts, Measure("bleu", list(references)).statistics(texts)


def _header(results: Results) -> Record:
    """The question's data, settings and seeds, for records of systems."""
    first = results.runs[0][1]
    return {
        "what": results.experiment.about,
        "chosen_on": results.experiment.chosen_on,
        "config": results.experiment.configs[0],
        "set": [setting for setting in first.settings if not setting.startswith("data.")],
        "num_seeds": max(len(runs) for runs in results.runs_by_arm.values()),
        "seed": first.seed,
        "environment": describe("scripts/lab"),
    }


def names(results: Results) -> Records:
    """How many names that training never showed are translated right, of the test pairs that have
    one.

    A name is right where the translation has it as often as the reference.
    """
    experiment, reference = results.experiment, Path(results.experiment.test_reference)
    seen = {
        name for line in read_lines(reference.with_name("train.en")) for name in surnames_of(line)
    }
    sources, references, unseen = [], [], []
    for source, target in zip(
        read_lines(Path(experiment.test_source[0])), read_lines(reference), strict=True
    ):
        if new := [name for name in surnames_of(target) if name not in seen]:
            sources.append(source)
            references.append(target)
            unseen.append(new)
    rows = []
    for arm, run in results.runs:
        for options in experiment.arms[arm].translate:
            hypotheses, bleu = score_lines(run.path, sources, references, **options)
            num_right = sum(
                len(re.findall(name, hypothesis)) == wanted.count(name)
                for hypothesis, wanted in zip(hypotheses, unseen, strict=True)
                for name in wanted
            )
            row = {
                "output": arm,
                "unk": options.get("unk", "keep"),
                "seed": run.seed,
                "right": num_right,
            }
            row |= {"names": sum(map(len, unseen)), "bleu": round(bleu.score().score, 1)}
            rows.append({**row, "signature": bleu.signature})
    counts = {"held_out_surnames": len(set(chain(*unseen))), "test_pairs": len(unseen)}
    yield results.path, {"systems": rows, **counts, **_header(results)}


SCHEMAS: dict[str, Callable[[Results], Records]] = {
    schema.__name__: schema
    for schema in (domains, evaluation, levers, mechanisms, names, points, systems)
}
