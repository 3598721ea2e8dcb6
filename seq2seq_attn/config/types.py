"""Types of settings: bounded numbers, and the options of variants.

Every number is finite, and most are bounded, so that a typo (`1e9` for `1e3`) is reported. `true` is not a number.
"""

import os
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, JsonValue
from pydantic_core import PydanticKnownError

MAX_COUNT = 2**31 - 1
MAX_SIZE = 65_536
"""Maximum width of a layer; a GRU's recurrent matrix of this size has 13 billion weights."""
MAX_LAYERS = 100
MAX_VOCAB = 1_000_000
"""Maximum vocabulary of SentencePiece, which would run for hours with billions."""
MAX_THREADS = 1_024
MAX_SEED = 2**63 - 1
MAX_BEAM_SIZE = 1_000
"""More hypotheses per sentence exceed the memory without improving BLEU."""
MAX_SAMPLES = 10_000
"""Samples per sentence; they are drawn at once."""
MAX_LENGTH_PENALTY = 10.0
"""The penalty may be negative."""
MAX_LENGTH_RATIO = 1_000.0
"""Target tokens per source token."""
LEAST_LENGTH_RATIO = 2.0
"""Lower bound of the length limit that training chooses for translations."""


def _reject_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticKnownError("float_type")
    return value


def _expand_home(value: Any) -> Any:
    return os.path.expanduser(value) if isinstance(value, str) else value


FilePath = Annotated[Path, BeforeValidator(_expand_home)]
"""A path; ~ is the home folder."""
TextName = Annotated[str, Field(min_length=1), BeforeValidator(_expand_home)]
"""The prefix, the file or the table of a text; ~ is the home folder."""
Whole = Annotated[int, BeforeValidator(_reject_bool)]
Real = Annotated[float, BeforeValidator(_reject_bool), Field(allow_inf_nan=False)]

PositiveInt = Annotated[Whole, Field(ge=1, le=MAX_COUNT)]
NonNegativeInt = Annotated[Whole, Field(ge=0, le=MAX_COUNT)]
PositiveFloat = Annotated[Real, Field(gt=0.0)]
NonNegativeFloat = Annotated[Real, Field(ge=0.0)]
Temperature = Annotated[Real, Field(ge=0.01, le=100.0)]
"""Temperature of a softmax; scores are divided by it."""
Size = Annotated[Whole, Field(ge=1, le=MAX_SIZE)]
"""Width of a layer."""
LanguageCode = Annotated[str, Field(pattern=r"^[A-Za-z]{1,8}([-_][A-Za-z]{1,8})*$")]
"""Also used in file names."""
NumLayers = Annotated[Whole, Field(ge=1, le=MAX_LAYERS)]
NumProcesses = Annotated[Whole, Field(ge=1, le=MAX_THREADS)]
NumThreads = Annotated[Whole, Field(ge=1, le=MAX_THREADS)]
VocabSize = Annotated[Whole, Field(ge=1, le=MAX_VOCAB)]
Seed = Annotated[Whole, Field(ge=0, le=MAX_SEED)]
NumSamples = Annotated[Whole, Field(ge=1, le=MAX_SAMPLES)]
BeamSize = Annotated[Whole, Field(ge=1, le=MAX_BEAM_SIZE)]
LengthPenalty = Annotated[Real, Field(ge=-MAX_LENGTH_PENALTY, le=MAX_LENGTH_PENALTY)]
CoveragePenalty = Annotated[Real, Field(ge=0.0, le=MAX_LENGTH_PENALTY)]
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
