"""Names of runs and arms in tables and plots: what the user called them, or the settings that tell them apart."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seq2seq_attn.config import Config
from seq2seq_attn.errors import UsageError

# Settings that decide where and how a run was computed, or what it is called, but not what is trained.
_NOT_TRAINED = (
    *("name", "seed", "data.data_dir", "data.source_dir", "data.num_processes", "search.batch_size"),
    *("train.device", "train.num_threads", "train.cuda_graphs", "train.log_every_updates"),
    *("train.checkpoint_every_updates", "train.validation.num_samples"),
)
_DATED = re.compile(r"\d{4}-\d\d-\d\d-")
"""The beginning of a directory name that `train` chose, not the user."""
_MAX_SETTINGS = 3
"""A name made of more settings says less than the directory's name."""


def run_names(paths: Sequence[Path], configs: Sequence[Config]) -> list[str]:
    """A name for each run: its directory's, or, where `train` named the directories, what differs between the runs.

    Raises:
        UsageError: the same run twice.
    """
    varied = differences(configs) if all(is_dated(path.resolve().name) for path in paths) else None
    return varied or path_names(paths)


def path_names(paths: Sequence[Path]) -> list[str]:
    """The last parts of the paths if they differ, else the whole paths.

    Raises:
        UsageError: the same path twice.
    """
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(f"{', '.join(map(str, paths))}: the same path twice; name each once")
    names = [path.resolve().name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def is_dated(name: str) -> bool:
    """Whether `train` named a directory: by date, configuration and seed."""
    return _DATED.match(Path(name).name) is not None


def trained_settings(config: Config) -> dict[str, Any]:
    """The settings that decide what is trained, without the seed; dotted key to value."""
    flat = _flatten(config.model_dump(mode="json"))
    return {key: value for key, value in flat.items() if key not in _NOT_TRAINED}


def differences(configs: Sequence[Config]) -> list[str] | None:
    """For each configuration the few settings that tell it from the others, `attention=bilinear`. None: some are alike,
    or they differ in too many settings for a name."""
    settings = [trained_settings(config) for config in configs]
    varied = [
        key
        for key in dict.fromkeys(key for values in settings for key in values)
        if any(values.get(key) != settings[0].get(key) for values in settings)
    ]
    # The options of different variants follow from the variants.
    of_variants = tuple(key.removesuffix("name") + "options." for key in varied if key.endswith(".name"))
    for keys in ([key for key in varied if not key.startswith(of_variants)], varied):
        names = [
            ", ".join(f"{_short(key, keys)}={_as_text(values[key])}" for key in keys if key in values)
            for values in settings
        ]
        if len(keys) <= _MAX_SETTINGS and all(names) and len(set(names)) == len(names):
            return names
    return None


def _flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _short(key: str, keys: Sequence[str]) -> str:
    """`attention` for `model.attention.name`, `hidden_size` for `model.hidden_size`; the key itself if that is not
    clear."""
    shortened = [re.sub(r"^\w+\.|\.name$|\.options(?=\.)", "", name) for name in keys]
    own = shortened[keys.index(key)]
    return own if shortened.count(own) == 1 else key


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
