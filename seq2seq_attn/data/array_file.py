"""Write flat arrays to files incrementally, without holding them in memory, and read them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import open_regular


class ArrayWriter:
    """A flat `.npy` file, byte for byte what `np.save` would write."""

    def __init__(self, path: Path, dtype: type[np.generic]) -> None:
        self._path = path
        self._dtype = np.dtype(dtype)
        self._size = 0
        path.write_bytes(self._header())

    def append(self, values: npt.NDArray[Any]) -> None:
        """Add values at the end."""
        append_raw(self._path, values.astype(self._dtype, copy=False))
        self._size += len(values)

    def finish(self) -> None:
        """Write the final size. Until then, the header says that the array is empty."""
        with self._path.open("r+b") as stream:
            stream.write(self._header())

    def _header(self) -> bytes:
        # numpy pads headers so that the size can grow: all headers of flat arrays have the same length
        header = io.BytesIO()
        description = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._size,)}
        np.lib.format.write_array_header_1_0(header, description)
        return header.getvalue()


def append_raw(path: Path, values: npt.NDArray[Any]) -> None:
    """Append an array's bytes to a file without a header."""
    # reopened each time: a corpus may have more splits than a process may have open files
    with path.open("ab") as stream:
        stream.write(np.ascontiguousarray(values).data)  # `tofile` does not say why it fails


def read_raw(path: Path, dtype: type[np.generic], size: int) -> Iterator[npt.NDArray[Any]]:
    """Read a file without a header, `size` values at a time. Mapped pages would count as memory."""
    with path.open("rb") as stream:
        while len(values := np.fromfile(stream, dtype=dtype, count=size)):
            yield values


def load_array(path: Path, dtype: type[np.generic], mode: Any = None) -> npt.NDArray[Any]:
    """A flat `.npy` file of a prepared corpus; `mode` as in `np.load`.

    Raises:
        UserError: it is missing, damaged or holds something else.
    """
    try:
        open_regular(path).close()
        array: npt.NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
    except (EOFError, OSError, OverflowError, ValueError) as error:
        raise UserError(f"{path}: damaged ({' '.join(str(error).split())}); prepare the data again") from None
    if array.dtype != dtype or array.ndim != 1:
        raise UserError(f"{path}: damaged (no flat array of {np.dtype(dtype)}); prepare the data again")
    return array
