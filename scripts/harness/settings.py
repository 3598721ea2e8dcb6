"""The settings of runs, compared."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.harness.records import Record
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.evaluation.names import trained_settings

OBJECTIVES = "train.objectives."
_IGNORED = ("search.max_length_ratio", "search.beam_size", "train.precision")
"""not compared: training, the scripts or the machine set them"""
_WHOLE_TRAINING = {"start": 0.0, "end": 1.0}
"""defaults of an objective's start and end, left out of the comparison"""


_DELETED = {"model.dropout.token": 0.0, "model.dropout.recurrent": 0.0}
"""settings in records that the package no longer has, with the values that switched them off"""


def settings_of(config: Config) -> Record:
    """The settings by which runs are grouped into one lever. Extra texts are compared by file name, and runs that
    training starts from by the names of their directories without the seed (`-s1`). Several threads are a setting,
    because they change the minutes."""
    found = {key: value for key, value in trained_settings(config).items() if key not in _IGNORED}
    if (num_threads := config.train.num_threads or 1) > 1:
        found["train.num_threads"] = num_threads
    for name in config.train.objectives:
        for setting, value in _WHOLE_TRAINING.items():
            if found[key := f"{OBJECTIVES}{name}.{setting}"] == value:
                del found[key]
    names = [spec if isinstance(spec, str) else spec[0] for spec in found.get("data.extra", [])]
    if start := found["train.start_from"]:
        found["train.start_from"] = re.sub(r"-s\d+$", "", Path(start).name)
    return {**found, "data.extra": [Path(name).name for name in names]}


def difference(base: Record, settings: Record) -> Record:
    """The settings that differ, as the second has them; a key that a record lacks has its default."""
    defaults = {**settings_of(load_config(["base"])), **_DELETED}
    keys = dict.fromkeys([*base, *settings])
    values = {key: (base.get(key, defaults.get(key)), settings.get(key, defaults.get(key))) for key in keys}
    return {key: new for key, (old, new) in values.items() if old != new}
