"""Markdown pages written from records. Needs nothing beyond the standard library and this package."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from scripts.laboratory.harness.records import Record
from seq2seq_attn.errors import UserError

PAIRED_BOOTSTRAP = "one-sided paired bootstrap (a two-sided p is about twice as large)"
"""the test of most pages"""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = "---:") -> list[str]:
    """The lines of a table; all columns but the first are aligned as `align` says."""
    lines = [f"| {' | '.join(header)} |", f"|---|{f'{align}|' * (len(header) - 1)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]


def replace_block(text: str, begin: str, end: str, block: str) -> str:
    """A page with the lines between two marks replaced.

    Raises:
        UserError: the page lacks a mark.
    """
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise UserError(f"no lines {begin!r} ... {end!r}; put them back")
    return f"{before}{begin}\n{block}\n{end}{after}"


def provenance(record: Record, script: str) -> str:
    """Script, hardware, versions, commit and date of a record."""
    environment = record["environment"]
    git = environment.get("git") or {}
    changes = " with changes" if git.get("is_dirty") else ""
    return (
        f"`scripts/{script}`, {environment['device_name']}, torch {environment['packages']['torch']}, "
        f"commit {git.get('commit', 'unknown')[:12]}{changes}, {environment['written_at']}."
    )


def with_settings(settings: Sequence[str]) -> str:
    """The settings that were changed in a configuration, after its name; nothing without any."""
    return f" with `{' '.join(settings)}`" if settings else ""


def count_of(number: int, unit: str) -> str:
    """A number and its unit: `1 thread`, `2 threads`."""
    return f"{number} {unit}{'s' * (number != 1)}"


def percent(share: float | None) -> str:
    """A share as a percentage; nothing without one."""
    return "" if share is None else f"{100 * share:.1f} %"


def p_value(value: float) -> str:
    """The p of a test; 1 / 1,001 is the least that 1,000 resamples can give."""
    return "≤ 0.001" if value <= 0.001 else f"{value:.3f}"


def ratio_cell(value: float, interval: Sequence[float] | None, *, digits: int = 2) -> str:
    """A ratio, with its interval where the record has it."""
    low_high = "" if interval is None else f" [{', '.join(f'{end:.{digits}f}' for end in interval)}]"
    return f"{value:.{digits}f}{low_high}"


def interval_cell(found: Record, *, key: str = "value", digits: int = 1) -> str:
    """A value with its interval."""
    return ratio_cell(found[key], (found["low"], found["high"]), digits=digits)


def mean_cell(values: Sequence[float]) -> str:
    """The mean, with the standard deviation where there are several values; nothing without any."""
    if not values:
        return ""
    return f"{fmean(values):.1f}" + (f" ±{stdev(values):.1f}" if len(values) > 1 else "")


def ratio_cells(row: Record, names: Sequence[str]) -> list[str]:
    """A row's ratios to the named contestants."""
    return [ratio_cell(row["ratios"][name], row.get("intervals", {}).get(name)) for name in names]
