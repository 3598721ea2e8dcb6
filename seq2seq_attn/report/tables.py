"""Tables of scores and attention statistics, as aligned text for the terminal and as Markdown.

An arm is a group of runs that differ only in their seed; tables show the mean of its runs. A bucket
holds the sentence pairs of a range of lengths.
"""

import html
import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from seq2seq_attn.evaluation.results import ArmScore, BucketScores, SetScores
from seq2seq_attn.metrics.attention import DROPPED_BELOW, REPEATED_ABOVE, AttentionScore
from seq2seq_attn.metrics.by_length import MIN_PAIRS
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.text.normalize import display_width

THIN_MARK = "*"
THIN_NOTE = f"{THIN_MARK} fewer than {MIN_PAIRS} sentence pairs: mostly noise"
ATTENTION_NOTE = (
    "entropy: of the attention, nats per target token; dropped, repeated: source words whose "
    f"attention, summed over the target words, is below {DROPPED_BELOW:g}, above "
    f"{REPEATED_ABOVE:g}; missing, excess: words of the reference that the hypothesis lacks in any "
    "order, and the other way round"
)
GOLD_NOTE = (
    "gold links: forced decoding of the references; shift +1: the attention of the next target "
    "word, -1: of the one before; mass: share of the attention that falls on linked words"
)
_FIELDS = ("entropy", "dropped", "repeated", "missing", "excess")
_GOLD_FIELDS = ("error_rate", "precision", "recall", "mass")


class Table(NamedTuple):
    """A header and rows of strings. The first column is text; the other columns are numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_text(self) -> str:
        """Return the table as text with aligned columns and a rule under the header."""
        columns = zip(self.header, *self.rows, strict=True)
        widths = [max(map(display_width, column)) for column in columns]
        rule = ["-" * width for width in widths]
        lines = []
        for cells in (self.header, rule, *self.rows):
            padded: list[str] = []
            for cell, width in zip(cells, widths, strict=True):
                space = " " * (width - display_width(cell))
                padded.append(space + cell if padded else cell + space)
            lines.append("  ".join(padded).rstrip())
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """Return the table in GitHub's Markdown, with markup in cells escaped."""
        marks = [":--"] + ["--:"] * (len(self.header) - 1)
        lines = []
        for row in (self.header, marks, *self.rows):
            cells = [escape_markdown(cell).replace("|", "\\|") for cell in row]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)


def escape_markdown(text: str) -> str:
    """Return the text in a single line, with HTML and inline links escaped. Markup of emphasis and
    code is not escaped."""
    return html.escape(" ".join(text.split()), quote=False).replace("](", "]\\(")


def summary_table(sets: Sequence[SetScores], metric: str) -> Table:
    """Return a table with a row for each test set.

    A row has the score and interval of each arm, and with two arms also the difference and p.
    """
    rows = []
    for scores in sets:
        cells = _score_cells(scores.whole.scores[metric])
        rows.append([scores.name, f"{scores.num_pairs:,}", *cells])
    return Table([METRICS[metric].title, "n", *_headers(sets[0])], rows)


def score_table(scores: SetScores) -> Table:
    """Return a table with a row for each metric.

    A row has the score and interval of each arm, and with two arms also the difference and p.
    """
    rows = []
    for metric, arm_scores in scores.whole.scores.items():
        rows.append([METRICS[metric].title, *_score_cells(arm_scores)])
    return Table(["measure", *_headers(scores)], rows)


def seeds_table(scores: SetScores) -> Table:
    """Return a table with a row for each metric and arm.

    A row has the number of seeds, and the mean, standard deviation and extremes of their scores.
    """
    rows = []
    for metric, arm_scores in scores.whole.scores.items():
        title = METRICS[metric].title
        for arm, score in zip(scores.arms, arm_scores, strict=True):
            deviation = "-" if score.deviation is None else f"{score.deviation:.2f}"
            extremes = f"{min(score.values):.1f} to {max(score.values):.1f}"
            mean = f"{score.interval.value:.1f}"
            rows.append([title, arm.name, str(len(score.values)), mean, deviation, extremes])
            title = ""  # The title of a metric stands in its first row only.
    return Table(["measure", "arm", "seeds", "mean", "sd", "min to max"], rows)


def length_table(scores: SetScores, metric: str) -> Table:
    """Return a table with a row for each bucket, and, if there are several buckets, a row for the
    whole set.

    A row has the number of sentence pairs, and the score and interval of each arm. With two arms, a
    row also has the difference, p, and the second arm's score divided by the first arm's score.
    """
    header = [scores.unit, f"n of {scores.num_pairs:,}", *_headers(scores)]
    is_pair = len(scores.arms) == 2
    if is_pair:
        header.append("kept")
    rows = []
    for label, row in _labelled_rows(scores):
        arm_scores = row.scores[metric]
        cells = [label, f"{len(row.bucket):,}", *_score_cells(arm_scores)]
        if is_pair:
            cells.append(_kept_cell(arm_scores[1]))
        rows.append(cells)
    return Table(header, rows)


