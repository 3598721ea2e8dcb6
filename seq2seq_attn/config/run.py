"""The settings of a run by section: names, types, limits and defaults. All defaults are set here
and in the files of the sections."""

from seq2seq_attn.config.data import DataConfig
from seq2seq_attn.config.model import ModelConfig
from seq2seq_attn.config.search import SearchConfig
from seq2seq_attn.config.train import TrainConfig
from seq2seq_attn.config.types import Section, Seed


class Config(Section):
    """All settings of a run."""

    name: str = "base"
    seed: Seed = 1
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    search: SearchConfig = SearchConfig()
