"""The options of a search: one model for the configuration, the command line and the Python API."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from seq2seq_attn.config.types import (
    LEAST_LENGTH_RATIO,
    BeamSize,
    CoveragePenalty,
    LengthPenalty,
    LengthRatio,
    NonNegativeInt,
    NumSamples,
    Options,
    PositiveInt,
    Real,
    Section,
    Seed,
    Temperature,
)

TopP = Annotated[Real, Field(gt=0.0, le=1.0)]


class SearchConfig(Section):
    """Translation. N and X stand for the value. A method ignores the options that it has no use
    for. Some [search methods](mechanisms.md#search-methods) have more options, as keys of this
    section."""

    # options of a method are checked by its own model (`search/base.py`); docstrings are the help
    # of the commands
    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)

    method: str = "beam"
    """How to search."""
    beam_size: BeamSize = 5
    """Hypotheses kept per sentence; 1 is greedy."""
    n_best: NumSamples = 1
    """Translations per sentence; above 1, each is a line: line number ||| text ||| log P |||
    score."""
    length_penalty: LengthPenalty = 0.0
    """Rank hypotheses by log P / length ** X, with the length in target tokens including EOS."""
    coverage_penalty: CoveragePenalty = 0.0
    """Weight of the penalty for source tokens whose total attention is below 1: X * sum_j log
    min(attention to source position j, 1) is added to the rank."""
    no_repeat_ngram: NonNegativeInt = 0
    """Never repeat an N-gram of tokens in a translation, or in a segment of it if the source is so
    long that it is split; 0: off."""
    max_length_ratio: LengthRatio | None = None
    """At most X target tokens per source token, plus search.max_length_extra. None: training
    chooses it so that the limit would cut none of its targets."""
    max_length_extra: NonNegativeInt = 10
    unk: Literal["keep", "copy", "forbid"] = "keep"
    """Unknown words: keep <unk>, copy the source token with the most attention, or never write
    it."""
    prefix: str = ""
    """Text that every translation starts with; subwords may continue its last word."""
    num_samples: NumSamples = 32
    """Samples per sentence for mbr."""
    temperature: Temperature = 1.0
    """Temperature of samples; below 1 sharpens the distribution."""
    top_k: NonNegativeInt = 0
    """Sample from the N most probable tokens only; 0: all."""
    top_p: TopP = 1.0
    """Sample from the most probable tokens with total probability X."""
    seed: Seed = 1
    """Seed of the samples."""
    scorers: dict[str, Options] = {}
    """Scorers by name, with their options: each changes what ranks the next tokens."""
    batch_size: PositiveInt = 64
    """Sentences or pairs at once; changes speed and memory, not results."""

    @property
    def rows_per_sentence(self) -> int:
        """Rows of a batch that the search makes of a sentence before it starts: above 1 if it draws
        samples."""
        return 1

    @property
    def length_ratio(self) -> float:
        """`max_length_ratio`, or `LEAST_LENGTH_RATIO` if the configuration sets none."""
        return LEAST_LENGTH_RATIO if self.max_length_ratio is None else self.max_length_ratio

    def max_length(self, num_source: int) -> int:
        """The maximum number of target tokens, EOS included, for a source of this length."""
        return max(1, int(self.length_ratio * num_source) + self.max_length_extra)
