"""Arms: runs that differ in their seed alone count as one. A run without such siblings is an arm of one seed."""

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


@dataclass(frozen=True)
class Arm:
    """Runs that count as one."""

    name: str
    runs: tuple[int, ...]
    """their indices among all runs"""
    seeds: tuple[int, ...]

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Plain values, for JSON; `names` are those of all runs."""
        return {"name": self.name, "runs": [names[run] for run in self.runs], "seeds": list(self.seeds)}


def find_arms(names: Sequence[str], configs: Sequence[Config], texts: Sequence[str | None] = ()) -> list[Arm]:
    """The runs grouped by configuration and by the hash of their training text, if `texts` has them, in the order of
    their first runs. A run that repeats another's seed adds nothing to the spread over seeds: it begins an arm of its
    own."""
    groups: dict[tuple[str, int], list[int]] = {}
    times_seen: Counter[tuple[str, int]] = Counter()
    for run, config in enumerate(configs):
        identity = json.dumps([trained_settings(config), *texts[run : run + 1]], sort_keys=True)
        groups.setdefault((identity, times_seen[identity, config.seed]), []).append(run)
        times_seen[identity, config.seed] += 1
    members = list(groups.values())
    arm_names = names if len(members) == len(names) else _arm_names(members, names, configs)
    return [
        Arm(name, tuple(runs), tuple(configs[run].seed for run in runs))
        for name, runs in zip(arm_names, members, strict=True)
    ]


def named_arms(arms: Sequence[str]) -> list[Arm]:
    """The runs grouped by the name of the arm that each belongs to; the seeds of an arm count as 1, 2, ..."""
    members: dict[str, list[int]] = {}
    for run, name in enumerate(arms):
        members.setdefault(name, []).append(run)
    return [Arm(name, tuple(runs), tuple(range(1, len(runs) + 1))) for name, runs in members.items()]


def _arm_names(members: Sequence[Sequence[int]], names: Sequence[str], configs: Sequence[Config]) -> list[str]:
    """By the first of these that tells all arms apart: the directories' names without their seeds, unless `train` named
    them; what differs between the configurations; the configurations' names; the first runs' names."""
    by_directory = [_without_seed(name, config.seed) for name, config in zip(names, configs, strict=True)]
    by_config = [config.name for config in configs]
    differing = differences([configs[runs[0]] for runs in members])
    if not any(map(is_dated, names)) and (shared := _shared(members, by_directory)):
        return shared
    if unique := differing or _shared(members, by_config) or _shared(members, by_directory):
        return unique
    return [names[runs[0]] for runs in members]


def _shared(members: Sequence[Sequence[int]], names: Sequence[str]) -> list[str] | None:
    """The name that all runs of an arm share, for each arm; None: they do not, or two arms have the same."""
    names_of_arms = [{names[run] for run in runs} for runs in members]
    if all(len(of_arm) == 1 for of_arm in names_of_arms) and len(set.union(*names_of_arms)) == len(members):
        return [of_arm.pop() for of_arm in names_of_arms]
    return None


def _without_seed(name: str, seed: int) -> str:
    stripped = re.sub(rf"(?:(?:^|[-_./])s|[-_./]?seed)?[-_./]?(?<!\d){seed}$", "", name)
    return Path(stripped).name or name