def comparison_table(scores: SetScores, metric: str) -> Table:
    """Return a table that compares each arm with the first arm. The rows are those of
    `length_table`, which has no room for comparisons if there are three or more arms.

    A cell has the difference, p, and the arm's score divided by the first arm's score.
    """
    rows = []
    for label, row in _labelled_rows(scores):
        cells = [label]
        for score in row.scores[metric][1:]:
            cells.append("  ".join([*_comparison_cells(score), _kept_cell(score)]))
        rows.append(cells)
    headers = [f"{arm.name}: difference, p, kept" for arm in scores.arms[1:]]
    return Table([scores.unit, *headers], rows)


def _labelled_rows(scores: SetScores) -> list[tuple[str, BucketScores]]:
    """Return each bucket, and the whole set if there are several buckets, with a label. The label
    of a bucket with too few sentence pairs ends in `THIN_MARK`."""
    rows = []
    for row in scores.buckets:
        mark = THIN_MARK if row.bucket.is_thin else ""
        rows.append((row.bucket.label + mark, row))
    if len(rows) > 1:
        rows.append((scores.whole.bucket.label, scores.whole))
    return rows


def _headers(scores: SetScores) -> list[str]:
    headers = [arm.name for arm in scores.arms]
    if len(headers) == 2:
        headers += ["difference", "p"]
    return headers


def _score_cells(scores: Sequence[ArmScore]) -> list[str]:
    cells = []
    for score in scores:
        spread = "" if score.deviation is None else f" ± {score.deviation:.1f}"
        cells.append(score.interval.to_text(unit=spread))
    if len(scores) == 2:
        cells += _comparison_cells(scores[1])
    return cells


def _comparison_cells(score: ArmScore) -> list[str]:
    """Return the difference from the first arm, and the corrected p, which is `-` if there are too
    few sentence pairs."""
    assert score.bootstrap is not None  # Only the first arm has no comparison.
    difference = f"{score.bootstrap.difference:+.1f}"
    if difference in ("+0.0", "-0.0"):
        difference = "0.0"
    p_value = score.bootstrap.p_corrected
    if p_value is None:
        return [difference, "-"]
    return [difference, "<0.001" if p_value < 0.001 else f"{p_value:.3f}"]


def _kept_cell(score: ArmScore) -> str:
    return "-" if score.retention is None else score.retention.to_text(num_digits=2)


def attention_table(scores: SetScores) -> Table:
    """Return a table of attention statistics with a row for each bucket and arm.

    If there are several buckets, the whole set has rows too.
    """
    rows = []
    for label, row in _labelled_rows(scores):
        for name, runs in _attention_by_arm(scores, row):
            means = []
            for field in _FIELDS:
                values = [getattr(run, field) for run in runs]
                means.append(None if None in values else fmean(values))
            entropy = "-" if means[0] is None else f"{means[0]:.2f}"
            rows.append([label, name, entropy, *map(_percent, means[1:])])
            label = ""  # The label of a bucket stands in its first row only.
    return Table([scores.unit, "arm" if scores.is_grouped else "run", *_FIELDS], rows)


def gold_table(scores: SetScores) -> Table:
    """Return a table of scores against gold links with a row for each arm and shift.

    A row has the error rate, precision, recall and mass. There are no rows without gold links.
    """
    rows = []
    for name, runs in _attention_by_arm(scores, scores.whole):
        for shift in runs[0].gold:
            cells = [name, f"{shift:+d}" if shift else "0"]
            for field in _GOLD_FIELDS:
                values = [getattr(run.gold[shift], field) for run in runs]
                cells.append(_percent(fmean(values)))
            rows.append(cells)
            name = ""  # The name of an arm stands in its first row only.
    header = ["arm" if scores.is_grouped else "run", "shift", "AER", "precision", "recall", "mass"]
    return Table(header, rows)


def _attention_by_arm(
    scores: SetScores, row: BucketScores
) -> list[tuple[str, list[AttentionScore]]]:
    """Return the name of each arm with the attention statistics of its runs. Return an empty list
    if attention was not analyzed."""
    if not row.attention:
        return []
    return [(arm.name, [row.attention[index] for index in arm.runs]) for arm in scores.arms]


def _percent(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{100 * value:.1f} %"
