"""Tables: aligned text for the terminal, and Markdown. A table is a header and rows of strings."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from seq2seq_attn.evaluation.scores import SetScores, SystemScore
from seq2seq_attn.metrics.bleu import TITLES, MeasureName
from seq2seq_attn.metrics.by_length import MIN_PAIRS

THIN_MARK = "*"
THIN_NOTE = f"{THIN_MARK} fewer than {MIN_PAIRS} sentence pairs: mostly noise"


@dataclass(frozen=True)
class Table:
    """A header and rows; the first column is text, the others are numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_text(self) -> str:
        """Aligned columns, two blanks apart, a rule under the header."""
        widths = [max(map(display_width, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = [self.header, ["-" * width for width in widths], *self.rows]
        return "\n".join(_align(line, widths) for line in lines)

    def to_markdown(self) -> str:
        """A GitHub table; what Markdown would read as markup in a cell is escaped."""
        marks = [":--" if column == 0 else "--:" for column in range(len(self.header))]
        lines = [self.header, marks, *self.rows]
        return "\n".join(
            "| " + " | ".join(escape_markdown(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
        )


def escape_markdown(text: str) -> str:
    """Text that stays text in Markdown: no HTML, no links, no line breaks."""
    return html.escape(" ".join(text.split()), quote=False).replace("](", "]\\(")


def display_width(text: str) -> int:
    """The terminal columns that a text takes: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text with blanks up to a display width, flush right or left."""
    blanks = " " * max(0, width - display_width(text))
    return blanks + text if right else text + blanks


def _align(cells: Sequence[str], widths: Sequence[int]) -> str:
    numbers = zip(cells[1:], widths[1:], strict=True)
    return "  ".join([pad(cells[0], widths[0]), *(pad(cell, width, right=True) for cell, width in numbers)]).rstrip()


def summary_table(sets: Sequence[SetScores], measure: MeasureName) -> Table:
    """One row a test set: each run's score and interval; with two runs also difference and p."""
    rows = [[one.name, f"{one.num_pairs:,}", *_score_cells(one.scores[measure])] for one in sets]
    return Table([TITLES[measure], "n", *_run_headers(sets[0].systems)], rows)


def score_table(scores: SetScores) -> Table:
    """One row a measure: each run's score and interval; with two runs also difference and p."""
    rows = [[TITLES[name], *_score_cells(of_systems)] for name, of_systems in scores.scores.items()]
    return Table(["measure", *_run_headers(scores.systems)], rows)


def length_table(scores: SetScores, measure: MeasureName = "bleu", *, unit: str = "source tokens") -> Table:
    """One row a bucket, and one for the whole set: n, each run's score and interval; with two runs also difference, p
    and the share of the first run's score that the second keeps."""
    rows = []
    for label, num_pairs, of_systems in _length_rows(scores, measure):
        rows.append([label, f"{num_pairs:,}", *_score_cells(of_systems, with_retention=True)])
    return Table([unit, "n", *_run_headers(scores.systems, with_retention=True)], rows)


def comparison_table(scores: SetScores, measure: MeasureName = "bleu", *, unit: str = "source tokens") -> Table:
    """One row a bucket, and one for the whole set: of each run after the first the difference to the first, p and the
    share kept. For three runs and more, where `length_table` has no room for them."""
    rows = []
    for label, _, of_systems in _length_rows(scores, measure):
        compared = [_comparison_cells(score, with_retention=True) for score in of_systems[1:]]
        rows.append([label, *("  ".join(cells) for cells in compared)])
    return Table([unit, *(f"{system}: difference, p, kept" for system in scores.systems[1:])], rows)


def has_thin_bucket(scores: SetScores) -> bool:
    """Whether a table of this set needs `THIN_NOTE`."""
    return any(row.bucket.is_thin for row in scores.buckets)


def format_difference(difference: float) -> str:
    """One decimal with its sign; what rounds to zero has none."""
    text = f"{difference:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def format_p(p_value: float) -> str:
    """Three decimals; `<0.001` below them."""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _length_rows(scores: SetScores, measure: MeasureName) -> list[tuple[str, int, list[SystemScore]]]:
    rows = []
    for row in scores.buckets:
        mark = THIN_MARK if row.bucket.is_thin else ""
        rows.append((row.bucket.label + mark, len(row.bucket), row.scores[measure]))
    return [*rows, ("all", scores.num_pairs, scores.scores[measure])]


def _run_headers(systems: Sequence[str], *, with_retention: bool = False) -> list[str]:
    comparison = ["difference", "p", *(["kept"] if with_retention else [])]
    return [*systems, *(comparison if len(systems) == 2 else [])]


def _score_cells(scores: Sequence[SystemScore], *, with_retention: bool = False) -> list[str]:
    cells = [f"{s.interval.value:.1f} [{s.interval.low:.1f}, {s.interval.high:.1f}]" for s in scores]
    return [*cells, *(_comparison_cells(scores[1], with_retention) if len(scores) == 2 else [])]


def _comparison_cells(score: SystemScore, with_retention: bool) -> list[str]:
    if score.bootstrap is None:
        raise ValueError("a run after the first needs its paired test")
    cells = [format_difference(score.bootstrap.difference), format_p(score.bootstrap.p_value)]
    if with_retention:
        kept = score.retention
        cells.append(f"{kept.value:.2f} [{kept.low:.2f}, {kept.high:.2f}]" if kept else "-")
    return cells
