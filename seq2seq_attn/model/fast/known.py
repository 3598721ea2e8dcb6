"""The attentions, and the GRUs of the decoders, that fast paths know: `bahdanau`, and `conditional`, which has two.

Shapes: H query size, A scoring size.
"""

from typing import NamedTuple, cast

from torch import Tensor

from seq2seq_attn.model.attention.additive import Additive
from seq2seq_attn.model.attention.base import Attention
from seq2seq_attn.model.attention.bilinear import Bilinear
from seq2seq_attn.model.attention.dot import Dot
from seq2seq_attn.model.attention.fixed import Fixed
from seq2seq_attn.model.attention.initial import InitialOnly
from seq2seq_attn.model.attention.key_value import KeyValue
from seq2seq_attn.model.attention.scaled_dot import ScaledDot
from seq2seq_attn.model.attention.slots import Slots
from seq2seq_attn.model.attention.uniform import Uniform
from seq2seq_attn.model.cell.gru import GRU
from seq2seq_attn.model.decoder.bahdanau import Bahdanau
from seq2seq_attn.model.decoder.base import Decoder
from seq2seq_attn.model.decoder.conditional import Conditional
from seq2seq_attn.model.normalizer import softmax


class AdditiveScore(NamedTuple):
    """v . tanh(keys + W q)."""

    query_weight_AH: Tensor
    score_weight_A: Tensor


class DotScore(NamedTuple):
    """scale * keys . W q, or scale * keys . q (keys of size H) without a weight."""

    scale: float
    query_weight_AH: Tensor | None = None


class FixedContext(NamedTuple):
    """The context is the same at every step."""


Score = AdditiveScore | DotScore | FixedContext
KNOWN = (Additive, Bilinear, Dot, Fixed, InitialOnly, KeyValue, ScaledDot, Slots, Uniform)


def known_score(attention: Attention) -> Score | None:
    """The score of a variant; None if there is no fast path for it, or its normalizer is not softmax. A subclass
    has none, as its step may differ."""
    if type(attention) not in KNOWN:
        return None
    if isinstance(attention, Fixed | InitialOnly | Uniform):
        return FixedContext()
    if getattr(attention, "normalizer", None) is not softmax.weights:
        return None
    if isinstance(attention, Additive | KeyValue | Slots):
        return AdditiveScore(attention.query_projection.weight, attention.score_weight_A)
    if isinstance(attention, ScaledDot):
        return DotScore(attention.scale, attention.query_projection.weight)
    return DotScore(1.0)


def has_known_cells(decoder: Decoder) -> bool:
    """Whether it is one of these decoders, with GRUs of one layer. A subclass is not, as its step may differ."""
    if type(decoder) is Conditional:
        return type(decoder.first_cell) is GRU and type(decoder.second_cell) is GRU
    return type(decoder) is Bahdanau and type(decoder.cell) is GRU


def token_cell(decoder: Bahdanau | Conditional) -> GRU | None:
    """The cell that reads the previous token before attention is queried; None: there is no such cell."""
    return cast(GRU, decoder.first_cell) if isinstance(decoder, Conditional) else None


def context_cell(decoder: Bahdanau | Conditional) -> GRU:
    """The cell that reads the context."""
    return cast(GRU, decoder.second_cell if isinstance(decoder, Conditional) else decoder.cell)
