"""Surface ids: tokens by their spelling, in terms of the target vocabulary, for outputs that copy source tokens.

    surface(y) = its id in the target vocabulary            if it has one
               = V + j, j the first source position with that spelling, otherwise
               = UNK                                         if no source position has it

V is the size of the target vocabulary. An id from V on thus names a source position of its own sentence (See, Liu,
Manning 2017, section 2.2, call these the extended vocabulary); a search can read the token off the source. With the
target tokenizer `positions`, source tokens are spelled "1", "2", ... on the target side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.vocab import UNK, Vocab

POSITIONS = "positions"
IdArray = npt.NDArray[np.int32]
Ids = IdArray | Sequence[int]


class Surface(NamedTuple):
    """The surface ids of a sentence pair, without specials."""

    source: Ids
    target: Ids


def surface_of_tokens(source: Sequence[str], target: Sequence[str], target_vocab: Vocab) -> Surface:
    """The surface ids of a pair. The source is spelled as on the target side (`spell_source`)."""
    source_ids, target_ids = target_vocab.ids_of(source), target_vocab.ids_of(target)
    first: dict[str, int] = {}
    for position, token in enumerate(source):
        if source_ids[position] == UNK:
            source_ids[position] = first.setdefault(token, len(target_vocab) + position)
    if first:
        target_ids = [first.get(token, UNK) if i == UNK else i for token, i in zip(target, target_ids, strict=True)]
    return Surface(source_ids, target_ids)


def spell_source(source: Sequence[str], target_tokenizer: Tokenizer) -> Sequence[str]:
    """The source tokens as they are spelled on the target side."""
    if target_tokenizer.name != POSITIONS:
        return source
    return [str(number) for number in range(1, len(source) + 1)]
