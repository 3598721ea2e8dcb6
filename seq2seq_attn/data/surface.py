"""Surface ids: tokens by their spelling, in terms of the target vocabulary, for outputs that copy source tokens.

    surface(y) = its id in the target vocabulary            if it has one
               = V + j, j the first source position with that spelling, otherwise
               = UNK                                         if no source position has it

V is the size of the target vocabulary. An id from V on thus names a source position of its own sentence (See, Liu,
Manning 2017, section 2.2, call these the extended vocabulary); a search can read the token off the source. With the
target tokenizer `positions`, source tokens are spelled "1", "2", ... on the target side.

Surface ids are computed from open ids, which a prepared corpus holds: there a token that a vocabulary lacks has the id
V, V + 1, ... in order of first appearance, the same for the same spelling (`Vocab.ids_of` with `beyond`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_attn.data.array_file import load_array
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.vocab import UNK, Vocab

POSITIONS = "positions"
_NO_TARGET = 1 << 30
"""the first open id beyond those of target tokens"""
IdArray = npt.NDArray[np.int32]
Ids = IdArray | Sequence[int]


class Surface(NamedTuple):
    """The surface ids of a sentence pair, without specials."""

    source: Ids
    target: Ids


def surface_of(source: Ids, target: Ids, num_ids: int) -> Surface:
    """The surface ids of a pair from its open ids, both sides numbered alike; `num_ids` is V."""
    return Surface(_at_positions(source, source, num_ids), _at_positions(target, source, num_ids))


def surface_of_tokens(source: Sequence[str], target: Sequence[str], target_vocab: Vocab) -> Surface:
    """The surface ids of a pair of texts."""
    beyond: dict[str, int] = {}
    return surface_of(target_vocab.ids_of(source, beyond), target_vocab.ids_of(target, beyond), len(target_vocab))


def spell_source(source: Sequence[str], target_tokenizer: Tokenizer) -> Sequence[str]:
    """The source tokens as they are spelled on the target side."""
    if target_tokenizer.name != POSITIONS:
        return source
    return [str(number) for number in range(1, len(source) + 1)]


def _at_positions(ids: Ids, source: Ids, num_ids: int) -> Ids:
    if not len(ids) or np.max(ids) < num_ids:
        return ids
    first: dict[int, int] = {}
    for position, open_id in enumerate(source):
        first.setdefault(int(open_id), num_ids + position)
    return [int(i) if i < num_ids else first.get(int(i), UNK) for i in ids]


class Spellings:
    """The sizes of both vocabularies, and which source and target tokens are spelled alike."""

    def __init__(self, path: Path, num_source_ids: int, num_target_ids: int) -> None:
        """`path`: a flat int32 file that gives for each open id of the source side that of the target side."""
        self.num_source_ids, self.num_target_ids = num_source_ids, num_target_ids
        self._path = path

    @cached_property
    def _to_target(self) -> IdArray:
        return load_array(self._path, np.int32)

    def on_target_side(self, source: IdArray) -> IdArray:
        """The target side's open ids of the same tokens."""
        return self._to_target[source]


class Positions(Spellings):
    """`Spellings` where source tokens are spelled by their numbers."""

    def __init__(self, num_source_ids: int, target_vocab: Vocab) -> None:
        self.num_source_ids, self.num_target_ids = num_source_ids, len(target_vocab)
        self._vocab = target_vocab

    def on_target_side(self, source: IdArray) -> IdArray:
        """See `Spellings.on_target_side`. A number that the target vocabulary lacks has an open id that no target token
        has."""
        ids = [self._vocab.id_of(str(number)) for number in range(1, len(source) + 1)]
        return np.array([_NO_TARGET + number if i == UNK else i for number, i in enumerate(ids)], dtype=np.int32)
