"""docs/quality.md: settings tried on Multi30k, and the scores of those that were published."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from statistics import fmean, stdev
from typing import Any

from scripts.laboratory.harness.records import RECORDS, Record, load_records
from scripts.laboratory.harness.settings import settings_of
from scripts.laboratory.pages.render import LEVERS, distinct, mean_sd, p_value, render
from seq2seq_attn.config import load_config, packaged_config_names
from seq2seq_attn.errors import UserError

BASELINE = "multi30k"
"""the record of the settings that the labels of other records are relative to"""
RECIPES = ("multi30k-fast", "multi30k", "multi30k-extra")
CHOSEN_ON = ("validation", "published elsewhere")
"""how the settings of runs that were scored on test sets may have been chosen"""
TASK2 = "task2"
"""in the names of extra texts that come from Multi30k's task 2"""
SCORES = ["BLEU by seed", "mean", "SD", "gain (n, p)", "over (BLEU)", "minutes", "precision", "parameters", "hardware"]


def quality_page() -> str:
    """docs/quality.md."""
    levers = load_records(LEVERS)
    ordered = sorted(levers.items(), key=lambda item: (item[0] != BASELINE, _languages(item[1]), -mean_bleu(item[1])))
    rows = [record for _, record in ordered]
    tested = [record for record in rows if any("test" in run for run in record["runs"])]
    return render(
        "quality.md.j2",
        base=levers[BASELINE],
        score_names=SCORES,
        tried=[[label(row), track(row), *score_cells(row)] for row in rows if "without" not in row or is_packaged(row)],
        ablation=[[row["without"], label(row), *score_cells(row)] for row in ablation(levers)],
        tests=test_names(*tested),
        tested=[
            [label(row), track(row), row.get("chosen_on", ""), *test_cells(row, test_names(*tested))] for row in tested
        ],
        techniques=techniques(levers),
        means={name: _packaged_mean(levers, name) for name in RECIPES},
    )


def refusals() -> Iterator[str]:
    """A line for each record with scores of test sets that does not say how its settings were chosen."""
    for name, record in (load_records(RECORDS) | load_records(LEVERS)).items():
        names = [test["name"] for test in record.get("sets", ())] + [str(record.get("test", ""))]
        has_tests = any("test" in run for run in record.get("runs", ()))
        if (has_tests or any(name.startswith("test_2") for name in names)) and record.get("chosen_on") not in CHOSEN_ON:
            yield (
                f"{name}: scores of test sets, and chosen_on is {record.get('chosen_on')!r}; choose settings on the "
                f"validation set and say so: chosen_on is {' or '.join(CHOSEN_ON)}"
            )


def chosen_rows() -> dict[str, Record]:
    """The packaged configurations that were trained with several seeds and scored on test sets."""
    rows = {}
    for record in load_records(LEVERS).values():
        if sum("test" in run for run in record["runs"]) > 1 and is_packaged(record):
            rows[record["config"]] = record
    for name, record in load_records(RECORDS).items():
        if name.startswith("distil"):
            rows[record["student"]] = record
    return dict(sorted(rows.items(), key=lambda item: track(item[1])))


def ablation(levers: Mapping[str, Record]) -> list[Record]:
    """The recipe without each of its techniques, the greatest loss first."""
    return sorted((record for record in levers.values() if "without" in record), key=mean_bleu)


def techniques(levers: Mapping[str, Record]) -> list[Record]:
    """What `multi30k-fast` gains by each of its techniques, or its former recipe where today's was not measured
    (`is_current`)."""
    rows = ablation(levers)
    unused = {record["without"] for record in rows if is_packaged(record)}
    gains: dict[str, Record] = {}
    for record in rows:
        name, is_current = record["without"], is_packaged(compared_with(record))
        if name not in unused and (is_current or name not in gains):
            label = name.replace("tying", "tied embeddings")
            against = record["against"]
            values = {"gain": -against["gain"], "p_value": against["p_value"], "is_current": is_current}
            gains[name] = {"name": label, **values}
    return sorted(gains.values(), key=lambda row: -float(row["gain"]))


def _packaged_mean(levers: Mapping[str, Record], name: str) -> float:
    """Validation BLEU of a recipe.

    Raises:
        UserError: no record has its settings.
    """
    means = [mean_bleu(record) for record in levers.values() if record["config"] == name and is_packaged(record)]
    if not means:
        raise UserError(f"configs/{name}.yaml: no record of docs/records/levers has its settings; add its runs")
    return means[0]


def mean_bleu(record: Record) -> float:
    """On the validation set."""
    return fmean(run["validation"]["bleu"] for run in record["runs"])


