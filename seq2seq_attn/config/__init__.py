"""The configuration of a run: load it from YAML files and `KEY=VALUE` overrides, check it, and dump
it.

Defaults are in `run.py` and in the files of its sections: `data.py`, `model.py`, `train.py` and
`search.py`. A configuration file holds only settings that differ from the defaults or from the file
that it `extends`. Builders pass plain numbers on, so modules never see configuration objects.
"""

from seq2seq_attn.config.data import DataConfig
from seq2seq_attn.config.explain import name_numbers, plural, shorten
from seq2seq_attn.config.load import (
    config_from_dict,
    dump_config,
    load_config,
    packaged_config_names,
    with_default,
)
from seq2seq_attn.config.model import ModelConfig
from seq2seq_attn.config.run import Config
from seq2seq_attn.config.search import SearchConfig
from seq2seq_attn.config.train import (
    BatchConfig,
    ObjectiveConfig,
    OptimizerConfig,
    ScheduleConfig,
    TeacherForcingConfig,
    TrainConfig,
)
from seq2seq_attn.config.types import LEAST_LENGTH_RATIO, NumLayers, Size

__all__ = [
    "LEAST_LENGTH_RATIO",
    "BatchConfig",
    "Config",
    "DataConfig",
    "ModelConfig",
    "NumLayers",
    "ObjectiveConfig",
    "OptimizerConfig",
    "ScheduleConfig",
    "SearchConfig",
    "Size",
    "TeacherForcingConfig",
    "TrainConfig",
    "config_from_dict",
    "dump_config",
    "load_config",
    "name_numbers",
    "packaged_config_names",
    "plural",
    "shorten",
    "with_default",
]
