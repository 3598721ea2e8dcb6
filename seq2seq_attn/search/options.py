"""Search options: one object from the command line to the beam.

`SearchOptions` adds the options of a single call to the configuration's search settings. The limits are in the fields'
types.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError, model_validator

from seq2seq_attn.config import LEAST_LENGTH_RATIO, SearchConfig
from seq2seq_attn.config.explain import explain
from seq2seq_attn.config.types import NonNegativeInt, NumSamples, Real, Seed, Temperature
from seq2seq_attn.errors import UsageError

Unk = Literal["keep", "copy", "forbid"]
Method = Literal["beam", "sample", "mbr"]
TopP = Annotated[Real, Field(gt=0.0, le=1.0)]
_UNREAD: dict[Method, tuple[str, ...]] = {
    "beam": (),
    "sample": ("beam_size", "coverage_penalty"),
    "mbr": ("beam_size", "coverage_penalty", "length_penalty"),
}
"""options that a method ignores; `sample` still reads `length_penalty`, for the score that it reports"""
_OF_SAMPLES = ("temperature", "top_k", "top_p", "seed", "num_samples")


class SearchOptions(SearchConfig):
    """Search settings of a call. Options that were not given have their defaults or, after `over`, a run's settings."""

    model_config = ConfigDict(frozen=True)

    n_best: NumSamples = 1
    """Translations per sentence; above 1, each is a line: line number ||| text ||| log P ||| score."""
    unk: Unk = "keep"
    """Unknown words: keep <unk>, copy the source token with the most attention, or never write it."""
    keep_attention: bool = True
    """Whether translations come with their attention weights."""
    prefix: str = ""
    """Text that every translation starts with; subwords may continue its last word."""
    method: Method = "beam"
    """beam: beam search; sample: `n_best` random samples; mbr: of `num_samples` samples, the one most similar to the
    others (minimum Bayes risk)."""
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

    @classmethod
    def given(cls, **options: object) -> SearchOptions:
        """The options that are not None.

        Raises:
            UsageError: an unknown option, a value outside its limits, or an option that the method does not have.
        """
        if name := next((name for name in options if name not in cls.model_fields), None):
            nearest = get_close_matches(name, cls.model_fields, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"the options are {', '.join(cls.model_fields)}"
            raise UsageError(f"unknown search option {name!r}; {hint}")
        try:
            given = cls.model_validate({name: value for name, value in options.items() if value is not None})
        except ValidationError as error:
            raise UsageError(explain(error)) from None
        for name in _UNREAD[given.method]:  # here only, as a run has settings for both
            if name in given.model_fields_set:
                value = getattr(given, name)
                raise UsageError(f"{name}={value}: no effect with method {given.method!r}; leave it out")
        return given

    def over(self, search: SearchConfig) -> SearchOptions:
        """These options, with a run's settings for those that were not given.

        Raises:
            UsageError: `n_best` is larger than the beam.
        """
        return SearchOptions(**{**search.model_dump(), **self.model_dump(exclude_unset=True)})

    def max_length(self, num_source: int) -> int:
        """The maximum number of target tokens, EOS included, for a source of this length."""
        return max(1, int(self.length_ratio * num_source) + self.max_length_extra)

    @property
    def length_ratio(self) -> float:
        """`max_length_ratio`, or `LEAST_LENGTH_RATIO` if the configuration sets none."""
        return LEAST_LENGTH_RATIO if self.max_length_ratio is None else self.max_length_ratio

    @property
    def samples_per_sentence(self) -> int:
        """The number of samples drawn per sentence; 1 for beam search."""
        return {"beam": 1, "sample": self.n_best, "mbr": self.num_samples}[self.method]

    @property
    def keeps_weights(self) -> bool:
        """Whether the search must keep attention weights: to return them, or to copy by them."""
        return self.keep_attention or self.unk == "copy"

    @model_validator(mode="after")
    def _check_method(self) -> SearchOptions:
        for name in _OF_SAMPLES if self.method == "beam" else ():
            if name in self.model_fields_set:
                value = getattr(self, name)
                raise UsageError(f"{name}={value}: a beam search draws no samples; choose method 'sample' or 'mbr'")
        if self.method == "sample" and "num_samples" in self.model_fields_set:
            raise UsageError(f"num_samples={self.num_samples}: only method 'mbr' reads it; with 'sample', set n_best")
        return self

    @model_validator(mode="after")
    def _check_n_best(self) -> SearchOptions:
        if self.method == "mbr" and self.n_best > self.num_samples:
            raise UsageError(
                f"n_best={self.n_best}: more than num_samples={self.num_samples}; set a larger num_samples"
            )
        if self.method == "beam" and "beam_size" in self.model_fields_set and self.n_best > self.beam_size:
            raise UsageError(f"n_best={self.n_best}: more than beam_size={self.beam_size}; set a larger beam_size")
        return self


AS_CONFIGURED = SearchOptions()
"""no options given: the run's own settings"""