def track(record: Record) -> str:
    """A: trained on Multi30k's 29,000 pairs. B: also on captions of its task 2, or from a run that was."""
    settings = record.get("settings", {})
    names = [*settings.get("data.extra", ()), settings.get("train.start_from") or ""]
    return "B" if any(TASK2 in name for name in names) else "A"


def _languages(record: Record) -> tuple[str, str, str]:
    settings = record["settings"]
    return track(record), settings.get("data.target_language", "en"), settings.get("data.source_language", "de")


@cache
def _packaged(name: str) -> Record | None:
    """The settings of a packaged configuration; None if there is none of this name."""
    return settings_of(load_config([name])) if name in packaged_config_names() else None


@cache
def _baseline() -> Record:
    return dict(load_records(LEVERS)[BASELINE]["settings"])


def difference(base: Record, settings: Record) -> Record:
    """The settings that differ, as the second has them. One that a record lacks has its default, or if it has left the
    package, the baseline's value."""
    neutral, keys = {**_baseline(), **(_packaged("base") or {})}, dict.fromkeys([*base, *settings])
    values = {key: (base.get(key, neutral.get(key)), settings.get(key, neutral.get(key))) for key in keys}
    return {key: new for key, (old, new) in values.items() if old != new}


def is_packaged(record: Record) -> bool:
    """Whether its settings are those of a packaged configuration."""
    packaged = _packaged(record["config"])
    return packaged is not None and not difference(packaged, record["settings"])


def label(record: Record) -> str:
    """A configuration's name, if it is not the baseline, and the settings that differ from it."""
    if is_packaged(record):
        return f"`{record['config']}`"
    name, named = record["config"].partition("+")[0], []  # without the names of overlays
    reference = _baseline()
    if name != BASELINE and (packaged := _packaged(name)):
        reference, named = packaged, [f"`{name}`"]
    return ", ".join([*named, *_named(difference(reference, record["settings"]))]) or f"`{name}`"


def _named(changed: Mapping[str, Any]) -> list[str]:
    """Settings with their values; those of a section with the same value together, `section.{first,second}=value`."""
    groups: dict[tuple[str, str], list[str]] = {}
    for key, value in changed.items():
        section, dot, last = key.rpartition(".")
        groups.setdefault((section + dot, value if isinstance(value, str) else json.dumps(value)), []).append(last)
    return [
        f"`{section}{names[0] if len(names) == 1 else '{' + ','.join(names) + '}'}={value}`"
        for (section, value), names in groups.items()
    ]


def score_cells(record: Record) -> list[str]:
    """The cells of `SCORES`."""
    runs = record["runs"]
    scores = [run["validation"]["bleu"] for run in runs]
    return [
        ", ".join(f"{score:.2f}" for score in scores),
        f"{fmean(scores):.2f}",
        f"{stdev(scores):.2f}" if len(scores) > 1 else "",
        *_gain(record),
        f"{fmean(run['minutes'] for run in runs):.0f}",
        distinct(run["precision"] for run in runs),
        f"{runs[0]['parameters']:,}",
        distinct(run["hardware"] for run in runs),
    ]


def _gain(record: Record) -> tuple[str, str]:
    """The gain, and the label of the row that it is over. Seeds are named where not all were compared."""
    if "against" not in record:
        return "", ""
    against = record["against"]
    is_of_all = against["seeds"] == [run["seed"] for run in record["runs"]]
    seeds = "" if is_of_all else f"; seed{'s' * (len(against['seeds']) > 1)} {', '.join(map(str, against['seeds']))}"
    gain = f"{against['gain']:+.2f} ({against['num_runs']}, {p_value(against['p_value'])}{seeds})"
    return gain, f"{label(compared_with(record))} ({against['bleu']:.2f})"


def compared_with(record: Record) -> Record:
    """Configuration and settings of the row that a record's gain is over."""
    against = record["against"]
    settings = {**record["settings"], **against["settings"]}
    return {"config": against.get("config", BASELINE), "settings": settings}


def test_names(*records: Record) -> list[str]:
    """The test sets that runs of some records were scored on."""
    return list(dict.fromkeys(name for record in records for run in record["runs"] for name in run.get("test", ())))


def test_cells(record: Record, names: Sequence[str]) -> list[str]:
    """Seeds, then BLEU on each test set, mean ± SD, of the runs that have it."""
    tested = [run for run in record["runs"] if "test" in run]
    scores = [[run["test"][name]["bleu"] for run in tested if name in run["test"]] for name in names]
    return [", ".join(str(run["seed"]) for run in tested), *(mean_sd(score, digits=2, sign=" ± ") for score in scores)]
