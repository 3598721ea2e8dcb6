"""Pretrained word vectors from a text file: word2vec's text format, GloVe's, fastText's `.vec`;
plain or `.gz`.

A line is a token and its numbers, separated by spaces. A first line of two whole numbers (how many
vectors, how long) is skipped; GloVe has none.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.lines import iter_lines


class WordVectors(NamedTuple):
    """The vectors of those tokens that have one in a file."""

    indices: npt.NDArray[np.int64]
    """indices of these tokens, ascending"""
    vectors: npt.NDArray[np.float32]
    """[len(indices), size]"""
    num_by_case: int
    """number of tokens found only in a different case"""


def vector_size(path: Path) -> int:
    """How many numbers the vectors of a file have, by its first line. Raises UserError: the file is
    missing, not text, or its first line is not that of a file of vectors."""
    fields = next(iter_lines(path), "").rstrip(" ").split(" ")
    if _is_header(fields):
        return int(fields[1])
    if len(fields) < 2 or _numbers(fields[1:]) is None:
        raise UserError(
            f"{path}, line 1: expected a token and its numbers, or a header with the number and "
            "the size of the vectors"
        )
    return len(fields) - 1


def read_word_vectors(path: Path, tokens: Sequence[str], size: int) -> WordVectors:
    """The vectors of these tokens. A token that the file does not have takes the vector of the
    first one that differs from it in case alone (`Hund` for `hund`). Raises UserError: as
    `vector_size`; a line that is not a token with `size` finite numbers."""
    indices_by_case: dict[str, list[int]] = {}
    for index, token in enumerate(tokens):
        indices_by_case.setdefault(token.lower(), []).append(index)
    same_case: dict[int, npt.NDArray[np.float32]] = {}
    any_case: dict[int, npt.NDArray[np.float32]] = {}
    for number, line in enumerate(iter_lines(path), 1):
        if not line or (number == 1 and _is_header(line.rstrip(" ").split(" "))):
            continue
        name, *fields = line.rstrip(" ").rsplit(" ", size)
        indices = indices_by_case.get(name.lower(), [])
        values = _numbers(fields) if indices else None
        if len(fields) != size or (indices and values is None):
            raise UserError(
                f"{path}, line {number}: expected a token and {size} finite numbers, as in the "
                "first lines"
            )
        if values is None:
            continue
        for index in indices:
            any_case.setdefault(index, values)
            if tokens[index] == name:
                same_case.setdefault(index, values)
    together = {**any_case, **same_case}
    indices = sorted(together)
    vectors = np.zeros((len(indices), size), np.float32)
    for row, index in enumerate(indices):
        vectors[row] = together[index]
    return WordVectors(np.array(indices, dtype=np.int64), vectors, len(together) - len(same_case))


def _is_header(fields: Sequence[str]) -> bool:
    return len(fields) == 2 and all(re.fullmatch("[0-9]{1,9}", field) for field in fields)


def _numbers(fields: Sequence[str]) -> npt.NDArray[np.float32] | None:
    """The fields as numbers; None if not all of them are finite numbers."""
    try:
        with np.errstate(over="ignore"):
            values = np.array(fields, dtype=np.float64).astype(np.float32)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None
