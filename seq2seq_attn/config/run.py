"""The settings of a run: names, types, limits and defaults, by section. Defaults are set nowhere
else."""

from seq2seq_attn.config.data import DataConfig
from seq2seq_attn.config.model import ModelConfig
from seq2seq_attn.config.search import SearchConfig
from seq2seq_attn.config.train import TrainConfig
from seq2seq_attn.config.types import Section, Seed


class Config(Section):
    """Everything that decides a run."""

    name: str = "base"
    seed: Seed = 1
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    search: SearchConfig = SearchConfig()
