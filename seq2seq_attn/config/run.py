"""The settings of a run: names, types, limits and defaults, by section. Defaults are set nowhere else."""

from __future__ import annotations

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
    """Translation."""

    beam_size: BeamSize = 5
    """Hypotheses kept per sentence; 1 is greedy."""
    length_penalty: LengthPenalty = 0.0
    """Rank hypotheses by log P / length ** `length_penalty`, with the length in target tokens including EOS."""
    coverage_penalty: CoveragePenalty = 0.0
    """Add `coverage_penalty` * sum_j log min(total attention to source position j, 1) to the rank."""
    no_repeat_ngram: NonNegativeInt = 0
    """Length of the n-grams that must not occur twice in a translation, or in a segment of it if the source is so long
    that it is split. 0: no such rule."""
    max_length_ratio: LengthRatio | None = None
    """Translations have at most `max_length_ratio` * source tokens + `max_length_extra` tokens. None: training chooses
    it so that the limit would cut none of its targets."""
    max_length_extra: NonNegativeInt = 10
    batch_size: PositiveInt = 64


class Config(Section):
    """Everything that decides a run."""

    name: str = "base"
    seed: Seed = 1
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    search: SearchConfig = SearchConfig()
