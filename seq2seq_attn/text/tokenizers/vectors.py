"""The source `vectors`: a line names a file of vectors, such as the regions of a picture or the
frames of speech (Huang et al. 2016).

The name is `picture.npy`, or `pictures.npz:KEY` for one array of an archive. The array is [n, F]: n
vectors of F numbers each. Every vector is a token, `[1]` to `[n]`, so lengths, attention and
alignments work as for words.
"""

import hashlib
import os
import re
import zipfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import open_regular, sha256_of
from seq2seq_attn.text.tokenizers.source import Source

FloatArray = npt.NDArray[np.float32]
MAX_SIZE = 65_536
"""maximum dimension of a vector"""
MAX_BYTES = 1 << 28
"""maximum size of an array: an archive of 300 KB may hold arrays of gigabytes"""
_IN_ARCHIVE = re.compile(r"(.+\.npz):(.+)")


class VectorSource(Source):
    """Tokenize the name of a file into one token per vector of the file. The vectors of all files
    have the same size."""

    name = "vectors"

    def __init__(self, size: int) -> None:
        """Set F, the dimension of a vector, to `size`. Raises ValueError unless `size` is from 1 to
        `MAX_SIZE`."""
        if not isinstance(size, int) or not 1 <= size <= MAX_SIZE:
            raise ValueError(f"vectors of {size!r} numbers")
        self.size = size
        self.vector_sizes = [size]

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens `[1]` to `[n]` for the n vectors of the file. A blank line has no
        tokens.

        Raises:
            UserError: the file cannot be read, or its vectors do not have `size` numbers.
        """
        file = text.strip()
        if not file:
            return []
        vectors = read_vectors(file)
        if vectors.shape[1] != self.size:
            raise UserError(
                f"{file}: vectors of {vectors.shape[1]} numbers; expected {self.size}, as "
                "in training"
            )
        return [f"[{number}]" for number in range(1, len(vectors) + 1)]

    def words(self, line: str, tokens: Sequence[str]) -> list[str]:
        return list(tokens)

    def vector_positions(self, tokens: Sequence[str]) -> range:
        return range(len(tokens))

    def vectors(self, line: str, tokens: Sequence[str]) -> FloatArray:
        if not tokens:
            return np.empty((0, self.size), dtype=np.float32)
        file = line.strip()
        vectors = read_vectors(file)
        numbers = [int(token[1:-1]) - 1 for token in tokens]
        if max(numbers) >= len(vectors):
            raise UserError(f"{file}: changed while it was read; translate it again")
        return vectors[numbers]

    def settings(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.size}


def place_vectors(vectors: FloatArray, positions: range, length: int) -> FloatArray:
    """Return an array [S, F] that has the vectors at `positions` and zeros elsewhere. S is
    `length`, the number of tokens of the line."""
    rows = np.zeros((length, vectors.shape[1]), dtype=np.float32)
    rows[positions.start : positions.stop] = vectors
    return rows


def read_vectors(file: str) -> FloatArray:
    """Read the vectors of a file, [n, F]. Nothing is unpickled.

    Raises:
        UserError: the file is missing, holds no array of shape [n, F], or holds a number that is
            not finite.
    """
    try:
        with _open_array(*_split(file)) as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
    except Exception as error:  # numpy and zipfile raise many kinds of errors for damaged files
        raise _unreadable(file, error) from None
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not 1 <= array.shape[1] <= MAX_SIZE:
        shape = " x ".join(map(str, array.shape))
        raise UserError(
            f"{file}: {shape} values of {array.dtype}; expected rows of 1 to {MAX_SIZE:,} numbers"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        vectors: FloatArray = array.astype(np.float32)
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        number = int(is_finite.argmin()) + 1
        raise UserError(
            f"{file}: vector {number} holds NaN or a number too large; expected finite numbers of "
            "float32"
        )
    return vectors


def _open_array(path: str, key: str | None) -> IO[bytes]:
    """Open a file of one array, or the array `key` of an archive. Raises ValueError if the array is
    too large, KeyError if the archive has no such array, and the errors of reading a file."""
    status = os.stat(path)
    archive = None if key is None else _archive(path, status.st_mtime_ns, status.st_size)
    member = f"{key}.npy"
    size = archive.getinfo(member).file_size if archive else status.st_size
    if size > MAX_BYTES:
        raise ValueError(f"{size:,} bytes; expected at most {MAX_BYTES:,}")
    return archive.open(member) if archive else open_regular(Path(path))


@lru_cache(maxsize=4)
def _archive(path: str, modified_at: int, size: int) -> zipfile.ZipFile:
    """Open an archive and keep it open for the next calls, because reading the list of 20,000
    arrays before each array would take minutes.

    The arguments `modified_at` and `size` are part of the cache's key, so a changed archive is
    opened again.
    """
    open_regular(Path(path)).close()  # raises an error for a pipe, whose reading might never end
    return zipfile.ZipFile(path)


def real_name(file: str) -> str:
    """Return the name with the real path of the file, which is equal for all spellings of a path. A
    blank name gives an empty string."""
    if not file.strip():
        return ""
    path, key = _split(file.strip())
    real = os.path.realpath(path)
    return real if key is None else f"{real}:{key}"


def _split(file: str) -> tuple[str, str | None]:
    """Split a name into the path and the key of an array. The key is None unless the path is an
    archive."""
    match = _IN_ARCHIVE.fullmatch(file)
    return (match[1], match[2]) if match else (file, None)


def _unreadable(file: str, error: Exception) -> UserError:
    """Return the error for a file that cannot be read."""
    reason = getattr(error, "strerror", None) or " ".join(str(error).split())
    return UserError(
        f"{file}: not a readable array of numpy ({reason}); expected a .npy file, or FILE.npz:KEY"
    )


def hash_vectors(files: Iterable[str]) -> str:
    """Return one SHA-256 over the contents of the files, in the order of `files`. Each archive is
    read once.

    Raises:
        UserError: a file cannot be read.
    """
    digests = {"": ""}
    total = hashlib.sha256()
    for file in files:
        path, _ = _split(file.strip())
        if path not in digests:
            try:
                digests[path] = sha256_of(Path(path))
            except (OSError, ValueError) as error:
                raise _unreadable(path, error) from None
        total.update(f"{digests[path]}\n".encode())
    return total.hexdigest()
