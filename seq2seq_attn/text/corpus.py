"""Read, check and audit parallel text."""

from __future__ import annotations

import io
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import open_text_bytes

Lengths = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_BLOCK_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
"""the first bytes of a gzipped file"""


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text file, plain or `.gz`. Only '\\n' ends a line (`str.splitlines` would also split at
    U+2028 and others). A '\\r' before it is dropped, and the last line needs no '\\n'.
    A byte-order mark at the start of the file is dropped too.

    Raises:
        UserError: the file is missing, is named `.gz` but not gzipped, or is not UTF-8.
    """
    return list(iter_lines(path))


def iter_lines(path: Path) -> Iterator[str]:
    """`read_lines` as a stream, in constant memory.

    Raises:
        UserError: as `read_lines`, when the bad line is reached.
    """
    for number, line in enumerate(iter_raw_lines(path), 1):
        yield _decode(path, number, line)


def iter_raw_lines(path: Path) -> Iterator[bytes]:
    """`iter_lines` as bytes, without checking that they are UTF-8.

    Raises:
        UserError: the file is missing, or is named `.gz` but not gzipped.
    """
    with _open(path) as stream:
        for line in stream:
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def count_lines(path: Path) -> int:
    """The number of lines. The whole file is checked.

    Raises:
        UserError: as `read_lines`.
    """
    count = 0
    with _open(path) as stream:
        while lines := stream.readlines(_BLOCK_BYTES):
            block = b"".join(lines)
            try:
                is_text = "\0" not in block.decode("utf-8")
            except UnicodeDecodeError:
                is_text = False
            if not is_text:
                for number, line in enumerate(lines, count + 1):
                    _decode(path, number, line)
            count += len(lines)
    return count


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    try:
        # much faster than iterating over the GzipFile, which splits lines in Python
        with open_text_bytes(path) as stream, io.BufferedReader(stream, _BLOCK_BYTES) as buffered:  # type: ignore[type-var]
            if buffered.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
                buffered.read(len(BOM_UTF8))
            yield buffered
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None


def _decode(path: Path, number: int, line: bytes) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        if number == 1 and line.startswith(_GZIP):
            raise UserError(f"{path}: gzipped; rename the file so that its name ends in .gz") from None
        is_utf16 = number == 1 and line.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        found = "UTF-16" if is_utf16 else f"not UTF-8 (byte {line[error.start]:#04x})"
        raise UserError(
            f"{path}, line {number}: {found}; convert the file, for example with "
            f"iconv -f {'UTF-16' if is_utf16 else 'LATIN1'} -t UTF-8"
        ) from None
    if "\0" in text:  # UTF-16 of plain English is valid UTF-8
        raise UserError(
            f"{path}, line {number}: holds a NUL character; if the file is UTF-16, convert it with "
            "iconv -f UTF-16LE -t UTF-8"
        )
    return text


def read_pairs(source_path: Path, target_path: Path) -> tuple[list[str], list[str]]:
    """The lines of both sides.

    Raises:
        UserError: as `read_lines`; or the files have different numbers of lines.
    """
    source, target = read_lines(source_path), read_lines(target_path)
    _check_aligned(source_path, len(source), target_path, len(target))
    return source, target


def count_pairs(source_path: Path, target_path: Path) -> int:
    """The number of pairs, in constant memory. Both files are checked completely.

    Raises:
        UserError: as `read_pairs`.
    """
    num_source, num_target = count_lines(source_path), count_lines(target_path)
    _check_aligned(source_path, num_source, target_path, num_target)
    return num_source


def _check_aligned(source_path: Path, num_source: int, target_path: Path, num_target: int) -> None:
    if num_source != num_target:
        raise UserError(
            f"{source_path} has {num_source} lines and {target_path} has {num_target}: "
            "line i of one must translate line i of the other"
        )


@dataclass(frozen=True)
class PairFaults:
    """Which pairs of a split are unfit for training, and why. A pair may have several faults."""

    is_blank: Bools
    """one side has no tokens"""
    is_over_long: Bools
    """one side has more than `max_length` tokens"""
    is_ratio_outlier: Bools
    """neither side is blank, and one is more than `max_length_ratio` times as long as the other"""

    @property
    def is_good(self) -> Bools:
        """The pair has no fault."""
        return ~(self.is_blank | self.is_over_long | self.is_ratio_outlier)

    def counts(self) -> dict[str, int]:
        """Number of pairs with each fault."""
        return {
            "blank": int(self.is_blank.sum()),
            "over_long": int(self.is_over_long.sum()),
            "ratio_outliers": int(self.is_ratio_outlier.sum()),
        }

    def first(self) -> dict[str, int]:
        """Number of pairs by their first fault, the reason for dropping them."""
        over_long = self.is_over_long & ~self.is_blank
        outliers = self.is_ratio_outlier & ~over_long
        return {
            "blank": int(self.is_blank.sum()),
            "over_long": int(over_long.sum()),
            "ratio_outliers": int(outliers.sum()),
        }


def check_pairs(
    source_lengths: Lengths, target_lengths: Lengths, max_length: int, max_length_ratio: float
) -> PairFaults:
    """Check the token counts of a split's pairs."""
    shorter = np.minimum(source_lengths, target_lengths)
    longer = np.maximum(source_lengths, target_lengths)
    is_blank = shorter == 0
    return PairFaults(
        is_blank=is_blank,
        is_over_long=longer > max_length,
        is_ratio_outlier=~is_blank & (longer > max_length_ratio * shorter),
    )


