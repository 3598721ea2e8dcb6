"""Read pretrained word vectors from a text file, plain or compressed: word2vec's text format,
GloVe's format or fastText's `.vec`.

A line holds a token and its numbers, separated by spaces. The first line of word2vec and fastText
is a header, the number of vectors and their size, and is skipped. GloVe has no header.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.lines import iter_lines


class WordVectors(NamedTuple):
    """The vectors that a file has for some of the requested tokens."""

    indices: npt.NDArray[np.int64]
    """indices of the requested tokens that have a vector, ascending"""
    vectors: npt.NDArray[np.float32]
    """vectors of these tokens, [len(indices), size]"""
    num_by_case: int
    """number of these tokens that the file spells only in another case"""


def vector_size(path: Path) -> int:
    """Return the size of the vectors of a file, as its first line shows it.

    Raises:
        UserError: the file is missing or not text, or its first line is neither a header nor a
            token with numbers.
    """
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
    """Return the vectors of `tokens` in a file.

    If the file lacks a token, the token gets the vector of the first line whose token differs in
    case only (`Hund` for `hund`).

    Raises:
        UserError: the file is missing or not text, a line does not have a token and `size` fields,
            or the fields of a requested token are not finite numbers. The fields of other tokens
            are not read as numbers, to save time.
    """
    indices_by_case = defaultdict(list)
    for index, token in enumerate(tokens):
        indices_by_case[token.lower()].append(index)
    same_case: dict[int, npt.NDArray[np.float32]] = {}
    any_case: dict[int, npt.NDArray[np.float32]] = {}
    not_read = np.empty(0, np.float32)
    for number, line in enumerate(iter_lines(path), 1):
        if not line or (number == 1 and _is_header(line.rstrip(" ").split(" "))):
            continue
        name, *fields = line.rstrip(" ").rsplit(" ", size)
        indices = indices_by_case.get(name.lower(), [])
        values = _numbers(fields) if indices else not_read
        if len(fields) != size or values is None:
            raise UserError(
                f"{path}, line {number}: expected a token and {size} finite numbers, as in the "
                "first lines"
            )
        for index in indices:
            any_case.setdefault(index, values)
            if tokens[index] == name:
                same_case.setdefault(index, values)
    vectors_by_index = any_case | same_case
    indices = sorted(vectors_by_index)
    vectors = np.array([vectors_by_index[index] for index in indices], dtype=np.float32)
    return WordVectors(
        np.array(indices, dtype=np.int64),
        vectors.reshape(-1, size),
        len(indices) - len(same_case),
    )


def _is_header(fields: Sequence[str]) -> bool:
    """Return whether the fields of a line are two whole numbers."""
    return len(fields) == 2 and all(re.fullmatch("[0-9]{1,9}", field) for field in fields)


def _numbers(fields: Sequence[str]) -> npt.NDArray[np.float32] | None:
    """Return the fields as numbers, or None unless all fields are finite numbers."""
    try:
        with np.errstate(over="ignore"):
            values = np.array(fields, dtype=np.float64).astype(np.float32)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None
