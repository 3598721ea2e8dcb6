"""Tables of the attention analysis: by length, and against gold links. An arm shows the mean of its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from seq2seq_attn.evaluation.scores import SetScores
from seq2seq_attn.metrics.attention_stats import DROPPED_BELOW, REPEATED_ABOVE, AttentionScore
from seq2seq_attn.report.tables import THIN_MARK, Table

ATTENTION_NOTE = (
    "entropy: of the attention, nats per target token; dropped, repeated: source words whose attention, summed over "
    f"the target words, is below {DROPPED_BELOW:g}, above {REPEATED_ABOVE:g}; missing, excess: words of the reference "
    "that the hypothesis lacks, and the other way round"
)
GOLD_NOTE = (
    "gold links: forced decoding of the references; shift +1: the attention of the next target word, -1: of the one "
    "before; mass: share of the attention that falls on linked words"
)
_FIELDS = ("entropy", "dropped", "repeated", "missing", "excess")
_GOLD_FIELDS = ("error_rate", "precision", "recall", "mass")


def attention_table(scores: SetScores, *, unit: str = "source tokens") -> Table:
    """One row per bucket and arm, and for the whole set if there are several buckets."""
    parts = [(row.bucket.label + THIN_MARK * row.bucket.is_thin, row.attention) for row in scores.buckets]
    rows = []
    for label, runs in parts if len(parts) == 1 else [*parts, ("all", scores.attention)]:
        for index, (name, members) in enumerate(_by_arm(scores, runs)):
            entropy, *shares = (_mean([getattr(run, field) for run in members]) for field in _FIELDS)
            cells = ["-" if entropy is None else f"{entropy:.2f}", *map(_percent, shares)]
            rows.append(["" if index else label, name, *cells])
    return Table([unit, _kind(scores), *_FIELDS], rows)


def gold_table(scores: SetScores) -> Table | None:
    """One row per arm and shift: error rate, precision, recall and mass; None without gold links."""
    rows = []
    for name, members in _by_arm(scores, scores.attention) if scores.attention else ():
        for shift in members[0].gold:
            values = [fmean(getattr(run.gold[shift], field) for run in members) for field in _GOLD_FIELDS]
            label = name if shift == min(members[0].gold) else ""
            rows.append([label, f"{shift:+d}" if shift else "0", *map(_percent, values)])
    return Table([_kind(scores), "shift", "AER", "precision", "recall", "mass"], rows) if rows else None


def _kind(scores: SetScores) -> str:
    return "arm" if scores.is_grouped else "run"


def _by_arm(scores: SetScores, runs: Sequence[AttentionScore]) -> list[tuple[str, list[AttentionScore]]]:
    return [(arm.name, [runs[run] for run in arm.runs]) for arm in scores.arms]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _percent(value: float | None) -> str:
    return "-" if value is None or value != value else f"{100 * value:.1f} %"
