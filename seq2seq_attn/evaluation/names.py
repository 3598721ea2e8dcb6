"""Group runs into arms, and name runs and arms.

An arm is a group of runs that differ only in their seed. A single run is an arm with one seed. A
run's name is the name of its directory if the user chose this name. Otherwise, the name consists of
the settings in which the runs differ.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from seq2seq_attn.config import Config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.normalize import visible

NOT_TRAINED = {
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
"""Settings in which the runs of an arm may differ: the name, the seed, and where and how the run is
computed."""
_DATED = re.compile(r"\d{4}-\d\d-\d\d-")
"""Pattern of the date that begins a directory name chosen by `train`."""
REPEATED = "-again"
"""The end of a configuration's name in an arm with the settings of another arm, for a null
comparison; a number may follow"""
_MAX_SETTINGS = 3
"""the most settings in a name; if runs differ in more settings, directories give the names"""


class Arm(NamedTuple):
    """A group of runs that differ only in their seed, scored by their mean."""

    name: str
    runs: tuple[int, ...]
    """the indices of the arm's runs among all runs"""
    seeds: tuple[int, ...]


def find_arms(
    names: Sequence[str], configs: Sequence[Config], texts: Sequence[str | None] = ()
) -> list[Arm]:
    """Group runs into arms by configuration and training text.

    The arms are in the order of their first runs. In a null comparison, arms have equal settings;
    the end of the configuration's name (`REPEATED`) distinguishes the runs of these arms. A run
    with the configuration and the seed of an earlier run begins a new arm, because this run adds
    nothing to the spread over seeds.

    Args:
        names: The name of each run.
        texts: The hash of each run's training text. If empty, configurations alone decide.
    """
    groups: dict[tuple[str, int], list[int]] = {}
    times_seen: Counter[tuple[str, int]] = Counter()
    for index, config in enumerate(configs):
        text = texts[index] if texts else None
        repeated = re.search(rf"{REPEATED}[-\d]*$", config.name)
        name_end = repeated[0] if repeated else ""
        identity = json.dumps([trained_settings(config), text, name_end], sort_keys=True)
        repetition = times_seen[identity, config.seed]
        times_seen[identity, config.seed] += 1
        groups.setdefault((identity, repetition), []).append(index)
    members = list(groups.values())
    arm_names = names if len(members) == len(names) else _arm_names(members, names, configs)
    arms = []
    for name, runs in zip(arm_names, members, strict=True):
        seeds = tuple(configs[index].seed for index in runs)
        arms.append(Arm(visible(name), tuple(runs), seeds))
    return arms


def named_arms(arms: Sequence[str]) -> list[Arm]:
    """Group runs into arms by name.

    The seeds of the runs are unknown, so the seeds of an arm are numbered 1, 2, ...

    Args:
        arms: For each run, the name of its arm.
    """
    members: dict[str, list[int]] = {}
    for index, name in enumerate(arms):
        members.setdefault(name, []).append(index)
    return [
        Arm(name, tuple(runs), tuple(range(1, len(runs) + 1))) for name, runs in members.items()
    ]


def _arm_names(
    members: Sequence[Sequence[int]], names: Sequence[str], configs: Sequence[Config]
) -> list[str]:
    """Return a distinct name for each arm.

    The first choice are the directories' names without the seed, the second choice the settings in
    which arms differ. If `train` named a directory, the settings are the first choice. If neither
    choice gives distinct names, each arm takes the name of its first run.

    Args:
        members: The indices of each arm's runs.
        names: The name of each run.
    """
    without_seed = []
    for name, config in zip(names, configs, strict=True):
        stripped = re.sub(rf"(?:(?:^|[-_./])s|[-_./]?seed)?[-_./]?(?<!\d){config.seed}$", "", name)
        without_seed.append(Path(stripped).name or name)
    by_directory = _shared(members, without_seed)

    by_setting = differences([configs[runs[0]] for runs in members])
    choices = [by_directory, by_setting]
    if any(map(_is_dated, names)):
        choices.reverse()
    return choices[0] or choices[1] or [names[runs[0]] for runs in members]


def _shared(members: Sequence[Sequence[int]], names: Sequence[str]) -> list[str] | None:
    """Return the name that the runs of each arm share.

    Return None if the runs of an arm have different names, or if two arms have the same name.
    """
    shared: list[str] = []
    for runs in members:
        arm_names = {names[index] for index in runs}
        if len(arm_names) > 1:
            return None
        shared += arm_names
    return shared if len(set(shared)) == len(shared) else None


def run_names(paths: Sequence[Path], configs: Sequence[Config]) -> list[str]:
    """Return a name for each run: the name of its directory, or, if `train` named all directories,
    the settings in which the runs differ.

    Raises:
        UsageError: Two paths are the same.
    """
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(f"{', '.join(map(str, paths))}: the same path twice; name each once")
    names = [path.resolve().name for path in paths]
    varied = differences(configs) if all(map(_is_dated, names)) else None
    if varied is not None:
        names = varied
    elif len(set(names)) < len(names):
        names = [str(path) for path in paths]
    return [visible(name.replace("\n", " ")) for name in names]


def _is_dated(name: str) -> bool:
    """Tell whether `train` named a directory, by date, configuration and seed."""
    return _DATED.match(Path(name).name) is not None


def trained_settings(config: Config) -> dict[str, Any]:
    """Return the settings that decide what is trained, without the seed, by dotted key."""
    return {key: value for key, value in config.flat().items() if key not in NOT_TRAINED}


def differences(configs: Sequence[Config]) -> list[str] | None:
    """Name each configuration by the settings in which the configurations differ, for example
    `attention=bilinear`.

    Return None if two configurations are alike, or if they differ in too many settings for a name.
    """
    settings = []
    for config in configs:
        texts = {}
        for key, value in trained_settings(config).items():
            texts[key] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        settings.append(texts)
    keys = dict.fromkeys(chain.from_iterable(settings))
    varied = [key for key in keys if len({texts.get(key) for texts in settings}) > 1]
    # Different variants have different options anyway, so the variant's name says enough.
    variants = [key.removesuffix("name") for key in varied if key.endswith(".name")]
    options = tuple(f"{variant}options." for variant in variants)
    without_options = [key for key in varied if not key.startswith(options)]
    return _name_by(without_options, settings) or _name_by(varied, settings)


def _name_by(keys: Sequence[str], settings: Sequence[dict[str, str]]) -> list[str] | None:
    """Name each configuration by the values of `keys`.

    Return None if two names are equal, if a name is empty, or if there are more than
    `_MAX_SETTINGS` keys.
    """
    if len(keys) > _MAX_SETTINGS:
        return None
    labels = _labels(keys)
    names = []
    for texts in settings:
        names.append(", ".join(f"{labels[key]}={texts[key]}" for key in keys if key in texts))
    return names if all(names) and len(set(names)) == len(names) else None


def _labels(keys: Sequence[str]) -> dict[str, str]:
    """Return a short form of each key, for example `attention` for `model.attention.name`. If two
    keys have the same short form, the keys are not shortened."""
    labels = {key: re.sub(r"^\w+\.|\.name$|\.options(?=\.)", "", key) for key in keys}
    counts = Counter(labels.values())
    return {key: label if counts[label] == 1 else key for key, label in labels.items()}
