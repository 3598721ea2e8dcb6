"""The templates, and how they write numbers, tables and the origin of a measurement."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import jinja2
import yaml

from scripts.laboratory.harness.records import RECORDS, ROOT, Record, short_commit
from scripts.laboratory.pages import budgets
from scripts.laboratory.pages.race import mean_points
from seq2seq_attn.errors import UserError

DOCS = ROOT / "docs"
BOTTLENECK = DOCS / "bottleneck"
LEVERS = RECORDS / "levers"
MECHANISMS = RECORDS / "mechanisms"
LAST_COMMIT = "20d66b9"
"""the commit whose scripts and settings measured what the package and the laboratory no longer
have"""
TESTS = {
    "": (
        "paired bootstrap over sentences with sacreBLEU's formula, which counts one tail: a "
        "two-sided p is about twice as large. It covers neither seeds nor the number of comparisons"
    ),
    "bootstrap": (
        "two-sided paired bootstrap over sentences, with Holm's correction; it does not cover seeds"
    ),
    "bootstrap and seeds": "a two-sided test over seeds and sentences, with Holm's correction",
}
"""the tests that made the p-values of records; records from before the last two name no test"""
BLEU = (
    "BLEU counts the words and sequences of up to four words that a translation shares with a "
    "person's translation: 0 is none, 100 is the same text."
)


def render(template: str, **values: Any) -> str:
    """A document from its template in `templates/`, with single blank lines and one newline at its
    end."""
    text = _templates().get_template(template).render(**values)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


@cache
def load_yaml(name: str) -> Any:
    return yaml.safe_load((Path(__file__).parent / "templates" / name).read_text(encoding="utf-8"))


@cache
def _templates() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    options: dict[str, Any] = {
        "trim_blocks": True,
        "lstrip_blocks": True,
        "undefined": jinja2.StrictUndefined,
    }
    templates = jinja2.Environment(loader=loader, **options)
    filters = (count_of, grouped, interval, mean_sd, percent, provenance, ratio, ratios, times)
    templates.filters |= {function.__name__: function for function in filters}
    templates.filters |= {"f": format, "p": p_value, "with_settings": with_settings}
    functions = (mean_points, budgets.budget_measure, budgets.leave_one_out, budgets.shares_of_best)
    templates.filters |= {function.__name__: function for function in functions}
    templates.filters["prefix"] = lambda text, prefix: f"{prefix}{text}"
    templates.filters["point"] = lambda point: f"{point['label']} (n {point['num_pairs']})"
    templates.filters["by_name"] = lambda rows, key: {row["name"]: row[key] for row in rows}
    templates.globals |= {"table": table, "header": header, "cells": table_row, "shared": shared}
    templates.globals |= {"last_commit": LAST_COMMIT, "bleu_is": BLEU}
    return templates


def describe_tests(comparisons: Iterable[Record]) -> str:
    """The tests that made the p-values of comparisons, in words."""
    names = []
    for comparison in comparisons:
        is_old = "p_corrected" not in comparison
        names.append("" if is_old else comparison["test"])
    return "; or by ".join(TESTS[name] for name in dict.fromkeys(names))


def header(cells: Sequence[str], *, align: str = "---:") -> str:
    """The two lines above a table's rows; all columns but the first are aligned as `align` says."""
    return f"{table_row(cells)}\n|---|{f'{align}|' * (len(cells) - 1)}"


def table_row(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, align: str = "---:") -> str:
    """A whole table, of cells that may hold `|`."""
    escaped = ([str(cell).replace("|", r"\|") for cell in row] for row in rows)
    return "\n".join([header(head, align=align), *map(table_row, escaped)])


def replace_block(text: str, name: str, block: str) -> str:
    """A page with the lines between the two markers of a block replaced.

    Raises:
        UserError: the page lacks a marker.
    """
    begin = f"<!-- {name}: written by scripts/docs -->"
    end = f"<!-- end of {name} -->"
    head, has_begin, rest = text.partition(begin)
    _, has_end, tail = rest.partition(end)
    if not (has_begin and has_end):
        raise UserError(f"no lines {begin!r} ... {end!r}; put them back")
    return f"{head}{begin}\n\n{block}\n{end}{tail}"


def provenance(record: Record, command: str) -> str:
    """Command, hardware, versions, commit and date of a record."""
    device, torch, commit, date = _origin(record)
    return f"`scripts/{command}` (repository), {device}, torch {torch}, commit {commit}, {date}."


def origins(records: Mapping[str, Record]) -> list[list[str]]:
    """A row per record: its file, and where, with which versions and when it was measured."""
    return [[f"[{Path(name).name}]({name}.json)", *_origin(records[name])] for name in records]


def _origin(record: Record) -> list[str]:
    """Hardware, version of torch, commit and date of a record."""
    environment = record["environment"]
    commit = short_commit(environment)
    if (environment.get("git") or {}).get("is_dirty"):
        commit += " with changes"
    torch = environment["packages"]["torch"]
    return [environment["device_name"], torch, commit, environment["written_at"]]


def with_settings(settings: Sequence[str]) -> str:
    """The settings that were changed in a configuration, after its name; nothing without any."""
    return f" with `{' '.join(settings)}`" if settings else ""


def count_of(number: int, unit: str) -> str:
    """A number and its unit: `1 thread`, `2 threads`."""
    return f"{number} {unit}{'s' * (number != 1)}"


def shared(rows: Iterable[Record], key: str) -> str:
    """The different values of a key, in their order."""
    return ", ".join(dict.fromkeys(str(row[key]) for row in rows))


def grouped(values: Iterable[Record], *names: str) -> dict[tuple[Any, ...], list[Record]]:
    """Dictionaries by their values of the named keys."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for value in values:
        groups.setdefault(tuple(value[name] for name in names), []).append(value)
    return groups


def percent(share: float | None) -> str:
    """A share as a percentage; nothing without one."""
    return "" if share is None else f"{100 * share:.1f} %"


def p_value(value: float) -> str:
    """The p of a test; 1 / 1,001 is the least that 1,000 resamples can give."""
    return "≤ 0.001" if value <= 0.001 else f"{value:.3f}"


def ratio(value: float, bounds: Sequence[float] | None, *, digits: int = 2) -> str:
    """A value, with its interval where the record has it."""
    low_high = "" if bounds is None else f" [{', '.join(f'{end:.{digits}f}' for end in bounds)}]"
    return f"{value:.{digits}f}{low_high}"


def interval(score: Record, key: str = "value", *, digits: int = 1) -> str:
    """A value of a record with the bounds beside it."""
    return ratio(score[key], (score["low"], score["high"]), digits=digits)


def times(rows: Iterable[Record], name: str, other: str) -> str:
    """How many times as fast as `other` the contestant `name` is."""
    speeds = (
        row["ratios"][other] for row in rows if name in (row.get("name"), row.get("contestant"))
    )
    return f"{next(speeds):.1f}"


def ratios(values: Record, names: Iterable[str]) -> list[str]:
    """A row's ratios to the named contestants."""
    return [ratio(values["ratios"][name], values.get("intervals", {}).get(name)) for name in names]


def mean_sd(values: Sequence[float], *, digits: int = 1, sign: str = " ±") -> str:
    """The mean, with the standard deviation where there are several values; nothing without any."""
    if not values:
        return ""
    deviation = f"{sign}{stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{deviation}"
