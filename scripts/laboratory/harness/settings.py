"""The settings of runs, compared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from scripts.laboratory.harness.records import Record
from seq2seq_attn.config import Config, load_config

_IGNORED = (
    *("name", "seed", "data.data_dir", "data.source_dir", "data.num_processes", "search.batch_size"),
    *("train.device", "train.num_threads", "train.cuda_graphs", "train.log_every_updates", "train.precision"),
    *("train.checkpoint_every_updates", "train.validation.num_samples"),
    *("search.max_length_ratio", "search.beam_size"),
)
"""not compared: names, seeds, and what the machine or the laboratory sets"""


def flatten(values: dict[str, Any], prefix: str = "") -> Record:
    """Nested settings by dotted key."""
    flat: Record = {}
    for key, value in values.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def settings_of(config: Config) -> Record:
    """The settings by which runs are compared. Extra texts are compared by file name, and runs that training starts
    from by the names of their directories without the seed (`-s1`)."""
    settings = {key: value for key, value in flatten(config.model_dump(mode="json")).items() if key not in _IGNORED}
    names = [spec if isinstance(spec, str) else spec[0] for spec in settings.get("data.extra", [])]
    if start := settings["train.start_from"]:
        settings["train.start_from"] = re.sub(r"-s\d+$", "", Path(start).name)
    return {**settings, "data.extra": [Path(name).name for name in names]}


def difference(base: Record, settings: Record) -> Record:
    """The settings that differ, as the second has them; None for those that it lacks."""
    return {key: settings.get(key) for key in dict.fromkeys([*base, *settings]) if base.get(key) != settings.get(key)}


def changed_settings(recorded: Record, config: Config) -> list[str]:
    """The keys whose values in a configuration are not those of a record. A key that the record lacks has its
    default."""
    defaults = settings_of(load_config(["base"]))
    settings = settings_of(config).items()
    return [key for key, value in settings if recorded.get(key, defaults.get(key)) != value]
