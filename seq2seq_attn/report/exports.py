"""Scores for other programs: one CSV row per score, and the tables of the page in LaTeX."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seq2seq_attn.evaluation.scores import ArmScore, BucketScores, SetScores
from seq2seq_attn.metrics.by_length import MIN_PAIRS
from seq2seq_attn.report.tables import Table

COLUMNS = (
    *("test_set", "num_concatenated", "length", "lower", "upper", "num_pairs", "is_thin", "measure"),
    *("kind", "name", "num_seeds", "score", "sd", "low", "high"),
    *("difference", "p_value", "kept", "kept_low", "kept_high"),
)

_LATEX = {
    **{char: f"\\{char}" for char in "{}$&#%_"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "±": r"$\pm$",
}


def csv_text(sets: Sequence[SetScores]) -> str:
    """A row for each test set, length bucket (and all lengths), measure, and run or arm; empty cells are not known."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for scores in sets:
        about = {"test_set": scores.name, "num_concatenated": scores.num_concatenated}
        whole = {"length": "all", "num_pairs": scores.num_pairs, "is_thin": scores.num_pairs < MIN_PAIRS}
        for row in _rows(scores, scores):
            writer.writerow(_guarded(about | whole | row))
        for part in scores.buckets:
            bucket = part.bucket
            where = {"length": bucket.label, "lower": bucket.lower, "upper": bucket.upper}
            for row in _rows(scores, part):
                writer.writerow(_guarded(about | where | {"num_pairs": len(bucket), "is_thin": bucket.is_thin} | row))
    return out.getvalue()


def _guarded(row: dict[str, Any]) -> dict[str, Any]:
    """The row without text that a spreadsheet would take for a formula."""
    return {key: f"'{cell}" if str(cell)[:1] in "=+-@" and isinstance(cell, str) else cell for key, cell in row.items()}


def _rows(scores: SetScores, part: SetScores | BucketScores) -> Iterator[dict[str, Any]]:
    for measure in part.scores:
        for run, score in zip(scores.runs, part.run_scores[measure], strict=True):
            yield {"measure": measure, "kind": "run", "name": run, **_values(score)}
    for measure in part.scores if scores.is_grouped else ():
        for arm, score in zip(scores.arms, part.scores[measure], strict=True):
            yield {"measure": measure, "kind": "arm", "name": arm.name, **_values(score)}


def _values(score: ArmScore) -> dict[str, Any]:
    interval, test, kept = score.interval, score.bootstrap, score.retention
    values = {"num_seeds": score.spread.num_seeds, "sd": score.spread.standard_deviation}
    values |= {"score": interval.value, "low": interval.low, "high": interval.high}
    if test is not None:
        values |= {"difference": test.difference, "p_value": test.p_value}
    if kept is not None:
        values |= {"kept": kept.value, "kept_low": kept.low, "kept_high": kept.high}
    return values


def latex_text(tables: Mapping[str, tuple[str, Table]]) -> str:
    r"""A file to `\input`: each table, by its label, with its caption, in booktabs' style, in UTF-8."""
    return "\n".join(["% needs \\usepackage{booktabs}", *(_latex_table(key, *tables[key]) for key in tables)])


def escape_latex(text: str) -> str:
    """Text that stays text in LaTeX; a character that its standard fonts lack becomes its number, U+65E5."""
    return "".join(map(_latex_character, unicodedata.normalize("NFC", " ".join(text.split()))))


def _latex_character(char: str) -> str:
    if char in _LATEX:
        return _LATEX[char]
    if char.isascii():
        return char if char.isprintable() else " "
    is_latin = unicodedata.normalize("NFD", char)[0].isascii() or char in "ßæÆøØœŒłŁđıÐðÞþ"
    return char if is_latin and char < "\u0180" else f"U+{ord(char):04X}"


def _latex_cell(cell: str) -> str:
    """A cell with minus signs in place of the hyphens of numbers."""
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", "--" if cell == "-" else escape_latex(cell))


def _latex_table(label: str, caption: str, table: Table) -> str:
    header, *rows = ([_latex_cell(cell) for cell in line] for line in (table.header, *table.rows))
    # A row that begins with a bracket would be read as an option of the row before.
    lines = [" & ".join([f"{{{row[0]}}}", *row[1:]]) + r" \\" for row in rows]
    columns = "l" + "r" * (len(header) - 1)
    return "\n".join(
        [
            r"\begin{table}[htbp]",
            r"\centering",
            rf"\caption{{{escape_latex(caption)}}}",
            rf"\label{{tab:{re.sub(r'[^a-z0-9]+', '-', label.lower())}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(header) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )
