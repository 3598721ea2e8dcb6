"""The vocabulary: tokens to ids and back. The only user of torchtext's `Vocab`.

An output that copies source tokens scores ids of the extended vocabulary (See, Liu, Manning 2017,
section 2.2):

    extended(y) = its id in the target vocabulary            if it has one
                = V + j, j the first source position with that spelling, otherwise
                = UNK                                         if no source position has it

V is the size of the target vocabulary, so an id from V on names a source position of its own
sentence, and a search can read the token off the source.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_regular, write_lines
from seq2seq_attn.text.marks import SOURCE_END

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
IdArray = npt.NDArray[np.int32]
Ids = IdArray | Sequence[int]


class Vocab:
    """An immutable bijection between tokens and ids. Unknown tokens map to `UNK`, as does text
    spelled like a special token (`<pad>`). `SOURCE_END`, which ends a source of several, maps to
    `EOS`."""

    def __init__(self, tokens: Iterable[str]) -> None:
        """Take the tokens in order of their ids, specials first. Raises ValueError: the specials
        are not the first tokens, or a token occurs twice."""
        self._tokens = tuple(tokens)
        first = self._tokens[: len(SPECIALS)]
        if first != SPECIALS:
            raise ValueError(f"a vocabulary starts with {' '.join(SPECIALS)}, got {first}")
        ids = {token: number for number, token in enumerate(self._tokens)}
        if len(ids) < len(self._tokens):
            twice = Counter(self._tokens).most_common(1)[0][0]
            raise ValueError(f"token {twice!r} occurs twice")
        for special in SPECIALS:  # so that no text maps to them
            del ids[special]
        self._ids = {SOURCE_END: EOS, **ids}

    @property
    def tokens(self) -> list[str]:
        """All tokens in id order, specials first."""
        return list(self._tokens)

    def __len__(self) -> int:
        """Number of ids, specials included."""
        return len(self._tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocab) and self._tokens == other._tokens

    def __hash__(self) -> int:
        return hash(self._tokens)

    def __repr__(self) -> str:
        return f"Vocab({len(self)} tokens)"

    def __contains__(self, token: object) -> bool:
        """Whether a token has an id. Always false for the text of a special."""
        return token in self._ids

    def ids_of(self, tokens: Iterable[str]) -> list[int]:
        """The ids of tokens, `UNK` for unknown ones."""
        return list(map(self._ids.get, tokens, repeat(UNK)))

    def tokens_of(self, ids: Iterable[int], beyond: Sequence[str] = ()) -> list[str]:
        """The tokens of ids; specials by their names, ids from `len(self)` on by their index in
        `beyond`."""
        size = len(self)
        return [self._tokens[i] if i < size else beyond[i - size] for i in ids]

    def save(self, path: Path) -> None:
        """Write one token per line, by id. A token that would not survive as a line is written as a
        JSON string."""
        write_lines(path, map(_to_line, self._tokens))

    @classmethod
    def load(cls, path: Path, read: Callable[[Path], bytes] = read_regular) -> Vocab:
        """Read what `save` wrote, by `read`. Raises UserError: the file is missing or is not a
        vocabulary."""
        try:
            lines = read(path).decode("utf-8").split("\n")
            return cls(
                str(json.loads(line)) if line.startswith('"') else line for line in lines[:-1]
            )
        except UserError:
            raise
        except Exception as error:  # of any bytes
            raise UserError(f"{path}: not a vocabulary file ({error})") from None


def _to_line(token: str) -> str:
    survives = token.isprintable() and token.strip() == token
    return token if token and survives and not token.startswith('"') else json.dumps(token)


class ExtendedIds(NamedTuple):
    """The ids of a sentence pair in the extended vocabulary, without specials."""

    source: Ids
    target: Ids


def extended_ids(source: Sequence[str], target: Sequence[str], target_vocab: Vocab) -> ExtendedIds:
    """The extended ids of a pair. The source is spelled as on the target side (`spell_source`)."""
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
    """A vocabulary of the `max_size` most frequent tokens (None: all; specials not counted) that
    occur at least `min_frequency` times. Ties are broken by code points."""
    # Only torchtext's list is used: its `stoi` adds every token that it is asked for. It drops text
    # spelled like a special from the counts.
    counter = counter.copy()
    del counter[SOURCE_END]
    counted = import_torchtext().vocab.Vocab(
        counter, max_size=max_size, min_freq=min_frequency, specials=list(SPECIALS)
    )
    return Vocab(counted.itos)


def import_torchtext() -> Any:
    """Import torchtext with its `vocab` and `data`, on first use because it imports torch. Raises
    UserError: it is missing, or a later release whose compiled extension does not load on a current
    torch."""
    try:
        import torchtext
        import torchtext.data
        import torchtext.vocab
    except (ImportError, OSError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"torchtext cannot be imported ({reason}); run: pip install torchtext==0.6.0"
        ) from None
    return torchtext
