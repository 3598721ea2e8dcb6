"""Evaluations of finished runs: docs/results.md, README's blocks, the headers of configurations;
and docs/bottleneck/README.md: how much BLEU is left on long sentences with attention, K vectors or
one."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean

from scripts.laboratory.harness.records import RECORDS, ROOT, Record, load_records
from scripts.laboratory.pages.quality import recipe_records, test_cells, test_names, track
from scripts.laboratory.pages.render import BOTTLENECK, count_of, interval, mean_sd, render
from seq2seq_attn.metrics.attention import DROPPED_BELOW, REPEATED_ABOVE
from seq2seq_attn.metrics.by_length import MIN_PAIRS

MEASURES = {
    "bleu": "BLEU",
    "bleu_lowercase": "BLEU, lower-cased",
    "bleu_tutorial": "BLEU, tutorial",
    "chrf": "chrF",
}


def evaluations() -> dict[str, Record]:
    """Evaluation records by name; other records (speed, resume) have their own pages."""
    return {record["name"]: record for record in load_records(RECORDS).values() if "sets" in record}


def configurations(records: Mapping[str, Record]) -> dict[str, Record]:
    """Each configuration that has a record: its first run, and its scores on the first test set.
    These are cased BLEU, or the tutorial's for models that write lower case, of the runs in the
    record of the recipe if there is one."""
    configs: dict[str, Record] = {}
    several = recipe_records()
    for record in records.values():
        test = record["sets"][0]
        for config in dict.fromkeys(run["config"] for run in record["runs"]):
            if config in configs:
                continue
            numbers = [
                number for number, run in enumerate(record["runs"]) if run["config"] == config
            ]
            runs = [record["runs"][number] for number in numbers]
            name = "bleu_tutorial" if runs[0]["lowercases"] else "bleu"
            [measure] = [measure for measure in test["measures"] if measure["name"] == name]
            scores = [measure["runs"][number]["score"] for number in numbers]
            minutes = [run["training"]["minutes"] for run in runs]
            tested = (
                [run for run in several[config]["runs"] if "test" in run]
                if config in several
                else []
            )
            if tested:
                scores = [run["test"][test["name"]]["bleu"] for run in tested]
                minutes = [run["minutes"] for run in tested]
            first = measure["runs"][numbers[0]]
            configs[config] = {
                "config": config,
                "record": record["name"],
                "languages": record.get("languages", ["de", "en"]),
                "test": test["name"],
                "num_pairs": test["num_pairs"],
                "run": runs[0],
                "measure": MEASURES[name],
                "signature": measure["signature"],
                "first_score": first,
                "seeds": [run["seed"] for run in tested or runs],
                "scores": scores,
                "mean": fmean(scores),
                "bleu": mean_sd(scores, sign=" ± ")
                if len(scores) > 1
                else interval(first, "score"),
                "minutes": fmean(minutes),
            }
    return configs


def results_page(records: Mapping[str, Record]) -> str:
    """docs/results.md: all scores of all records."""
    values: Record = {"measures": MEASURES, "other": load_records(RECORDS)}
    values |= {"overview": configurations(records), "min_pairs": MIN_PAIRS}
    several = recipe_records()
    values |= {
        "several": several,
        "tests": test_names(*several.values()),
        "track": track,
        "test_cells": test_cells,
    }
    return render("results.md.j2", records=records, **values)


def config_headers(records: Mapping[str, Record]) -> Iterator[tuple[Path, str]]:
    """Path and wanted text of each packaged configuration that has a record, which its header
    shows."""
    for config, scores in configurations(records).items():
        path = ROOT / "configs" / f"{config}.yaml"
        if path.exists():
            text = re.sub(r"#\n# Result: .*\n(# .*\n)*", "", path.read_text(encoding="utf-8"))
            head, first_key, tail = re.split(
                r"^(name:|extends:)", text, maxsplit=1, flags=re.MULTILINE
            )
            yield path, f"{head}{render('config.txt.j2', config=scores)}{first_key}{tail}"


def bottleneck_page() -> str:
    """docs/bottleneck/README.md."""
    return render(
        "bottleneck.md.j2",
        records=load_records(BOTTLENECK),
        limits=(DROPPED_BELOW, REPEATED_ABOVE),
        seeds=_seeds_per_arm,
    )


def _seeds_per_arm(record: Record) -> str:
    """The number of seeds that most arms have, and in brackets that of the others."""
    counts: dict[int, list[str]] = {}
    for arm in record["arms"]:
        counts.setdefault(len(arm["seeds"]), []).append(arm["name"])
    most = max(counts, key=lambda count: len(counts[count]))
    remarks = [
        f"{count} of {', '.join(names)}" for count, names in sorted(counts.items()) if count != most
    ]
    return f"{count_of(most, 'seed')} per arm" + (f" ({'; '.join(remarks)})" if remarks else "")
