"""Open the input and output streams of `translate` and `score`, and read lines.

Input is read as bytes and split at line feeds only, so that no character inside a line (NUL,
U+2028, a lone carriage return) can shift the lines.
"""

import gzip
import io
import logging
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, zip_longest
from pathlib import Path
from typing import BinaryIO, cast

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import STDOUT, check_outputs, file_identity, named_path
from seq2seq_attn.leftovers import naming
from seq2seq_attn.text.lines import (
    MAX_LINE_BYTES,
    advice_on_encoding,
    check_line_ends,
    explain_unreadable,
    open_bytes,
)
from seq2seq_attn.translate.segments import chunks

STREAM = "-"
"""The file name that stands for standard input or standard output."""
_STDIN = Path("/dev/stdin")
_STDOUT = Path("/dev/stdout")
_READ_BYTES = 1 << 16
"""maximum number of bytes per read, and about the number of characters that a `Check` sees"""
_TOO_LONG = "%s, line %d: longer than 16 MiB, so its translation is empty; give a sentence per line"

log = logging.getLogger(__name__)

Check = Callable[[str, str], None] | None
"""A function that is called with the name and the first lines of an input. It raises UserError if
the input is not lines of text."""


def shown_name(name: str) -> str:
    """Return the name of an input for messages."""
    return "standard input" if name == STREAM else name


def read_chunks(stream: BinaryIO, name: str, check: Check = None) -> Iterator[list[str]]:
    """Yield the lines of a byte stream in chunks.

    A chunk holds the lines that are available now, at most about 64 KiB, so interactive input is
    answered line by line. The byte-order mark of the stream and the carriage return at the end of a
    line are removed. At the end, a warning counts the lines that are not UTF-8 or have a NUL
    character. An empty line takes the place of a line of more than 16 MiB, with a warning.

    `check` is called with the name and the first lines, about 64 KiB, before these lines are
    yielded. Raises UserError if the stream cannot be read or its lines end in carriage returns, and
    the errors of `check`.
    """
    name = shown_name(name)
    num_lines = 0
    num_invalid = 0
    head = ""
    sample = b""
    for lines in _split(stream, name):
        sample = sample or b"\n".join(lines)
        num_lines += len(lines)
        texts = []
        for line in lines:
            text = line.removesuffix(b"\r").decode(errors="replace")
            if "\0" in text or "\ufffd" in text:
                num_invalid += 1
            texts.append(text)
        if check and len(head) < _READ_BYTES:
            head += "".join(f"{text}\n" for text in texts)
            check(name, head)
        yield texts
    if num_invalid:
        advice = advice_on_encoding(sample)
        log.warning(
            f"{name}: {num_invalid} of {num_lines} lines are not UTF-8 text, and were translated "
            f"as if they were; {advice}"
        )


def _split(stream: BinaryIO, name: str) -> Iterator[list[bytes]]:
    """Yield a list of lines for each block of bytes that completes at least one line. The
    byte-order mark of the stream is removed, and a line that is too long is empty."""
    mark = BOM_UTF8
    num_lines = 0
    is_too_long = False
    unfinished = []
    for data in _blocks(stream, name):
        first, *rest = data.split(b"\n")
        unfinished.append(first)
        if rest:
            lines = [b"".join(unfinished), *rest]
            unfinished = [lines.pop()]
            lines[0] = b"" if is_too_long else lines[0].removeprefix(mark)
            is_too_long = False
            mark = b""  # only the first line of the stream begins with the mark
            num_lines += len(lines)
            yield lines
        elif sum(map(len, unfinished)) > MAX_LINE_BYTES:
            if not is_too_long:
                log.warning(_TOO_LONG, name, num_lines + 1)
            is_too_long = True
            unfinished = []
    last = b"" if is_too_long else b"".join(unfinished).removeprefix(mark)
    if num_lines == 0:
        # A single line may end in a carriage return.
        check_line_ends(name, last.removesuffix(b"\r"))
    if last or is_too_long:
        yield [last]


