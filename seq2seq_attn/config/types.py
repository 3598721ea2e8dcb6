"""Types of settings: numbers with limits, and what an attention's options may hold.

Every number is finite and bounded, so that a slip of the finger (`1e9` for `1e3`) is told instead of computed. `true`
is no number.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticKnownError

from seq2seq_attn.limits import MAX_BEAM_SIZE, MAX_LENGTH_PENALTY, MAX_LENGTH_RATIO

MAX_COUNT = 2**31 - 1
MAX_SIZE = 65_536
"""of a layer: a recurrent matrix of this size has 13 billion weights"""
MAX_LAYERS = 100
MAX_VOCAB = 1_000_000
"""subwords that SentencePiece learns; billions keep it busy for hours"""
MAX_THREADS = 1_024
MAX_CAPTIONS = 1_000_000
"""of a split: so many pairs are generated in minutes, not in days"""
MAX_SEED = 2**63 - 1
LEAST_LENGTH_RATIO = 2.0
"""what training chooses for the length limit of translations is never below this"""


def _whole(value: Any) -> Any:
    """`1e3` is a number too, though a string in YAML 1.1; `true` is not 1."""
    if isinstance(value, bool):
        raise PydanticKnownError("int_type")
    return _number(value)


def _real(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticKnownError("float_type")
    return _number(value)


def _number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


Whole = Annotated[int, BeforeValidator(_whole)]
Real = Annotated[float, BeforeValidator(_real), Field(allow_inf_nan=False)]

PositiveInt = Annotated[Whole, Field(ge=1, le=MAX_COUNT)]
NonNegativeInt = Annotated[Whole, Field(ge=0, le=MAX_COUNT)]
PositiveFloat = Annotated[Real, Field(gt=0.0)]
NonNegativeFloat = Annotated[Real, Field(ge=0.0)]
Size = Annotated[Whole, Field(ge=1, le=MAX_SIZE)]
"""of a layer"""
NumCaptions = Annotated[Whole, Field(ge=1, le=MAX_CAPTIONS)]
NumLayers = Annotated[Whole, Field(ge=1, le=MAX_LAYERS)]
NumThreads = Annotated[Whole, Field(ge=1, le=MAX_THREADS)]
VocabSize = Annotated[Whole, Field(ge=1, le=MAX_VOCAB)]
Seed = Annotated[Whole, Field(ge=0, le=MAX_SEED)]
BeamSize = Annotated[Whole, Field(ge=1, le=MAX_BEAM_SIZE)]
LengthPenalty = Annotated[Real, Field(ge=-MAX_LENGTH_PENALTY, le=MAX_LENGTH_PENALTY)]
Probability = Annotated[Real, Field(ge=0.0, le=1.0)]
Fraction = Annotated[Real, Field(ge=0.0, lt=1.0)]
DropoutRate = Annotated[Real, Field(ge=0.0, le=0.99)]
"""a rate nearer to 1 drops everything: on a CPU rates are rounded to a 65,536th"""
LearningRate = Annotated[Real, Field(gt=0.0, le=100.0)]
LengthRatio = Annotated[Real, Field(gt=0.0, le=MAX_LENGTH_RATIO)]
"""tokens of one side per token of the other"""
Weight = Annotated[Real, Field(ge=0.0, le=1e9)]

_Scalar: TypeAlias = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str | None
Options = dict[str, _Scalar | list[_Scalar]]
"""A variant's own settings, of types that YAML gives back as they were; the variant's `build` knows which it has."""
