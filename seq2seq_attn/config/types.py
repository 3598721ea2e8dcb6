"""Sections of the configuration, and the types of their settings: bounded numbers, and the options
of variants.

Every number is finite, and most are bounded, so that a typo (`1e9` for `1e3`) is reported. `true`
is not a number.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, StringConstraints
from pydantic_core import PydanticKnownError

MAX_LENGTH_RATIO = 1_000.0
"""Target tokens per source token."""
LEAST_LENGTH_RATIO = 2.0
"""Lower bound of the length limit that training chooses for translations."""


class Section(BaseModel):
    """A section of the configuration. Unknown keys are errors; values are checked on assignment
    too."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    def flat(self, *, exclude_unset: bool = False) -> dict[str, Any]:
        """All settings as plain values, dotted key to value; with `exclude_unset`, only those that
        were given."""
        return _flatten(self.model_dump(mode="json", exclude_unset=exclude_unset))

    def changes_to(self, other: Self) -> dict[str, tuple[Any, Any]]:
        """The settings that differ: dotted key to own and other value. A value is None where there
        is none."""
        old = self.flat()
        new = other.flat()
        changes = {}
        for key in old | new:
            if old.get(key) != new.get(key):
                changes[key] = (old.get(key), new.get(key))
        return changes


def _flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _reject_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticKnownError("float_type")
    return value


def _expand_home(value: Any) -> Any:
    return os.path.expanduser(value) if isinstance(value, str) else value


def _split_at_commas(value: Any) -> Any:
    return value.split(",") if isinstance(value, str) else value


FilePath = Annotated[Path, BeforeValidator(_expand_home)]
"""A path; ~ is the home folder."""
TextName = Annotated[str, Field(min_length=1), BeforeValidator(_expand_home)]
"""The prefix, the file or the table of a text; ~ is the home folder."""
_ColumnName = Annotated[
    str, StringConstraints(strip_whitespace=True), Field(min_length=1, coerce_numbers_to_str=True)
]
ColumnNames = Annotated[list[_ColumnName], BeforeValidator(_split_at_commas)]
"""Numbers, from 1, or names of columns, as a list or separated by commas."""
LanguageCode = Annotated[str, Field(pattern=r"^[A-Za-z]{1,8}([-_][A-Za-z]{1,8})*$")]
"""Also used in file names."""
Whole = Annotated[int, BeforeValidator(_reject_bool)]
Real = Annotated[float, BeforeValidator(_reject_bool), Field(allow_inf_nan=False)]

PositiveInt = Annotated[Whole, Field(ge=1, le=2**31 - 1)]
NonNegativeInt = Annotated[Whole, Field(ge=0, le=2**31 - 1)]
PositiveFloat = Annotated[Real, Field(gt=0.0)]
NonNegativeFloat = Annotated[Real, Field(ge=0.0)]
Temperature = Annotated[Real, Field(ge=0.01, le=100.0)]
"""Temperature of a softmax; scores are divided by it."""
Size = Annotated[Whole, Field(ge=1, le=65_536)]
"""Width of a layer; a GRU's recurrent matrix of the largest size has 13 billion weights."""
NumLayers = Annotated[Whole, Field(ge=1, le=100)]
NumProcesses = Annotated[Whole, Field(ge=1, le=1_024)]
NumThreads = Annotated[Whole, Field(ge=1, le=1_024)]
VocabSize = Annotated[Whole, Field(ge=1, le=1_000_000)]
"""Vocabulary of SentencePiece, which would run for hours with billions."""
Seed = Annotated[Whole, Field(ge=0, le=2**63 - 1)]
NumSamples = Annotated[Whole, Field(ge=1, le=10_000)]
"""Samples per sentence; they are drawn at once."""
BeamSize = Annotated[Whole, Field(ge=1, le=1_000)]
"""More hypotheses per sentence exceed the memory without improving BLEU."""
LengthPenalty = Annotated[Real, Field(ge=-10.0, le=10.0)]
CoveragePenalty = Annotated[Real, Field(ge=0.0, le=10.0)]
Probability = Annotated[Real, Field(ge=0.0, le=1.0)]
Fraction = Annotated[Real, Field(ge=0.0, lt=1.0)]
DropoutRate = Annotated[Real, Field(ge=0.0, le=0.99)]
"""At most 0.99, since the CPU rounds rates to multiples of 1/65,536."""
LearningRate = Annotated[Real, Field(gt=0.0, le=100.0)]
LengthRatio = Annotated[Real, Field(gt=0.0, le=MAX_LENGTH_RATIO)]
"""Target tokens per source token."""
RatioOfLengths = Annotated[Real, Field(ge=1.0, le=MAX_LENGTH_RATIO)]
"""Tokens of the longer side per token of the shorter one."""
Weight = Annotated[Real, Field(ge=0.0, le=1e9)]

_Scalar: TypeAlias = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str | None
Options = dict[str, _Scalar | list[_Scalar]]
"""A variant's settings, of types that survive YAML. The variant's `build` checks their names."""
NestedOptions = dict[str, _Scalar | list[_Scalar] | dict[str, JsonValue]]
"""Settings that may hold variants with settings of their own, `{name, options}`."""