def _blocks(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the bytes of a stream as they become available."""
    with explain_unreadable(Path(name)):
        # read1 blocks only if no bytes are available
        while data := stream.read1(_READ_BYTES):  # type: ignore[attr-defined]
            yield data


def line_chunks(inputs: Sequence[tuple[BinaryIO, str]], check: Check = None) -> Iterator[list[str]]:
    """Yield the lines of the inputs in chunks. Each input is a stream with its name. `read_chunks`
    explains `check`.

    If there are several inputs, line i of the result is line i of all inputs, joined by tabs.
    Raises UserError if an input cannot be read or the inputs have different numbers of lines, and
    the errors of `check`.
    """
    if len(inputs) == 1:
        return read_chunks(*inputs[0], check)
    return chunks(_join_lines(inputs, check))


def _join_lines(inputs: Sequence[tuple[BinaryIO, str]], check: Check) -> Iterator[str]:
    """Yield line i of all inputs, joined by tabs, for each i. A tab inside a line becomes a space.
    Raises UserError if the inputs have different numbers of lines."""
    readers = [chain.from_iterable(read_chunks(stream, name, check)) for stream, name in inputs]
    for number, texts in enumerate(zip_longest(*readers)):
        if None in texts:
            _, ended = inputs[texts.index(None)]
            raise UserError(
                f"{shown_name(ended)}: {number} lines, fewer than another input; give a line per "
                "sentence"
            )
        yield "\t".join(text.replace("\t", " ") for text in texts)


def check_files(inputs: Sequence[str | Path], outputs: Mapping[str, str | Path]) -> None:
    """Check, before translating, that each output file is writable, is no input file, and differs
    from the other outputs.

    Args:
        inputs: names of input files, or `STREAM` for standard input.
        outputs: the output file of each option, or `STREAM` for standard output.

    Raises:
        UsageError: a name is empty, an output is an input file, or two outputs are the same file.
        UserError: a file cannot be written.
    """
    sources = [_named_file("-i", name, _STDIN) for name in inputs]
    files = {option: _named_file(option, name, _STDOUT) for option, name in outputs.items()}
    check_outputs(files, sources)


def _named_file(option: str, name: str | Path, stream: Path) -> Path:
    """Return the path of a file, or the path `stream` of a standard stream. Raises UsageError if
    the name is empty."""
    if name == "":
        raise UsageError(f"{option} '': expected the name of a file")
    return stream if str(name) == STREAM else Path(name)


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open standard input, or a file with `open_bytes`, which decompresses the file.

    A file in UTF-16 is converted to UTF-8. Standard input is passed on unchanged. Raises UserError
    if standard input is closed, or if the file cannot be read or is not text.
    """
    if path == STREAM:
        if sys.stdin is None:
            raise UserError("standard input is closed; give a text or -i FILE")
        if sys.stdin.isatty():
            log.info("type a sentence and press Enter; Ctrl-D ends")
        yield sys.stdin.buffer
        return
    with open_bytes(Path(path)) as (stream, encoding):
        if encoding != "utf-16":
            yield stream
            return
        with explain_unreadable(Path(path)):  # such files are rare, so they are converted in memory
            text = stream.read().decode(encoding)
        yield io.BytesIO(text.encode())


@contextmanager
def open_output(path: str | Path) -> Iterator[BinaryIO]:
    """Open standard output, a device, a pipe, or a file for writing.

    A file appears under its name when it is complete. A file named `*.gz` is compressed. Raises
    UserError if standard output is closed or the file cannot be written.
    """
    if str(path) == STREAM or file_identity(Path(path)) == file_identity(_STDOUT):
        if sys.stdout is None:
            raise UserError("standard output is closed; give -o FILE")
        with naming(STDOUT):
            yield sys.stdout.buffer
        return
    path = Path(path)
    try:
        with named_path(path) as target, target.open("wb") as stream:
            if path.suffix != ".gz":
                yield stream
                return
            with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as compressed:
                yield cast(BinaryIO, compressed)
    except BrokenPipeError:
        raise  # the reader of a pipe has ended, which is no error of the file
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from None
