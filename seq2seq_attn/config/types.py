"""The base class of configuration sections, and the types of settings: bounded numbers, names of
files, and options of variants.

Every number is finite, and most numbers are bounded, so that a typo (`1e9` for `1e3`) is reported.
`true` is not accepted as a number.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, StringConstraints
from pydantic_core import PydanticKnownError

MAX_LENGTH_RATIO = 1_000.0
"""The upper bound of settings that are ratios of lengths in tokens."""
LEAST_LENGTH_RATIO = 2.0
"""The minimum of the length ratio, in target tokens per source token, that training chooses as the
limit for translations."""


class Section(BaseModel):
    """A section of the configuration. Unknown keys are errors. Values are also checked on
    assignment."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    def flat(self, *, exclude_unset: bool = False) -> dict[str, Any]:
        """Return all settings as plain values by dotted key. With `exclude_unset`, settings that
        were not set explicitly are left out."""
        return _flatten(self.model_dump(mode="json", exclude_unset=exclude_unset))

    def changes_to(self, other: Self) -> dict[str, tuple[Any, Any]]:
        """Return the settings that differ, by dotted key: the value of `self` and the value of
        `other`. A value is None if a section lacks the key."""
        old = self.flat()
        new = other.flat()
        changes = {}
        for key in old | new:
            if old.get(key) != new.get(key):
                changes[key] = (old.get(key), new.get(key))
        return changes


def _flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested mappings by dotted key."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        # A scorer without options is a setting too.
        if isinstance(value, dict) and (value or not prefix.endswith(".scorers.")):
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
"""A path, in which ~ stands for the home folder."""
TextName = Annotated[str, Field(min_length=1), BeforeValidator(_expand_home)]
"""The prefix, file or table of a text. ~ stands for the home folder."""
_ColumnName = Annotated[
    str, StringConstraints(strip_whitespace=True), Field(min_length=1, coerce_numbers_to_str=True)
]
ColumnNames = Annotated[list[_ColumnName], BeforeValidator(_split_at_commas)]
"""Names of columns, or their numbers from 1, as a list or as a text separated by commas."""
LanguageCode = Annotated[str, Field(pattern=r"^[A-Za-z]{1,8}([-_][A-Za-z]{1,8})*$")]
"""A language code. File names contain it, so it must not contain dots or slashes."""
Whole = Annotated[int, BeforeValidator(_reject_bool)]
Real = Annotated[float, BeforeValidator(_reject_bool), Field(allow_inf_nan=False)]

PositiveInt = Annotated[Whole, Field(ge=1, le=2**31 - 1)]
NonNegativeInt = Annotated[Whole, Field(ge=0, le=2**31 - 1)]
PositiveFloat = Annotated[Real, Field(gt=0.0)]
NonNegativeFloat = Annotated[Real, Field(ge=0.0)]
Temperature = Annotated[Real, Field(ge=0.01, le=100.0)]
"""The temperature of a softmax, by which scores are divided."""
Size = Annotated[Whole, Field(ge=1, le=65_536)]
"""The width of a layer. The recurrent matrix of a GRU of the maximum width has 13 billion
parameters."""
NumLayers = Annotated[Whole, Field(ge=1, le=100)]
NumWorkers = Annotated[Whole, Field(ge=1, le=1_024)]
"""A number of processes or threads."""
VocabSize = Annotated[Whole, Field(ge=1, le=1_000_000)]
"""The size of a SentencePiece vocabulary. SentencePiece would run for hours with billions."""
Seed = Annotated[Whole, Field(ge=0, le=2**63 - 1)]
NumSamples = Annotated[Whole, Field(ge=1, le=1_000)]
"""The number of samples per sentence. It is bounded because all samples are drawn at once."""
BeamSize = Annotated[Whole, Field(ge=1, le=1_000)]
"""The number of hypotheses per sentence. More hypotheses exceed the memory and do not improve
BLEU."""
ExtraLength = Annotated[Whole, Field(ge=0, le=1_000)]
"""A number of target tokens beyond the length ratio."""
Prefix = Annotated[str, Field(max_length=1_000)]
"""A text that every translation starts with. The length is bounded, because a run from an untrusted
source may set the prefix too."""
LengthPenalty = Annotated[Real, Field(ge=-10.0, le=10.0)]
CoveragePenalty = Annotated[Real, Field(ge=0.0, le=10.0)]
Probability = Annotated[Real, Field(ge=0.0, le=1.0)]
Fraction = Annotated[Real, Field(ge=0.0, lt=1.0)]
DropoutRate = Annotated[Real, Field(ge=0.0, le=0.99)]
"""A dropout rate. It is at most 0.99, because the CPU rounds rates to multiples of 1/65,536."""
LearningRate = Annotated[Real, Field(gt=0.0, le=100.0)]
LengthRatio = Annotated[Real, Field(gt=0.0, le=MAX_LENGTH_RATIO)]
"""A number of target tokens per source token."""
RatioOfLengths = Annotated[Real, Field(ge=1.0, le=MAX_LENGTH_RATIO)]
"""A number of tokens of the longer side per token of the shorter side."""
Weight = Annotated[Real, Field(ge=0.0, le=1e9)]

_Scalar: TypeAlias = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str | None
Options = dict[str, _Scalar | list[_Scalar]]
"""The options of a variant, with types that YAML can represent. The variant's `build` checks the
names of the options."""
NestedOptions = dict[str, _Scalar | list[_Scalar] | dict[str, JsonValue]]
"""Options of a variant that may contain further variants with options, as `{name, options}`."""
