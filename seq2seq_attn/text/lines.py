"""Read a text file as lines. The file is plain or compressed, in UTF-8 or UTF-16; its first bytes
show its compression and encoding."""

import importlib
import io
import logging
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from seq2seq_attn.config import plural
from seq2seq_attn.errors import UserError

log = logging.getLogger(__name__)

MAX_LINE_BYTES = 1 << 24
"""maximum size of a line, JSON value or TMX unit. A longer line is not a sentence: 13 MB of gzip
can hold a line of 3 GB."""
_COMPRESSED_SUFFIXES = (".gz", ".xz", ".bz2", ".zst")
_BLOCK_SIZE = 1 << 20
"""number of characters that are read in one call"""
_MODULES = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\0": "lzma",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "compression.zstd",
}
"""module that decompresses a file, by the first bytes of the file"""
# First bytes of archives and office documents, PDF, 7z and arrays of numpy.
_NOT_TEXT = (b"PK\3\4", b"%PDF", b"7z\xbc\xaf", b"\x93NUMPY")


def plain_name(path: Path) -> str:
    """Return the name of a file without the suffix of a compression."""
    return path.stem if path.suffix in _COMPRESSED_SUFFIXES else path.name


@contextmanager
def open_bytes(path: Path) -> Iterator[tuple[io.BufferedReader, str]]:
    """Open a text file and yield its decompressed bytes and its encoding.

    Reading the bytes may raise any error of a decompressor; see `explain_unreadable`.

    Raises:
        UserError: the file is missing, or is not text.
    """
    with ExitStack() as stack:
        with explain_unreadable(path):
            stream: io.BufferedReader[Any] = stack.enter_context(
                io.BufferedReader(io.FileIO(path), _BLOCK_SIZE)
            )
            first = stream.peek(8)
            if first.startswith(_NOT_TEXT):
                raise UserError(
                    f"{path}: an archive, office document, PDF or array, not text; name a file of "
                    "lines"
                )
            for magic, module in _MODULES.items():
                if first.startswith(magic):
                    file = stack.enter_context(importlib.import_module(module).open(stream))
                    stream = io.BufferedReader(file, _BLOCK_SIZE)
            head = stream.peek(2)
        check_line_ends(str(path), head)
        yield stream, "utf-16" if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"


def check_line_ends(name: str, head: bytes) -> None:
    """Raise UserError if the lines of a text end in carriage returns. `head` holds the first bytes
    of the text."""
    if b"\r" in head and b"\n" not in head:
        raise UserError(
            f"{name}: lines end in carriage returns, as on old Macs; convert the file, for "
            "example with tr '\\r' '\\n'"
        )


@contextmanager
def explain_unreadable(path: Path) -> Iterator[None]:
    """Raise a UserError instead of any error of the block. The block must only read the file, so
    that every error is an error of the file or of a decompressor."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None)  # None for an error of a decompressor
        advice = "check the path" if reason else "name another file, or decompress it first"
        raise UserError(f"{path}: cannot be read ({reason or error}); {advice}") from None


def iter_blocks(path: Path) -> Iterator[str]:
    """Yield the text of a file in blocks of about 1 MiB.

    Raises:
        UserError: when a damaged block is reached; `read_lines` lists the causes.
    """
    with open_bytes(path) as (stream, encoding), explain_unreadable(path):
        text = io.TextIOWrapper(stream, encoding, newline="\n")
        try:
            for block in iter(partial(text.read, _BLOCK_SIZE), ""):
                if "\0" in block:  # English text in UTF-16 is valid UTF-8 with NUL characters
                    raise ValueError
                yield block
        except ValueError:
            raise _damaged_line(path) from None


def _damaged_line(path: Path) -> UserError:
    """Return the error for a file that is not UTF-8 text. The error names the first damaged
    line."""
    with open_bytes(path) as (stream, _), explain_unreadable(path):
        sample = stream.peek(1)
        for number, line in enumerate(iter(partial(stream.readline, MAX_LINE_BYTES), b""), 1):
            try:
                start = line.decode("utf-8").find("\0")
            except UnicodeDecodeError as error:
                start = error.start
            if start >= 0:
                return UserError(
                    f"{path}, line {number}: byte {line[start]:#04x} is not UTF-8 text; "
                    f"{advice_on_encoding(sample)}"
                )
    return UserError(f"{path}: changed while it was read; try again")


def advice_on_encoding(sample: bytes) -> str:
    """Return how to convert a text that is not UTF-8 or contains a NUL character. `sample` holds
    the first bytes of the text."""
    if b"\0" in sample:
        # a Latin letter in UTF-16BE begins with a zero byte, in UTF-16LE it ends with one
        order = "LE" if sample[1::2].count(0) > sample[::2].count(0) else "BE"
        return (
            f"convert the file, for example with iconv -f UTF-16{order} -t UTF-8, or unpack it if "
            "it is an archive"
        )
    return (
        "convert the file, for example with iconv -f WINDOWS-1252 -t UTF-8 if it is Western "
        "European (others are GB18030, SHIFT_JIS and WINDOWS-1251), or drop a few damaged bytes "
        "with iconv -c -f UTF-8 -t UTF-8"
    )


def iter_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file, split as by `read_lines`, in constant memory.

    Raises:
        UserError: when a damaged block is reached; `read_lines` lists the causes.
    """
    number = 1
    rest = ""
    for block in iter_blocks(path):
        *lines, rest = (rest + block).replace("\r\n", "\n").split("\n")
        yield from lines
        number += len(lines)
        if len(rest) > MAX_LINE_BYTES:
            raise UserError(f"{path}, line {number}: longer than 16 MiB; give a sentence per line")
    if rest:
        yield rest.removesuffix("\r")


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file. The file is plain or compressed, in UTF-8, or in UTF-16 with
    a byte-order mark.

    Lines end with '\\n' only. (`str.splitlines` would also split at U+2028 and other characters.) A
    '\\r' before '\\n' and a byte-order mark at the start of the file are dropped. The last line
    needs no '\\n'.

    Raises:
        UserError: the file is missing or damaged, its compression or encoding is not supported, or
            a line has more than 16 MiB.
    """
    return list(iter_lines(path))


def count_lines(path: Path) -> int:
    """Return the number of lines, after reading the whole file.

    Raises:
        UserError: the file cannot be read; `read_lines` lists the causes.
    """
    return sum(1 for _ in iter_lines(path))


def aligned_lines(paths: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """Yield a tuple of line i of each file, for every i.

    Raises:
        UserError: a file cannot be read (`read_lines` lists the causes), or, after the last line,
            the files have different numbers of lines.
    """
    try:
        yield from zip(*map(iter_lines, paths), strict=True)
    except ValueError:
        sizes = " and ".join(f"{path} has {count_lines(path):,} lines" for path in paths)
        raise UserError(f"{sizes}: line i of one must belong to line i of the other") from None


def warn_about_tabs(where: str, num_lines: int) -> None:
    """Log a warning about the number of lines with tabs, for a run with one source. `where` is the
    start of the warning: `FILE: ` or an empty string."""
    if num_lines:
        message = "%stabs, on %s, count as spaces; this run reads one source"
        log.warning(message, where, plural(num_lines, "line"))
