"""Arms, and the names of runs and arms: what the user called them, or the settings that tell them
apart.

Runs that differ in their seed alone are one arm. A run without such siblings is an arm of one seed.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2seq_attn.config import Config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.normalize import visible

# Settings that decide where and how a run was computed, or what it is called, but not what is
# trained.
_NOT_TRAINED = (
    *(
        "name",
        "seed",
        "data.data_dir",
        "data.source_dir",
        "data.num_processes",
        "search.batch_size",
    ),
    *("train.device", "train.num_threads", "train.cuda_graphs", "train.log_every_updates"),
    *("train.checkpoint_every_updates", "train.validation.num_samples"),
)
_DATED = re.compile(r"\d{4}-\d\d-\d\d-")
"""The beginning of a directory name that `train` chose, not the user."""
_MAX_SETTINGS = 3
"""A name made of more settings says less than the directory's name."""


@dataclass(frozen=True)
class Arm:
    """Runs that count as one."""

    name: str
    runs: tuple[int, ...]
    """their indices among all runs"""
    seeds: tuple[int, ...]


def find_arms(
    names: Sequence[str], configs: Sequence[Config], texts: Sequence[str | None] = ()
) -> list[Arm]:
    """The runs grouped by configuration and by the hash of their training text, if `texts` has
    them, in the order of their first runs. A run that repeats another's seed adds nothing to the
    spread over seeds: it begins an arm of its own."""
    groups: dict[tuple[str, int], list[int]] = {}
    times_seen: Counter[tuple[str, int]] = Counter()
    for run, config in enumerate(configs):
        identity = json.dumps([trained_settings(config), *texts[run : run + 1]], sort_keys=True)
        groups.setdefault((identity, times_seen[identity, config.seed]), []).append(run)
        times_seen[identity, config.seed] += 1
    members = list(groups.values())
    arm_names = names if len(members) == len(names) else _arm_names(members, names, configs)
    return [
        Arm(visible(name), tuple(runs), tuple(configs[run].seed for run in runs))
        for name, runs in zip(arm_names, members, strict=True)
    ]


def named_arms(arms: Sequence[str]) -> list[Arm]:
    """The runs grouped by the name of the arm that each belongs to; the seeds of an arm count as 1,
    2, ..."""
    members: dict[str, list[int]] = {}
    for run, name in enumerate(arms):
        members.setdefault(name, []).append(run)
    return [
        Arm(name, tuple(runs), tuple(range(1, len(runs) + 1))) for name, runs in members.items()
    ]


def _arm_names(
    members: Sequence[Sequence[int]], names: Sequence[str], configs: Sequence[Config]
) -> list[str]:
    """By the first of these that tells all arms apart: the directories' names without their seeds,
    unless `train` named them; what differs between the configurations; the configurations' names;
    the first runs' names."""
    without_seed = []
    for name, config in zip(names, configs, strict=True):
        stripped = re.sub(rf"(?:(?:^|[-_./])s|[-_./]?seed)?[-_./]?(?<!\d){config.seed}$", "", name)
        without_seed.append(Path(stripped).name or name)
    by_directory, by_config = (
        _shared(members, without_seed),
        _shared(members, [config.name for config in configs]),
    )
    by_setting = differences([configs[runs[0]] for runs in members])
    choices = [by_directory, by_setting, by_config]
    if any(map(_is_dated, names)):
        choices = [by_setting, by_config, by_directory]
    return next(filter(None, choices), [names[runs[0]] for runs in members])


def _shared(members: Sequence[Sequence[int]], names: Sequence[str]) -> list[str] | None:
    """The name that all runs of an arm share, for each arm; None: they do not, or two arms have the
    same."""
    shared = [{names[run] for run in runs} for runs in members]
    is_clear = all(len(arm_names) == 1 for arm_names in shared) and len(set.union(*shared)) == len(
        members
    )
    return [name for arm_names in shared for name in arm_names] if is_clear else None


def run_names(paths: Sequence[Path], configs: Sequence[Config]) -> list[str]:
    """A name for each run: its directory's, or, where `train` named the directories, what differs
    between the runs. Raises UsageError: the same run twice."""
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(f"{', '.join(map(str, paths))}: the same path twice; name each once")
    names = [path.resolve().name for path in paths]
    if all(map(_is_dated, names)) and (varied := differences(configs)):
        names = varied
    elif len(set(names)) < len(names):
        names = [str(path) for path in paths]
    return [visible(name) for name in names]


def _is_dated(name: str) -> bool:
    """Whether `train` named a directory: by date, configuration and seed."""
    return _DATED.match(Path(name).name) is not None


def trained_settings(config: Config) -> dict[str, Any]:
    """The settings that decide what is trained, without the seed; dotted key to value."""
    return {key: value for key, value in config.flat().items() if key not in _NOT_TRAINED}


def differences(configs: Sequence[Config]) -> list[str] | None:
    """For each configuration the few settings that tell it from the others, `attention=bilinear`.
    None: some are alike, or they differ in too many settings for a name."""
    settings = [
        {
            key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for key, value in trained_settings(config).items()
        }
        for config in configs
    ]
    varied = [
        key
        for key in dict.fromkeys(key for texts in settings for key in texts)
        if any(texts.get(key) != settings[0].get(key) for texts in settings)
    ]
    # The options of different variants follow from the variants.
    options = tuple(
        key.removesuffix("name") + "options." for key in varied if key.endswith(".name")
    )
    for keys in ([key for key in varied if not key.startswith(options)], varied):
        # `attention` for `model.attention.name`; the key itself if that is not clear
        short = [re.sub(r"^\w+\.|\.name$|\.options(?=\.)", "", key) for key in keys]
        labels = {
            key: own if short.count(own) == 1 else key for key, own in zip(keys, short, strict=True)
        }
        names = [
            ", ".join(f"{labels[key]}={texts[key]}" for key in keys if key in texts)
            for texts in settings
        ]
        if len(keys) <= _MAX_SETTINGS and all(names) and len(set(names)) == len(names):
            return names
    return None
