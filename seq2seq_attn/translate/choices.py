"""Options of a call that translates: what may be chosen, what the run's configuration fills in, what is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, TypedDict, get_args

from seq2seq_attn.config import (
    LEAST_LENGTH_RATIO,
    MAX_BEAM_SIZE,
    MAX_LENGTH_PENALTY,
    MAX_LENGTH_RATIO,
    SearchConfig,
)
from seq2seq_attn.errors import UsageError

Unk = Literal["keep", "copy", "forbid"]
"""an unknown token in a translation: left as `<unk>`, replaced by the source token it looked at most, never chosen"""


class Choices(TypedDict, total=False):
    """What a call may say, as `Translator.translate` explains it."""

    beam_size: int | None
    length_penalty: float | None
    max_length_ratio: float | None
    batch_size: int | None
    unk: Unk
    keep_attention: bool


@dataclass(frozen=True)
class Options:
    """What a call decided, and the configuration where it left something open."""

    beam_size: int
    n_best: int
    length_penalty: float
    max_length_ratio: float
    max_length_extra: int
    batch_size: int
    unk: Unk
    keep_attention: bool

    def max_length(self, num_source: int) -> int:
        """The most tokens, EOS included, of a translation of that many source tokens."""
        return max(1, int(self.max_length_ratio * num_source) + self.max_length_extra)


def resolve_choices(choices: Choices, n_best: int, search: SearchConfig) -> Options:
    """What the call says, the rest as configured; checked.

    Raises:
        UsageError: a value outside what is allowed.
    """
    beam_size, batch_size = choices.get("beam_size"), choices.get("batch_size")
    length_penalty, ratio = choices.get("length_penalty"), choices.get("max_length_ratio")
    if ratio is None:
        ratio = search.max_length_ratio
    options = Options(
        beam_size=search.beam_size if beam_size is None else beam_size,
        n_best=n_best,
        length_penalty=search.length_penalty if length_penalty is None else length_penalty,
        max_length_ratio=LEAST_LENGTH_RATIO if ratio is None else ratio,
        max_length_extra=search.max_length_extra,
        batch_size=search.batch_size if batch_size is None else batch_size,
        unk=choices.get("unk", "keep"),
        keep_attention=choices.get("keep_attention", True),
    )
    _check(options)
    return options


def _check(options: Options) -> None:
    for name, value, most in (
        ("beam_size", options.beam_size, MAX_BEAM_SIZE),
        ("batch_size", options.batch_size, None),
        ("n_best", options.n_best, None),
    ):
        if not isinstance(value, Integral) or value < 1 or (most is not None and value > most):
            allowed = "1 or more" if most is None else f"1 to {most}"
            raise UsageError(f"{name}={value!r}: expected a whole number, {allowed}")
    penalty = options.length_penalty
    if not isinstance(penalty, Real) or not abs(penalty) <= MAX_LENGTH_PENALTY:  # not <=: NaN too
        allowed = f"a number from {-MAX_LENGTH_PENALTY:g} to {MAX_LENGTH_PENALTY:g}"
        raise UsageError(f"length_penalty={penalty!r}: expected {allowed}")
    ratio = options.max_length_ratio
    if not isinstance(ratio, Real) or not 0 < ratio <= MAX_LENGTH_RATIO:
        raise UsageError(f"max_length_ratio={ratio!r}: expected a number above 0, up to {MAX_LENGTH_RATIO:g}")
    if options.n_best > options.beam_size:
        raise UsageError(f"n_best={options.n_best}: expected 1 to the beam size, which is {options.beam_size}")
    if options.unk not in get_args(Unk):
        raise UsageError(f"unk={options.unk!r}: expected one of {', '.join(get_args(Unk))}")
