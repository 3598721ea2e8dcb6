"""The race on the page about speed: BLEU by minute, and by how much ours leads."""

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from scripts.laboratory.harness.records import RECORDS, Record
from seq2seq_attn.files import read_json

LEADER = "ours, multi30k-fast"


def race() -> Record:
    """The record of the race."""
    return dict(read_json(RECORDS / "race.json"))


def bleu_at(system: Record, minute: float) -> float:
    """Lower-cased BLEU at a minute, as some systems write lower case: on the line between two
    checkpoints, from 0 at the start; after the last checkpoint, its score."""
    minutes = [point["minutes"] for point in system["points"]]
    bleu = [point["bleu_lower_case"] for point in system["points"]]
    return float(np.interp(minute, [0.0, *minutes], [0.0, *bleu]))


def leads(record: Record) -> list[str]:
    """A sentence for each other system: by how much `multi30k-fast` leads, and where it does not.
    The other was stopped at its last checkpoint, so later minutes say nothing."""
    systems = {system["name"]: system for system in record["systems"]}
    leader = systems[LEADER]
    sentences = []
    for name, system in systems.items():
        if name.startswith("ours"):
            continue
        last = system["points"][-1]["minutes"]
        gains = {}
        for minute in record["minutes"]:
            if minute <= last:
                gains[minute] = bleu_at(leader, minute) - bleu_at(system, minute)
        if gains:
            sentences.append(_lead(name, gains))
    return sentences


def _lead(name: str, gains: Mapping[float, float]) -> str:
    """By how much `multi30k-fast` leads a system at some minutes, and where it does not."""
    minutes = list(gains)
    ahead = [minute for minute in minutes if gains[minute] > 0]
    behind = [minute for minute in minutes if gains[minute] <= 0]
    if not ahead:
        return f"never ahead of {name}"
    least = f"{min(gains[minute] for minute in ahead):.1f}"
    most = f"{max(gains[minute] for minute in ahead):.1f}"
    gain = least if least == most else f"{least} to {most}"
    text = f"ahead of {name} by {gain} BLEU"
    if not behind:
        return f"{text} from minute {minutes[0]:g} to {minutes[-1]:g}"
    return f"{text} at minute {_listed(ahead)}, behind it at minute {_listed(behind)}"


def _listed(minutes: Sequence[float]) -> str:
    return ", ".join(f"{minute:g}" for minute in minutes)


def mean_points(
    seeds: Sequence[Sequence[Record]], measure: str, minutes: Sequence[float]
) -> dict[str, Record]:
    """For each system of the race on small texts, the cells of its row, which are means over the
    seeds, and the columns in which ours is not ahead of it.

    The columns are the minutes that all seeds of ours reach, the end of ours, and half as long
    again. The last checkpoint of ours is its end, the last two of a peer are the last two columns.
    """
    num_minutes = min(len(systems[0]["points"]) for systems in seeds) - 1
    columns = [f"after {number:g} minutes" for number in minutes[:num_minutes]] + ["at its end"]
    dashes = ["–"] * (len(minutes) - num_minutes)
    rows: dict[str, Record] = {}
    lead: list[float] = []
    for number, system in enumerate(seeds[0]):
        points = [systems[number]["points"] for systems in seeds]
        num_late = 2 if number else 1
        late = [seed[-num_late:] for seed in points]
        kept = [*zip(*(seed[:num_minutes] for seed in points), strict=True)]
        kept += zip(*late, strict=True)
        scores = [fmean(point[measure] for point in column) for column in kept]
        lead = lead or scores
        cells = [f"{score:.1f}" for score in scores]
        cells[num_minutes] += f" ({fmean(seed[0]['minutes'] for seed in late):.1f})"
        compared = zip(columns, scores, lead, strict=False)
        not_behind = [column for column, score, ours in compared if number and score >= ours]
        cells = cells[:num_minutes] + dashes + cells[num_minutes:] + ["–"] * (2 - num_late)
        rows[system["name"]] = {"cells": cells, "not_behind": not_behind}
    return rows
