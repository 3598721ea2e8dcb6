"""Tables of scores and of the attention analysis, as aligned text for the terminal and as Markdown.
A table is a header and rows of strings. Where a system is an arm of several runs, it shows their
mean."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

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
    f"{REPEATED_ABOVE:g}; missing, excess: words of the reference that the hypothesis lacks, and "
    "the other way round"
)
GOLD_NOTE = (
    "gold links: forced decoding of the references; shift +1: the attention of the next target "
    "word, -1: of the one before; mass: share of the attention that falls on linked words"
)
_FIELDS = ("entropy", "dropped", "repeated", "missing", "excess")
_GOLD_FIELDS = ("error_rate", "precision", "recall", "mass")


@dataclass(frozen=True)
class Table:
    """A header and rows; the first column is text, the others are numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_text(self) -> str:
        """Columns aligned and separated by two spaces, a rule under the header."""
        widths = [
            max(map(display_width, column)) for column in zip(self.header, *self.rows, strict=True)
        ]
        lines = []
        for cells in (self.header, ["-" * width for width in widths], *self.rows):
            spaces = [
                " " * (width - display_width(cell))
                for cell, width in zip(cells, widths, strict=True)
            ]
            numbers = [space + cell for space, cell in zip(spaces[1:], cells[1:], strict=True)]
            lines.append("  ".join([cells[0] + spaces[0], *numbers]).rstrip())
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """A GitHub table; markup in cells is escaped."""
        marks = [":--" if column == 0 else "--:" for column in range(len(self.header))]
        lines = [self.header, marks, *self.rows]
        return "\n".join(
            "| " + " | ".join(escape_markdown(cell).replace("|", "\\|") for cell in line) + " |"
            for line in lines
        )


def escape_markdown(text: str) -> str:
    """The text in one line, without HTML and inline links; marks of emphasis and code are kept."""
    return html.escape(" ".join(text.split()), quote=False).replace("](", "]\\(")


def summary_table(sets: Sequence[SetScores], metric: str) -> Table:
    """One row per test set: each arm's score and interval; with two arms also difference and p."""
    rows = [
        [scores.name, f"{scores.num_pairs:,}", *_score_cells(scores.whole.scores[metric])]
        for scores in sets
    ]
    return Table([METRICS[metric].title, "n", *_arm_headers(sets[0])], rows)


def score_table(scores: SetScores) -> Table:
    """One row per metric: each arm's score and interval; with two arms also difference and p."""
    rows = [
        [METRICS[metric].title, *_score_cells(arm_scores)]
        for metric, arm_scores in scores.whole.scores.items()
    ]
    return Table(["measure", *_arm_headers(scores)], rows)


def seeds_table(scores: SetScores) -> Table:
    """One row per metric and arm: number of seeds, their mean, standard deviation and extremes."""
    rows = []
    for metric, arm_scores in scores.whole.scores.items():
        title = METRICS[metric].title
        for arm, score in zip(scores.arms, arm_scores, strict=True):
            deviation = "-" if score.deviation is None else f"{score.deviation:.2f}"
            extremes = f"{min(score.values):.1f} to {max(score.values):.1f}"
            rows.append(
                [
                    title,
                    arm.name,
                    str(len(score.values)),
                    f"{score.interval.value:.1f}",
                    deviation,
                    extremes,
                ]
            )
            title = ""
    return Table(["measure", "arm", "seeds", "mean", "sd", "min to max"], rows)


def length_table(scores: SetScores, metric: str = "bleu", *, unit: str = "source tokens") -> Table:
    """One row per bucket, and one for the whole set if there are several: n, each arm's score and
    interval; with two arms also difference, p and the share of the first arm's score that the
    second keeps."""
    rows = []
    for label, part in _length_parts(scores):
        cells = _score_cells(part.scores[metric], with_retention=True)
        rows.append([label, f"{len(part.bucket):,}", *cells])
    return Table([unit, "n", *_arm_headers(scores, with_retention=True)], rows)


