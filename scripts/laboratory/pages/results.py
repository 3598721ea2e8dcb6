"""Evaluations of finished runs: docs/results.md, README's blocks, and the headers of configurations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from scripts.laboratory.pages.quality import chosen_rows, test_cells, test_names, track
from scripts.laboratory.pages.render import (
    RECORDS,
    ROOT,
    Record,
    interval,
    load_records,
    mean_sd,
    p_value,
    render,
    table,
)
from seq2seq_attn.metrics.by_length import MIN_PAIRS

MEASURES = {
    "bleu": "BLEU",
    "bleu_lowercase": "BLEU, lower-cased",
    "bleu_tutorial": "BLEU, tutorial",
    "chrf": "chrF",
}


class Evaluated(NamedTuple):
    """A configuration on the first test set of a record, by its first seed."""

    record: Record
    test: Record
    run: Record
    measure: str
    """cased BLEU, but the tutorial's for models that write lower case"""
    score: Record
    signature: str

    @property
    def numbers(self) -> list[int]:
        """Those of its seeds among the runs of the record."""
        return [number for number, run in enumerate(self.record["runs"]) if run["config"] == self.run["config"]]

    @property
    def seed_scores(self) -> list[float]:
        """The scores of all its seeds in the record."""
        return [_measure(self.test, self.measure)["runs"][number]["score"] for number in self.numbers]


def evaluations() -> dict[str, Record]:
    """Evaluation records by name; other records (speed, resume) have their own pages."""
    return {record["name"]: record for record in load_records(RECORDS).values() if "sets" in record}


def configurations(records: Mapping[str, Record]) -> dict[str, Evaluated]:
    """Each configuration that has a record."""
    found: dict[str, Evaluated] = {}
    for record in records.values():
        test = record["sets"][0]
        for number, run in enumerate(record["runs"]):
            measure = "bleu_tutorial" if run["lowercases"] else "bleu"
            scores = _measure(test, measure)
            values = Evaluated(record, test, run, measure, scores["runs"][number], scores["signature"])
            found.setdefault(run["config"], values)
    return found


def _measure(test: Record, name: str) -> Record:
    found: Record = next(one for one in test["measures"] if one["name"] == name)
    return found


def overview(records: Mapping[str, Record]) -> list[Record]:
    """A row for each configuration: scores, over several seeds where there are some, and the cost of training."""
    rows, several = [], chosen_rows()
    for config, found in configurations(records).items():
        scores, runs = found.seed_scores, [found.record["runs"][number]["training"] for number in found.numbers]
        if config in several:
            runs = [run for run in several[config]["runs"] if "test" in run]
            scores = [run["test"][found.test["name"]]["bleu"] for run in runs]
        rows.append(
            {
                "config": config,
                "test": found.test["name"],
                "num_pairs": found.test["num_pairs"],
                "mean": fmean(scores),
                "num_seeds": len(scores),
                "bleu": mean_sd(scores, sign=" ± ") if len(scores) > 1 else interval(found.score, "score"),
                "minutes": fmean(run["minutes"] for run in runs),
                "num_parameters": found.run["training"]["num_parameters"],
            }
        )
    return rows


def results_page(records: Mapping[str, Record]) -> str:
    """docs/results.md: all scores of all records."""
    values: Record = {"measures": MEASURES, "by_length": length_table, "other": load_records(RECORDS)}
    values |= {"overview": {one["config"]: one for one in overview(records)}, "min_pairs": MIN_PAIRS}
    several = chosen_rows()
    values |= {"several": several, "tests": test_names(*several.values()), "track": track, "test_cells": test_cells}
    plots = {path.name for path in (ROOT / "docs" / "plots").glob("*.png")}
    return render("results.md.j2", records=records, plots=plots, **values)


def length_table(record: Record, test: Record) -> str:
    """The first measure of each bucket; p of the paired bootstrap against the first run."""
    rows, names = [], [run["name"] for run in record["runs"]]
    for bucket in test["buckets"]:
        runs = bucket["measures"][0]["runs"]
        p_values = [p_value(run["paired_bootstrap"]["p_value"]) for run in runs if "paired_bootstrap" in run]
        thin = " (thin)" if bucket["is_thin"] else ""
        scores = [interval(run, "score") for run in runs]
        rows.append([f"{bucket['label']}{thin}", bucket["num_pairs"], *scores, *p_values])
    length = record["length"]
    compared = [f"p ({name})" for name, run in zip(names, runs, strict=True) if "paired_bootstrap" in run]
    return table([f"{length['of']} {length.get('in', 'tokens')}", "n", *names, *compared], rows, align="---")


def config_headers(records: Mapping[str, Record]) -> Iterator[tuple[Path, str]]:
    """Path and wanted text of each packaged configuration that has a record, which its header shows."""
    several = chosen_rows()
    for config, found in configurations(records).items():
        path, mean = ROOT / "configs" / f"{config}.yaml", ""
        if config in several:
            seeds, score = test_cells(several[config], [found.test["name"]])
            mean = f"# mean of seeds {seeds}: {score};\n"
        elif len(scores := found.seed_scores) > 1:
            seeds = ", ".join(str(run["seed"]) for run in found.record["runs"] if run["config"] == config)
            mean = f"# mean of seeds {seeds}: {fmean(scores):.2f} ± {stdev(scores):.2f};\n"
        if path.exists():
            header = render("config.txt.j2", found=found, title=MEASURES[found.measure], mean=mean)
            text = re.sub(r"#\n# Result: .*\n(# .*\n)*", "", path.read_text(encoding="utf-8"))
            yield path, re.sub(r"^(?=name:|extends:)", lambda _: header, text, count=1, flags=re.MULTILINE)
