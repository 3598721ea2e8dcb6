"""Search options: one object from the command line to the beam.

`SearchOptions` adds the options of a single call to the configuration's search settings. The limits are in the fields'
types.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, ValidationError, model_validator

from seq2seq_attn.config import LEAST_LENGTH_RATIO, PositiveInt, SearchConfig
from seq2seq_attn.config.explain import explain
from seq2seq_attn.errors import UsageError

Unk = Literal["keep", "copy", "forbid"]
"""what to do with an unknown token in a translation: leave `<unk>`, copy the source token with the most attention, or
never choose it"""


class SearchOptions(SearchConfig):
    """Search settings of a call. Options that were not given have their defaults or, after `over`, a run's settings."""

    model_config = ConfigDict(frozen=True)

    n_best: PositiveInt = 1
    """translations returned per sentence"""
    unk: Unk = "keep"
    keep_attention: bool = True
    """whether translations come with their attention weights"""

    @classmethod
    def given(
        cls,
        *,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_length_ratio: float | None = None,
        batch_size: int | None = None,
        unk: Unk | None = None,
        keep_attention: bool | None = None,
    ) -> SearchOptions:
        """The options that are not None.

        Raises:
            UsageError: a value outside its limits.
        """
        values = {name: value for name, value in locals().items() if name != "cls" and value is not None}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise UsageError(explain(error)) from None

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
        """`max_length_ratio`, or a number where the configuration has none."""
        return LEAST_LENGTH_RATIO if self.max_length_ratio is None else self.max_length_ratio

    @property
    def keeps_weights(self) -> bool:
        """Whether the search must keep attention weights: to return them, or to copy by them."""
        return self.keep_attention or self.unk == "copy"

    @model_validator(mode="after")
    def _check_n_best(self) -> SearchOptions:
        if "beam_size" in self.model_fields_set and self.n_best > self.beam_size:
            raise UsageError(f"n_best={self.n_best}: expected 1 to the beam size, which is {self.beam_size}")
        return self


AS_CONFIGURED = SearchOptions()
"""no options given: the run's own settings"""
