"""The GRUs of the decoders that fast paths know: `bahdanau`, and `conditional`, which has two."""

from __future__ import annotations

from typing import cast

from seq2seq_attn.model.cell.gru import GRU
from seq2seq_attn.model.decoder.bahdanau import Bahdanau
from seq2seq_attn.model.decoder.base import Decoder
from seq2seq_attn.model.decoder.conditional import Conditional


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
