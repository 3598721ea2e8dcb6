"""The options of a search: one model for the configuration, the command line and the Python API."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from seq2seq_attn.config.types import (
    LEAST_LENGTH_RATIO,
    BeamSize,
    CoveragePenalty,
    ExtraLength,
    LengthPenalty,
    LengthRatio,
    NonNegativeInt,
    NumSamples,
    Options,
    PositiveInt,
    Prefix,
    Real,
    Section,
    Seed,
    Temperature,
)

TopP = Annotated[Real, Field(gt=0.0, le=1.0)]


class SearchConfig(Section):
    """Translation. In the descriptions, N and X stand for the value of the option. A search method
    ignores options that it does not use. Some [search methods](mechanisms.md#search-methods) have
    more options, as keys of this section."""

    # Extra keys are allowed, because search methods check their additional options themselves
    # (`search/base.py`).
    # The docstrings of fields are the help of command-line options.
    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)

    method: str = "beam"
    """The search method."""
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
    max_length_extra: ExtraLength = 10
    unk: Literal["pass", "keep", "copy", "forbid"] = "pass"
    """Unknown words: pass them through unchanged; or let the model translate them and keep <unk>,
    copy the source token with the most attention in its place, or never write <unk>."""
    prefix: Prefix = ""
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
    """Options of scorers by scorer name. A scorer changes the scores that rank the next tokens."""
    batch_size: PositiveInt = 64
    """Sentences or pairs at once; changes speed and memory, not results."""

    @property
    def rows_per_sentence(self) -> int:
        """Return the number of rows per sentence in the batch with which the search starts. The
        number is above 1 if the search draws samples."""
        return 1

    @property
    def length_ratio(self) -> float:
        """Return `max_length_ratio`, or `LEAST_LENGTH_RATIO` if `max_length_ratio` is None."""
        return LEAST_LENGTH_RATIO if self.max_length_ratio is None else self.max_length_ratio

    def max_length(self, num_source: int) -> int:
        """Return the maximum number of target tokens, EOS included, for `num_source` source
        tokens."""
        return max(1, int(self.length_ratio * num_source) + self.max_length_extra)
