"""The settings of a run: names, types, limits and defaults, by section. Defaults are set nowhere else."""

from __future__ import annotations

from pydantic import ConfigDict

from seq2seq_attn.config.data import DataConfig
from seq2seq_attn.config.model import ModelConfig
from seq2seq_attn.config.section import Section
from seq2seq_attn.config.train import TrainConfig
from seq2seq_attn.config.types import (
    BeamSize,
    CoveragePenalty,
    LengthPenalty,
    LengthRatio,
    NonNegativeInt,
    PositiveInt,
    Seed,
)


class SearchConfig(Section):
    """Translation. N and X stand for the value."""

    model_config = ConfigDict(use_attribute_docstrings=True)  # the help of the commands' options

    beam_size: BeamSize = 5
    """Hypotheses kept per sentence; 1 is greedy."""
    length_penalty: LengthPenalty = 0.0
    """Rank hypotheses by log P / length ** X, with the length in target tokens including EOS."""
    coverage_penalty: CoveragePenalty = 0.0
    """Weight of the penalty for source tokens whose total attention is below 1: X * sum_j log min(attention to source
    position j, 1) is added to the rank."""
    no_repeat_ngram: NonNegativeInt = 0
    """Never repeat an N-gram of tokens in a translation, or in a segment of it if the source is so long that it is
    split; 0: off."""
    max_length_ratio: LengthRatio | None = None
    """At most X target tokens per source token, plus search.max_length_extra. None: training chooses it so that
    the limit would cut none of its targets."""
    max_length_extra: NonNegativeInt = 10
    batch_size: PositiveInt = 64
    """Sentences or pairs at once; changes speed and memory, not results."""


class Config(Section):
    """Everything that decides a run."""

    name: str = "base"
    seed: Seed = 1
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    search: SearchConfig = SearchConfig()
