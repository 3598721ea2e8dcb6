"""Parallel text: reading it, checking it, and saying what is in it."""

from __future__ import annotations

import io
import zlib
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


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text, plain or `.gz`. Only '\\n' ends a line (`str.splitlines` would also cut at U+2028 and
    others); one '\\r' before it is dropped, and a last line needs no '\\n'.

    Raises:
        UserError: the file is missing, is not gzip though it is called so, or is not UTF-8 (with file and line).
    """
    return list(iter_lines(path))


def iter_lines(path: Path) -> Iterator[str]:
    """The same lines one by one: no more than a buffer of the file is in memory.

    Raises:
        UserError: as `read_lines`, when the place is reached.
    """
    for number, line in enumerate(iter_raw_lines(path), 1):
        yield _decode(path, number, line)


def iter_raw_lines(path: Path) -> Iterator[bytes]:
    """The same lines as bytes, unchecked.

    Raises:
        UserError: the file is missing, or is not gzip though it is called so.
    """
    with _open(path) as stream:
        for line in stream:
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def count_lines(path: Path) -> int:
    """The number of lines, after all of the file was checked.

    Raises:
        UserError: as `read_lines`.
    """
    count = 0
    with _open(path) as stream:
        while lines := stream.readlines(_BLOCK_BYTES):
            try:
                b"".join(lines).decode("utf-8")
            except UnicodeDecodeError:
                for number, line in enumerate(lines, count + 1):
                    _decode(path, number, line)
            count += len(lines)
    return count


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    try:
        # gzip's own lines are read by Python code; the buffer's are not
        with open_text_bytes(path) as stream, io.BufferedReader(stream, _BLOCK_BYTES) as buffered:  # type: ignore[type-var]
            yield buffered
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None


def _decode(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, line {number}: not UTF-8 (byte {line[error.start]:#04x}); convert the file, "
            "for example with iconv -t UTF-8"
        ) from None


def read_pairs(source_path: Path, target_path: Path) -> tuple[list[str], list[str]]:
    """The lines of both sides.

    Raises:
        UserError: as `read_lines`; or the files have different numbers of lines.
    """
    source, target = read_lines(source_path), read_lines(target_path)
    _check_aligned(source_path, len(source), target_path, len(target))
    return source, target


def count_pairs(source_path: Path, target_path: Path) -> int:
    """The number of pairs, after all of both files was checked, in constant memory.

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
class Faults:
    """What is wrong with which pairs of a split; a pair can be several."""

    is_blank: Bools
    """a side has no token"""
    is_over_long: Bools
    """a side has more than `max_length` tokens"""
    is_ratio_outlier: Bools
    """neither side is blank and one is more than `max_length_ratio` times as long as the other"""

    @property
    def is_good(self) -> Bools:
        """Nothing is wrong with the pair."""
        return ~(self.is_blank | self.is_over_long | self.is_ratio_outlier)

    def counts(self) -> dict[str, int]:
        """Number of pairs with each fault."""
        return {
            "blank": int(self.is_blank.sum()),
            "over_long": int(self.is_over_long.sum()),
            "ratio_outliers": int(self.is_ratio_outlier.sum()),
        }

    def first(self) -> dict[str, int]:
        """Number of pairs by the first fault of each: the reason to drop it."""
        over_long = self.is_over_long & ~self.is_blank
        ratio = self.is_ratio_outlier & ~over_long
        return {"blank": int(self.is_blank.sum()), "over_long": int(over_long.sum()), "ratio": int(ratio.sum())}


def find_faults(source_lengths: Lengths, target_lengths: Lengths, max_length: int, max_length_ratio: float) -> Faults:
    """Check the token lengths of a split's pairs."""
    shorter = np.minimum(source_lengths, target_lengths)
    longer = np.maximum(source_lengths, target_lengths)
    is_blank = shorter == 0
    return Faults(
        is_blank=is_blank,
        is_over_long=longer > max_length,
        is_ratio_outlier=~is_blank & (longer > max_length_ratio * shorter),
    )


@dataclass(frozen=True)
class SideAudit:
    """One side of a split, all pairs read."""

    tokens: int
    types: int
    unknown: int
    """tokens without an id of their own"""
    longest: int
    """tokens of the longest line"""

    @property
    def oov_rate(self) -> float:
        """Share of tokens without an id of their own."""
        return self.unknown / self.tokens if self.tokens else 0.0


@dataclass(frozen=True)
class SplitAudit:
    """What is in a split. Only training pairs are dropped; of the others the same faults are counted."""

    pairs_read: int
    pairs_kept: int
    blank: int
    over_long: int
    ratio_outliers: int
    duplicates: int
    """pairs that are equal to an earlier one of the split"""
    dropped: dict[str, int]
    """training pairs left out, by the first reason"""
    overlap_pairs: int
    """pairs that are training pairs too; 0 for train"""
    overlap_sources: int
    """pairs whose source is a training source too; 0 for train"""
    source: SideAudit
    target: SideAudit

    def to_dict(self) -> dict[str, Any]:
        """Plain values, OOV rates included."""
        values = asdict(self)
        for side, audit in (("source", self.source), ("target", self.target)):
            values[side]["oov_rate"] = audit.oov_rate
        return values


def audit_lines(audit: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The audit of a corpus (`SplitAudit.to_dict` of each split, train among them) as two tables."""
    pairs = [["split", "pairs", "kept", "blank", "over-long", "ratio", "duplicates", "in train", "source in train"]]
    tokens = [["split", "side", "tokens", "types", "longest", "OOV"]]
    for split, found in audit.items():
        keys = ("pairs_read", "pairs_kept", "blank", "over_long", "ratio_outliers", "duplicates")
        overlap = [f"{found[key]:,}" for key in ("overlap_pairs", "overlap_sources")]
        pairs.append([split, *(f"{found[key]:,}" for key in keys), *(["-", "-"] if split == "train" else overlap)])
        for side in ("source", "target"):
            figures = found[side]
            counts = [f"{figures[key]:,}" for key in ("tokens", "types", "longest")]
            tokens.append([split, side, *counts, f"{100 * figures['oov_rate']:.2f} %"])
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
