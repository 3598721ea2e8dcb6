"""Arms, and the names of runs and arms: what the user called them, or the settings that tell them
apart.

Runs that differ in their seed alone are one arm. A run without such siblings is an arm of one seed.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from seq2seq_attn.config import Config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.normalize import visible

_NOT_TRAINED = {
    "name",
    "seed",
    "data.data_dir",
    "data.source_dir",
    "data.num_processes",
    "search.batch_size",
    "train.device",
    "train.num_threads",
    "train.cuda_graphs",
    "train.log_every_updates",
    "train.checkpoint_every_updates",
    "train.validation.num_samples",
}
"""settings that decide where and how a run was computed, or what it is called, but not what is
trained"""
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
        text = texts[run] if texts else None
        identity = json.dumps([trained_settings(config), text], sort_keys=True)
        repetition = times_seen[identity, config.seed]
        times_seen[identity, config.seed] += 1
        groups.setdefault((identity, repetition), []).append(run)
    members = list(groups.values())
    arm_names = names if len(members) == len(names) else _arm_names(members, names, configs)
    arms = []
    for name, runs in zip(arm_names, members, strict=True):
        seeds = tuple(configs[run].seed for run in runs)
        arms.append(Arm(visible(name), tuple(runs), seeds))
    return arms


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
    by_directory = _shared(members, without_seed)
    by_config = _shared(members, [config.name for config in configs])
    by_setting = differences([configs[runs[0]] for runs in members])
    choices = [by_directory, by_setting, by_config]
    if any(map(_is_dated, names)):
        choices = [by_setting, by_config, by_directory]
    for choice in choices:
        if choice is not None:
            return choice
    return [names[runs[0]] for runs in members]


def _shared(members: Sequence[Sequence[int]], names: Sequence[str]) -> list[str] | None:
    """The name that all runs of an arm share, for each arm; None: they do not, or two arms have the
    same."""
    shared: list[str] = []
    for runs in members:
        arm_names = {names[run] for run in runs}
        if len(arm_names) > 1:
            return None
        shared += arm_names
    return shared if len(set(shared)) == len(shared) else None


def run_names(paths: Sequence[Path], configs: Sequence[Config]) -> list[str]:
    """A name for each run: its directory's, or, where `train` named the directories, what differs
    between the runs. Raises UsageError: the same run twice."""
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(f"{', '.join(map(str, paths))}: the same path twice; name each once")
    names = [path.resolve().name for path in paths]
    varied = differences(configs) if all(map(_is_dated, names)) else None
    if varied is not None:
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
    settings = []
    for config in configs:
        texts = {}
        for key, value in trained_settings(config).items():
            texts[key] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        settings.append(texts)
    keys = dict.fromkeys(chain.from_iterable(settings))
    varied = [key for key in keys if len({texts.get(key) for texts in settings}) > 1]
    # The options of different variants follow from the variants.
    variants = [key.removesuffix("name") for key in varied if key.endswith(".name")]
    options = tuple(f"{variant}options." for variant in variants)
    without_options = [key for key in varied if not key.startswith(options)]
    return _name_by(without_options, settings) or _name_by(varied, settings)


def _name_by(keys: Sequence[str], settings: Sequence[dict[str, str]]) -> list[str] | None:
    """Names made of these settings; None: they do not tell all apart, or are too many."""
    if len(keys) > _MAX_SETTINGS:
        return None
    labels = _labels(keys)
    names = []
    for texts in settings:
        names.append(", ".join(f"{labels[key]}={texts[key]}" for key in keys if key in texts))
    return names if all(names) and len(set(names)) == len(names) else None


def _labels(keys: Sequence[str]) -> dict[str, str]:
    """`attention` for `model.attention.name`; the key itself if that is not clear."""
    labels = {key: re.sub(r"^\w+\.|\.name$|\.options(?=\.)", "", key) for key in keys}
    counts = Counter(labels.values())
    return {key: label if counts[label] == 1 else key for key, label in labels.items()}
