"""Read text files, and check that they are text."""

import codecs
import importlib
import io
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from seq2seq_attn.errors import UserError

_BLOCK_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 24
"""A longer line is no sentence: 13 MB of gzip can hold a line of 3 GB."""
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "lzma", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "compression.zstd"}
"""the module that reads files with these first bytes"""
_NO_TEXT = {b"PK\3\4": "a zip archive or an office document", b"%PDF": "a PDF", b"7z\xbc\xaf": "a 7z archive"}


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, plain or compressed, in UTF-8, or in UTF-16 with a byte-order mark. Only '\\n' ends one
    (`str.splitlines` would also split at U+2028 and others), or '\\r' if there is no '\\n'. A '\\r' before '\\n' and a
    byte-order mark at the start of the file are dropped, and the last line needs no '\\n'.

    Raises:
        UserError: the file is missing or damaged, its compression or encoding is not read, or a line has more than
            16 MiB.
    """
    return list(iter_lines(path))


def iter_lines(path: Path) -> Iterator[str]:
    """`read_lines` as a stream, in constant memory. Raises UserError as `read_lines`, when the bad line is reached."""
    for number, line in enumerate(iter_raw_lines(path), 1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _bad_byte(path, number, line, error.start) from None
        if "\0" in text:  # UTF-16 of plain English is valid UTF-8
            raise _bad_byte(path, number, line, line.index(b"\0"))
        yield text


def iter_raw_lines(path: Path) -> Iterator[bytes]:
    """`iter_lines` as bytes, without checking that they are UTF-8."""
    with open_text(path) as stream, explain_unreadable(path):
        for number, line in enumerate(iter(partial(stream.readline, MAX_LINE_BYTES), b""), 1):
            if len(line) == MAX_LINE_BYTES:
                raise UserError(f"{path}, line {number}: longer than 16 MiB; give a sentence per line")
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def iter_blocks(path: Path) -> Iterator[str]:
    """The text of a file in blocks of about 1 MiB, for formats whose lines say nothing. Raises UserError as
    `read_lines`."""
    decoder, number = codecs.getincrementaldecoder("utf-8")(), 1
    with open_text(path) as stream, explain_unreadable(path):
        while block := stream.read(_BLOCK_BYTES):
            try:
                text = decoder.decode(block, final=not stream.peek(1))
            except UnicodeDecodeError as error:
                raise _bad_byte(path, number, error.object, error.start) from None
            if "\0" in text:
                raise _bad_byte(path, number, block, block.index(b"\0"))
            yield text
            number += block.count(b"\n")


def count_lines(path: Path) -> int:
    """The number of lines. The whole file is checked. Raises UserError as `read_lines`."""
    return sum(1 for _ in iter_lines(path))


@contextmanager
def open_text(path: Path) -> Iterator[io.BufferedReader]:
    """A text file as bytes, decompressed, in UTF-8 without a byte-order mark. Reading it may raise whatever a
    decompressor raises: `explain_unreadable`.

    Raises:
        UserError: the file is missing, or is not text.
    """
    with ExitStack() as stack:
        with explain_unreadable(path):
            file: io.BufferedReader[Any] = stack.enter_context(io.BufferedReader(io.FileIO(path), _BLOCK_BYTES))
            first = file.peek(8)
            module = next((name for magic, name in _COMPRESSED.items() if first.startswith(magic)), None)
            if kind := next((kind for magic, kind in _NO_TEXT.items() if first.startswith(magic)), None):
                raise UserError(f"{path}: {kind}, not text; unpack it, or save its text as UTF-8")
            if module:  # buffered, it is much faster than the GzipFile, which splits lines in Python
                file = io.BufferedReader(stack.enter_context(importlib.import_module(module).open(file)), _BLOCK_BYTES)
            head = file.peek(len(BOM_UTF8))
            if head.startswith(BOM_UTF8):
                file.read(len(BOM_UTF8))
            is_utf16 = head.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
            is_mac = b"\r" in head and b"\n" not in head
            if is_utf16 or is_mac:
                file = io.BufferedReader(_Recoded(file, is_utf16=is_utf16, is_mac=is_mac), _BLOCK_BYTES)
        yield file


@contextmanager
def explain_unreadable(path: Path) -> Iterator[None]:
    """Turn whatever a file, a decompressor or a decoder raises in the block, which only reads, into a UserError."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except ModuleNotFoundError:
        raise UserError(f"{path}: zstd, which Python reads from 3.14 on; decompress it: unzstd {path}") from None
    except UserError:
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: cannot be read ({reason})") from None


class _Recoded(io.RawIOBase):
    """UTF-16 as UTF-8; lines that end in '\\r' alone, as on old Macs, with '\\n' instead."""

    def __init__(self, stream: io.BufferedReader, *, is_utf16: bool, is_mac: bool) -> None:
        self._encoding = "utf-8" if is_utf16 else "latin-1"  # Latin-1 keeps each byte
        self._text = io.TextIOWrapper(stream, "utf-16" if is_utf16 else "latin-1", newline=None if is_mac else "")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._text.read(max(1, len(buffer) // 4)).encode(self._encoding)  # a character has at most four bytes
        buffer[: len(data)] = data
        return len(data)


def _bad_byte(path: Path, number: int, data: bytes, start: int) -> UserError:
    """The error for a byte of some text that begins at line `number` of a file."""
    number += data.count(b"\n", 0, start)
    line = data[data.rfind(b"\n", 0, start) + 1 :].partition(b"\n")[0]
    what = f"not UTF-8 (byte {data[start]:#04x})" if data[start] else "holds a NUL character"
    with open_text(path) as stream, explain_unreadable(path):
        advice = advice_on_encoding(stream.read(1 << 16), line)
    return UserError(f"{path}, line {number}: {what}; {advice}")


def advice_on_encoding(sample: bytes, data: bytes) -> str:
    """How to convert a text that begins with `sample` and holds `data`, which is not UTF-8 or holds a NUL character."""
    zeros = sample[::2].count(0), sample[1::2].count(0)
    if max(zeros) >= max(1, sample.count(b"\n")) and min(zeros) * 10 <= max(zeros):
        return f"convert the file, for example with iconv -f UTF-16{'LE' if zeros[1] > zeros[0] else 'BE'} -t UTF-8"
    if b"\0" in data:
        return "text has none; remove it, for example with tr -d '\\000', or unpack the file if it is an archive"
    if any(not line.isascii() and "\ufffd" not in line.decode("utf-8", "replace") for line in sample.split(b"\n")):
        return "other lines are UTF-8; drop the damaged bytes, for example with iconv -c -f UTF-8 -t UTF-8"
    return (
        "convert the file from its encoding, for example with iconv -f WINDOWS-1252 -t UTF-8 if it is Western "
        "European; others are GB18030, SHIFT_JIS and WINDOWS-1251"
    )


def read_pairs(source_path: Path, target_path: Path) -> tuple[list[str], list[str]]:
    """The lines of both sides. Raises UserError as `read_lines`; or the files have different numbers of lines."""
    source, target = read_lines(source_path), read_lines(target_path)
    if len(source) != len(target):
        raise unequal_lines({source_path: len(source), target_path: len(target)})
    return source, target


def unequal_lines(num_lines: Mapping[Path, int]) -> UserError:
    """The error for aligned files with different numbers of lines."""
    sizes = " and ".join(f"{path} has {number:,} lines" for path, number in num_lines.items())
    return UserError(f"{sizes}: line i of one must belong to line i of the other")