def comparison_table(
    scores: SetScores, metric: str = "bleu", *, unit: str = "source tokens"
) -> Table:
    """The rows of `length_table`: of each arm after the first the difference to the first, p and
    the share kept. For three arms and more, where `length_table` has no room for them."""
    rows = []
    for label, part in _length_parts(scores):
        compared = [
            _comparison_cells(score, with_retention=True) for score in part.scores[metric][1:]
        ]
        rows.append([label, *("  ".join(cells) for cells in compared)])
    return Table([unit, *(f"{arm.name}: difference, p, kept" for arm in scores.arms[1:])], rows)


def _length_parts(scores: SetScores) -> list[tuple[str, BucketScores]]:
    """Each bucket with its label, marked where it is thin, and the whole set if there are
    several."""
    parts = [(part.bucket.label + THIN_MARK * part.bucket.is_thin, part) for part in scores.buckets]
    return parts if len(parts) == 1 else [*parts, (scores.whole.bucket.label, scores.whole)]


def _arm_headers(scores: SetScores, *, with_retention: bool = False) -> list[str]:
    comparison = ["difference", "p", *(["kept"] if with_retention else [])]
    return [*(arm.name for arm in scores.arms), *(comparison if len(scores.arms) == 2 else [])]


def _score_cells(scores: Sequence[ArmScore], *, with_retention: bool = False) -> list[str]:
    cells = []
    for score in scores:
        spread = "" if score.deviation is None else f" ± {score.deviation:.1f}"
        cells.append(score.interval.to_text(unit=spread))
    if len(scores) == 2:
        cells += _comparison_cells(scores[1], with_retention=with_retention)
    return cells


def _comparison_cells(score: ArmScore, *, with_retention: bool) -> list[str]:
    """The difference to the first arm, p (`-` for few sentence pairs) and the share kept."""
    assert score.bootstrap is not None  # it is not the first arm
    difference = f"{score.bootstrap.difference:+.1f}"
    if difference in ("+0.0", "-0.0"):
        difference = "0.0"
    p_value = score.bootstrap.p_value
    if p_value is None:
        p_text = "-"
    elif p_value < 0.001:
        p_text = "<0.001"
    else:
        p_text = f"{p_value:.3f}"
    if not with_retention:
        return [difference, p_text]
    kept = "-" if score.retention is None else score.retention.to_text(num_digits=2)
    return [difference, p_text, kept]


def attention_table(scores: SetScores, *, unit: str = "source tokens") -> Table:
    """One row per bucket and arm, and for the whole set if there are several buckets."""
    rows = []
    for label, part in _length_parts(scores):
        for index, (name, members) in enumerate(_by_arm(scores, part)):
            columns = [[getattr(run, field) for run in members] for field in _FIELDS]
            entropy, *shares = (None if None in values else fmean(values) for values in columns)
            cells = ["-" if entropy is None else f"{entropy:.2f}", *map(_percent, shares)]
            rows.append(["" if index else label, name, *cells])
    return Table([unit, "arm" if scores.is_grouped else "run", *_FIELDS], rows)


def gold_table(scores: SetScores) -> Table | None:
    """One row per arm and shift: error rate, precision, recall and mass; None without gold
    links."""
    rows = []
    for name, members in _by_arm(scores, scores.whole) if scores.whole.attention else ():
        for shift in members[0].gold:
            values = [
                fmean(getattr(run.gold[shift], field) for run in members) for field in _GOLD_FIELDS
            ]
            label = name if shift == min(members[0].gold) else ""
            rows.append([label, f"{shift:+d}" if shift else "0", *map(_percent, values)])
    header = ["arm" if scores.is_grouped else "run", "shift", "AER", "precision", "recall", "mass"]
    return Table(header, rows) if rows else None


def _by_arm(scores: SetScores, part: BucketScores) -> list[tuple[str, list[AttentionScore]]]:
    return [(arm.name, [part.attention[run] for run in arm.runs]) for arm in scores.arms]


def _percent(value: float | None) -> str:
    return "-" if value is None or value != value else f"{100 * value:.1f} %"
