"""Surface ids of pairs that a test writes as ids."""

from __future__ import annotations

from collections.abc import Sequence

from seq2seq_attn.data.surface import Surface, surface_of_tokens
from seq2seq_attn.text.vocab import SPECIALS, Vocab


def surface_of(source: Sequence[int], target: Sequence[int], num_ids: int) -> Surface:
    """The surface ids of a pair of ids. Those from `num_ids` on are tokens that the target vocabulary lacks, and equal
    tokens have equal ids on both sides."""
    vocab = Vocab([*SPECIALS, *map(str, range(len(SPECIALS), num_ids))])
    return surface_of_tokens([*map(str, source)], [*map(str, target)], vocab)
