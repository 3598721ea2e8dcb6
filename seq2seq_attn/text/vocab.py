"""The vocabulary maps tokens to ids and ids to tokens. Only this module uses torchtext's `Vocab`.

An output layer that copies source tokens scores ids of the extended vocabulary (See, Liu, Manning
2017, section 2.2):

    extended(y) = the id of y in the target vocabulary       if y has an id
                = V + j, j the first source position of y    if y occurs in the source only
                = UNK                                        otherwise

V is the size of the target vocabulary. So an id from V on names a position of the source sentence,
and a search reads the token from the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import Read, read_json, read_regular, write_json
from seq2seq_attn.runtime.extras import require
from seq2seq_attn.text.marks import SOURCE_END

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
IdArray = npt.NDArray[np.int32]
Ids = IdArray | Sequence[int]


class Vocab:
    """An immutable bijection between tokens and ids.

    Unknown tokens map to `UNK`, and so does text that is spelled like a special token (`<pad>`).
    `SOURCE_END`, which ends a column or a sentence of the source, maps to `EOS`.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        """Store the tokens in the order of their ids, special tokens first.

        Raises:
            ValueError: the special tokens are not first, or a token occurs twice.
        """
        self._tokens = tuple(tokens)
        first = self._tokens[: len(SPECIALS)]
        if first != SPECIALS:
            raise ValueError(f"a vocabulary starts with {' '.join(SPECIALS)}, got {first}")
        ids = {token: number for number, token in enumerate(self._tokens)}
        if len(ids) < len(self._tokens):
            twice = Counter(self._tokens).most_common(1)[0][0]
            raise ValueError(f"token {twice!r} occurs twice")
        for special in SPECIALS:  # text spelled like a special token must be unknown
            del ids[special]
        self._ids = {SOURCE_END: EOS, **ids}

    @property
    def tokens(self) -> list[str]:
        """Return all tokens in the order of their ids, special tokens first."""
        return list(self._tokens)

    def __len__(self) -> int:
        """Return the number of ids, including special tokens."""
        return len(self._tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocab) and self._tokens == other._tokens

    def __hash__(self) -> int:
        return hash(self._tokens)

    def __repr__(self) -> str:
        return f"Vocab({len(self)} tokens)"

    def __contains__(self, token: object) -> bool:
        """Return whether a token has an id. Text that is spelled like a special token has no id."""
        return token in self._ids

    def ids_of(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of tokens, with `UNK` for unknown tokens."""
        return list(map(self._ids.get, tokens, repeat(UNK)))

    def tokens_of(self, ids: Iterable[int], beyond: Sequence[str] = ()) -> list[str]:
        """Return the tokens of ids. A special token is returned by its name, and an id i from
        `len(self)` on is `beyond[i - len(self)]`."""
        size = len(self)
        return [self._tokens[i] if i < size else beyond[i - size] for i in ids]

    def save(self, path: Path) -> None:
        """Write the tokens in the order of ids, as a JSON list with one token per line."""
        write_json(path, self._tokens)

    @classmethod
    def load(cls, path: Path, read: Read = read_regular) -> Vocab:
        """Load a file that `save` wrote. `read` returns the bytes of the file.

        Raises:
            UserError: the file is missing or is not a vocabulary.
        """
        tokens = read_json(path, read)
        try:
            return cls(map(str, tokens))
        except (TypeError, ValueError) as error:  # the file may hold any values
            raise UserError(f"{path}: not a vocabulary file ({error})") from None


class ExtendedIds(NamedTuple):
    """The ids of a sentence pair in the extended vocabulary, without special tokens."""

    source: Ids
    target: Ids


def extended_ids(source: Sequence[str], target: Sequence[str], target_vocab: Vocab) -> ExtendedIds:
    """Return the extended ids of a sentence pair. The source tokens are spelled as on the target
    side (`Tokenizer.spell_source`)."""
    source_ids = target_vocab.ids_of(source)
    target_ids = target_vocab.ids_of(target)
    first: dict[str, int] = {}
    for position, token in enumerate(source):
        if source_ids[position] == UNK:
            source_ids[position] = first.setdefault(token, len(target_vocab) + position)
    if first:
        for position, token in enumerate(target):
            if target_ids[position] == UNK:
                target_ids[position] = first.get(token, UNK)
    return ExtendedIds(source_ids, target_ids)


def build_vocab(
    counter: Counter[str], *, max_size: int | None = None, min_frequency: int = 1
) -> Vocab:
    """Build a vocabulary of the `max_size` most frequent tokens that occur at least `min_frequency`
    times. Special tokens are not counted, and `max_size=None` sets no limit. Tokens with equal
    counts are sorted by code points."""
    # Only torchtext's list of tokens is used, because its `stoi` adds any token that is looked up.
    # torchtext removes text that is spelled like a special token from the counts.
    counter = counter.copy()
    del counter[SOURCE_END]
    counted = import_torchtext().vocab.Vocab(
        counter, max_size=max_size, min_freq=min_frequency, specials=list(SPECIALS)
    )
    return Vocab(counted.itos)


def import_torchtext() -> Any:
    """Import torchtext with its modules `vocab` and `data`. The import happens on first use,
    because torchtext imports torch.

    Raises:
        UserError: torchtext is missing, or is a later release whose compiled extension does not
            load on a current torch.
    """
    try:
        require("train", "torchtext")
        import torchtext
        import torchtext.data
        import torchtext.vocab
    except (ImportError, OSError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"torchtext cannot be imported ({reason}); run: pip install torchtext==0.6.0"
        ) from None
    return torchtext
