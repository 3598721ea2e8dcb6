"""The configuration: the settings of a run, loaded from YAML files and `KEY=VALUE` overrides,
checked, dumped.

The defaults stand in `run.py` and in its sections: `data.py`, `model.py`, `train.py`. A
configuration file holds only what differs from them, or from the file that it `extends`. Builders
pass plain numbers on: modules never see configuration objects.
"""

from seq2seq_attn.config.data import DataConfig
from seq2seq_attn.config.explain import shorten
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
    "packaged_config_names",
    "shorten",
    "with_default",
]
