"""Arms: runs that differ in nothing but the seed count as one, with the mean of their scores and its spread."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2seq_attn.config import Config
from seq2seq_attn.evaluation.names import differences, is_dated, trained_settings
from seq2seq_attn.metrics.seeds import Drawn, Spread, join, mean_difference, mean_interval, mean_retention, spread
from seq2seq_attn.metrics.significance import Interval, PairedTest


@dataclass(frozen=True)
class Arm:
    """Runs that count as one."""

    name: str
    runs: tuple[int, ...]
    """their places among all runs"""
    seeds: tuple[int, ...]

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Plain values, for JSON; `names` are those of all runs."""
        return {"name": self.name, "runs": [names[run] for run in self.runs], "seeds": list(self.seeds)}


@dataclass(frozen=True)
class ArmScore:
    """One arm under one measure on some sentence pairs, and against the first arm unless it is the first."""

    spread: Spread
    """over the seeds"""
    interval: Interval
    """the mean, with its bootstrap interval over sentences"""
    bootstrap: PairedTest | None = None
    retention: Interval | None = None
    """this arm's mean / the first one's; None also where that is 0"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values = {**self.spread.to_dict(), "low": self.interval.low, "high": self.interval.high}
        for name, part in (("paired_bootstrap", self.bootstrap), ("retention", self.retention)):
            if part is not None:
                values[name] = part.to_dict()
        return values


def find_arms(names: Sequence[str], configs: Sequence[Config]) -> list[Arm]:
    """The runs grouped by configuration, in the order of their first runs; none at all if every arm has one run. A run
    that repeats another's seed shows no spread of seeds: it begins an arm of its own."""
    groups: dict[tuple[str, int], list[int]] = {}
    times_seen: Counter[tuple[str, int]] = Counter()
    for place, config in enumerate(configs):
        identity = _identity(config)
        groups.setdefault((identity, times_seen[identity, config.seed]), []).append(place)
        times_seen[identity, config.seed] += 1
    if len(groups) == len(configs):
        return []
    members = list(groups.values())
    seeds = [config.seed for config in configs]
    arm_names = _arm_names(members, names, configs)
    return [
        Arm(name, tuple(places), tuple(seeds[place] for place in places))
        for name, places in zip(arm_names, members, strict=True)
    ]


def named_arms(arms: Sequence[str], seeds: Sequence[int] | None = None) -> list[Arm]:
    """The runs grouped by the name of the arm that each belongs to; none at all if every arm has one run. `seeds` None:
    1, 2, ... in each arm."""
    members: dict[str, list[int]] = {}
    for place, name in enumerate(arms):
        members.setdefault(name, []).append(place)
    if len(members) == len(arms):
        return []
    return [
        Arm(
            name,
            tuple(places),
            tuple(range(1, len(places) + 1)) if seeds is None else tuple(seeds[place] for place in places),
        )
        for name, places in members.items()
    ]


def score_arms(drawn: Sequence[Drawn], arms: Sequence[Arm], *, seed: int) -> list[ArmScore]:
    """The score of each arm from its runs' draws, and of all but the first against the first."""
    joined = [join([drawn[run] for run in arm.runs]) for arm in arms]
    scores = [ArmScore(spread(joined[0].values), mean_interval(joined[0]))]
    for arm in joined[1:]:
        test, kept = mean_difference(joined[0], arm, seed=seed), mean_retention(joined[0], arm)
        scores.append(ArmScore(spread(arm.values), mean_interval(arm), test, kept))
    return scores


def _identity(config: Config) -> str:
    return json.dumps(trained_settings(config), sort_keys=True)


def _arm_names(members: Sequence[Sequence[int]], names: Sequence[str], configs: Sequence[Config]) -> list[str]:
    """By the first of these that tells all arms apart: the directories' names without their seeds, unless `train` named
    them; what differs between the configurations; the configurations' names; the first runs' names."""
    by_directory = [_without_seed(name, config.seed) for name, config in zip(names, configs, strict=True)]
    by_config = [config.name for config in configs]
    differing = differences([configs[places[0]] for places in members])
    if not any(map(is_dated, names)) and (found := _shared(members, by_directory)):
        return found
    if found := differing or _shared(members, by_config) or _shared(members, by_directory):
        return found
    return [names[places[0]] for places in members]


def _shared(members: Sequence[Sequence[int]], names: Sequence[str]) -> list[str] | None:
    """The name that all runs of an arm share, for each arm; None: they do not, or two arms have the same."""
    found = [{names[place] for place in places} for places in members]
    if all(len(of_arm) == 1 for of_arm in found) and len(set.union(*found)) == len(members):
        return [of_arm.pop() for of_arm in found]
    return None


def _without_seed(name: str, seed: int) -> str:
    stripped = re.sub(rf"[-_./]?(?:seed|s)?[-_.]?(?<!\d){seed}$", "", name)
    return Path(stripped).name or name
