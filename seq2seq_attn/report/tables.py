"""Tables: aligned text for the terminal, and Markdown. A table is a header and rows of strings."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from seq2seq_attn.evaluation.scores import ArmScore, SetScores
from seq2seq_attn.metrics.bleu import TITLES
from seq2seq_attn.metrics.by_length import MIN_PAIRS
from seq2seq_attn.metrics.names import MeasureName

THIN_MARK = "*"
THIN_NOTE = f"{THIN_MARK} fewer than {MIN_PAIRS} sentence pairs: mostly noise"


@dataclass(frozen=True)
class Table:
    """A header and rows; the first column is text, the others are numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_text(self) -> str:
        """Columns aligned and separated by two spaces, a rule under the header."""
        widths = [max(map(display_width, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = [self.header, ["-" * width for width in widths], *self.rows]
        return "\n".join(_align(line, widths) for line in lines)

    def to_markdown(self) -> str:
        """A GitHub table; markup in cells is escaped."""
        marks = [":--" if column == 0 else "--:" for column in range(len(self.header))]
        lines = [self.header, marks, *self.rows]
        return "\n".join(
            "| " + " | ".join(escape_markdown(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
        )


def escape_markdown(text: str) -> str:
    """The text in one line, without HTML and inline links; marks of emphasis and code are kept."""
    return html.escape(" ".join(text.split()), quote=False).replace("](", "]\\(")


def display_width(text: str) -> int:
    """The terminal columns that a text takes: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text filled with spaces to a display width, aligned left or right."""
    spaces = " " * max(0, width - display_width(text))
    return spaces + text if right else text + spaces


def _align(cells: Sequence[str], widths: Sequence[int]) -> str:
    numbers = zip(cells[1:], widths[1:], strict=True)
    return "  ".join([pad(cells[0], widths[0]), *(pad(cell, width, right=True) for cell, width in numbers)]).rstrip()


def summary_table(sets: Sequence[SetScores], measure: MeasureName) -> Table:
    """One row per test set: each arm's score and interval; with two arms also difference and p."""
    rows = [[of_set.name, f"{of_set.num_pairs:,}", *_score_cells(of_set.scores[measure])] for of_set in sets]
    return Table([TITLES[measure], "n", *_arm_headers(sets[0])], rows)


def score_table(scores: SetScores) -> Table:
    """One row per measure: each arm's score and interval; with two arms also difference and p."""
    rows = [[TITLES[name], *_score_cells(of_arms)] for name, of_arms in scores.scores.items()]
    return Table(["measure", *_arm_headers(scores)], rows)


def seeds_table(scores: SetScores) -> Table:
    """One row per measure and arm: number of seeds, their mean, standard deviation and extremes."""
    rows = []
    for measure, of_arms in scores.scores.items():
        title = TITLES[measure]
        for arm, score in zip(scores.arms, of_arms, strict=True):
            spread = score.spread
            deviation = "-" if spread.standard_deviation is None else f"{spread.standard_deviation:.2f}"
            extremes = f"{spread.min:.1f} to {spread.max:.1f}"
            rows.append([title, arm.name, str(spread.num_seeds), f"{spread.mean:.1f}", deviation, extremes])
            title = ""
    return Table(["measure", "arm", "seeds", "mean", "sd", "min to max"], rows)


def length_table(scores: SetScores, measure: MeasureName = "bleu", *, unit: str = "source tokens") -> Table:
    """One row per bucket, and one for the whole set if there are several: n, each arm's score and interval; with two
    arms also difference, p and the share of the first arm's score that the second keeps."""
    rows = []
    for label, num_pairs, of_arms, is_thin in _length_rows(scores, measure):
        rows.append([label, f"{num_pairs:,}", *_score_cells(of_arms, with_retention=True, is_thin=is_thin)])
    return Table([unit, "n", *_arm_headers(scores, with_retention=True)], rows)


def comparison_table(scores: SetScores, measure: MeasureName = "bleu", *, unit: str = "source tokens") -> Table:
    """The rows of `length_table`: of each arm after the first the difference to the first, p and the share kept. For
    three arms and more, where `length_table` has no room for them."""
    rows = []
    for label, _, of_arms, is_thin in _length_rows(scores, measure):
        compared = [_comparison_cells(score, with_retention=True, is_thin=is_thin) for score in of_arms[1:]]
        rows.append([label, *("  ".join(cells) for cells in compared)])
    return Table([unit, *(f"{arm.name}: difference, p, kept" for arm in scores.arms[1:])], rows)


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


def _length_rows(scores: SetScores, measure: MeasureName) -> list[tuple[str, int, list[ArmScore], bool]]:
    rows = []
    for row in scores.buckets:
        is_thin = row.bucket.is_thin
        rows.append((row.bucket.label + THIN_MARK * is_thin, len(row.bucket), row.scores[measure], is_thin))
    return rows if len(rows) == 1 else [*rows, ("all", scores.num_pairs, scores.scores[measure], False)]


def _arm_headers(scores: SetScores, *, with_retention: bool = False) -> list[str]:
    comparison = ["difference", "p", *(["kept"] if with_retention else [])]
    return [*(arm.name for arm in scores.arms), *(comparison if len(scores.arms) == 2 else [])]


def _score_cells(scores: Sequence[ArmScore], *, with_retention: bool = False, is_thin: bool = False) -> list[str]:
    compared = _comparison_cells(scores[1], with_retention=with_retention, is_thin=is_thin) if len(scores) == 2 else []
    return [*map(_score_cell, scores), *compared]


def _score_cell(score: ArmScore) -> str:
    deviation, interval = score.spread.standard_deviation, score.interval
    spread = "" if deviation is None else f" ± {deviation:.1f}"
    return f"{interval.value:.1f}{spread} [{interval.low:.1f}, {interval.high:.1f}]"


def _comparison_cells(score: ArmScore, *, with_retention: bool, is_thin: bool) -> list[str]:
    """`is_thin`: of so few pairs that the bootstrap's p would be far too small."""
    if score.bootstrap is None:
        raise ValueError("an arm after the first needs its paired test")
    cells = [format_difference(score.bootstrap.difference), "-" if is_thin else format_p(score.bootstrap.p_value)]
    if with_retention:
        kept = score.retention
        cells.append(f"{kept.value:.2f} [{kept.low:.2f}, {kept.high:.2f}]" if kept else "-")
    return cells