@dataclass(frozen=True)
class SideAudit:
    """Token counts of one side of a split, over all pairs read."""

    tokens: int
    types: int
    unknown: int
    """tokens outside the vocabulary"""
    longest: int
    """number of tokens of the longest line"""

    @property
    def oov_rate(self) -> float:
        """Share of tokens outside the vocabulary."""
        return self.unknown / self.tokens if self.tokens else 0.0


@dataclass(frozen=True)
class SplitAudit:
    """Counts of a split's pairs. Faulty pairs are dropped from the training split only; elsewhere they are counted."""

    pairs_read: int
    pairs_kept: int
    blank: int
    over_long: int
    ratio_outliers: int
    duplicates: int
    """pairs equal to an earlier pair of the split"""
    dropped: dict[str, int]
    """training pairs dropped, by reason (their first fault)"""
    overlap_pairs: int
    """pairs that are also training pairs; 0 for train"""
    overlap_sources: int
    """pairs whose source is also a training source; 0 for train"""
    source: SideAudit
    target: SideAudit

    def to_dict(self) -> dict[str, Any]:
        """JSON values, with the OOV rates."""
        values = asdict(self)
        for side, audit in (("source", self.source), ("target", self.target)):
            values[side]["oov_rate"] = audit.oov_rate
        return values


def audit_lines(audit: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The audit of a corpus (`SplitAudit.to_dict` of each split) as two text tables."""
    pairs = [["split", "pairs", "kept", "blank", "over-long", "ratio", "duplicates", "in train", "source in train"]]
    tokens = [["split", "side", "tokens", "types", "longest", "OOV"]]
    for split, counts in audit.items():
        keys = ("pairs_read", "pairs_kept", "blank", "over_long", "ratio_outliers", "duplicates")
        overlap = [f"{counts[key]:,}" for key in ("overlap_pairs", "overlap_sources")]
        pairs.append([split, *(f"{counts[key]:,}" for key in keys), *(["-", "-"] if split == "train" else overlap)])
        for side in ("source", "target"):
            of_side = counts[side]
            sizes = [f"{of_side[key]:,}" for key in ("tokens", "types", "longest")]
            tokens.append([split, side, *sizes, f"{100 * of_side['oov_rate']:.2f} %"])
    return [*_aligned(pairs, num_left=1), "", *_aligned(tokens, num_left=2)]


def _aligned(rows: Sequence[Sequence[str]], num_left: int) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i < num_left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
