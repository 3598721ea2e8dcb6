"""Tables of arms: the mean of several seeds, its spread, and each arm against the first."""

from __future__ import annotations

from collections.abc import Sequence

from seq2seq_attn.evaluation.arms import ArmScore
from seq2seq_attn.evaluation.scores import SetScores
from seq2seq_attn.metrics.bleu import TITLES, MeasureName
from seq2seq_attn.report.tables import THIN_MARK, Table, format_difference, format_p


def arm_summary_table(sets: Sequence[SetScores], measure: MeasureName) -> Table:
    """One row a test set: each arm's mean, standard deviation and interval."""
    rows = [[one.name, f"{one.num_pairs:,}", *map(_mean_cell, one.arm_scores[measure])] for one in sets]
    return Table([TITLES[measure], "n", *(arm.name for arm in sets[0].arms)], rows)


def arm_score_table(scores: SetScores) -> Table:
    """One row a measure and arm: number of seeds, mean, standard deviation, extremes, bootstrap interval of the mean,
    and the comparison with the first arm."""
    rows = []
    for measure, of_arms in scores.arm_scores.items():
        for place, (arm, score) in enumerate(zip(scores.arms, of_arms, strict=True)):
            spread = score.spread
            rows.append(
                [
                    "" if place else TITLES[measure],
                    arm.name,
                    str(spread.num_seeds),
                    f"{spread.mean:.1f}",
                    "-" if spread.standard_deviation is None else f"{spread.standard_deviation:.2f}",
                    f"{spread.min:.1f} to {spread.max:.1f}",
                    f"[{score.interval.low:.1f}, {score.interval.high:.1f}]",
                    *(_comparison_cells(score) if place else ["", "", ""]),
                ]
            )
    header = ["measure", "arm", "seeds", "mean", "sd", "min to max", "interval", "difference", "p", "kept"]
    return Table(header, rows)


def arm_length_table(scores: SetScores, measure: MeasureName = "bleu", *, unit: str = "source tokens") -> Table:
    """One row a bucket, and one for the whole set: n, and each arm's mean, standard deviation and interval."""
    rows = [
        [label, f"{num_pairs:,}", *map(_mean_cell, of_arms)]
        for label, num_pairs, of_arms in _length_rows(scores, measure)
    ]
    return Table([unit, "n", *(arm.name for arm in scores.arms)], rows)


def arm_comparison_table(scores: SetScores, measure: MeasureName = "bleu", *, unit: str = "source tokens") -> Table:
    """One row a bucket, and one for the whole set: of each arm after the first the difference to the first, p and the
    share kept."""
    rows = [
        [label, *("  ".join(_comparison_cells(score)) for score in of_arms[1:])]
        for label, _, of_arms in _length_rows(scores, measure)
    ]
    return Table([unit, *(f"{arm.name}: difference, p, kept" for arm in scores.arms[1:])], rows)


def _length_rows(scores: SetScores, measure: MeasureName) -> list[tuple[str, int, list[ArmScore]]]:
    rows = [
        (row.bucket.label + THIN_MARK * row.bucket.is_thin, len(row.bucket), row.arm_scores[measure])
        for row in scores.buckets
    ]
    return [*rows, ("all", scores.num_pairs, scores.arm_scores[measure])]


def _mean_cell(score: ArmScore) -> str:
    deviation = score.spread.standard_deviation
    spread = "" if deviation is None else f" ± {deviation:.1f}"
    return f"{score.spread.mean:.1f}{spread} [{score.interval.low:.1f}, {score.interval.high:.1f}]"


def _comparison_cells(score: ArmScore) -> list[str]:
    if score.bootstrap is None:
        raise ValueError("an arm after the first needs its paired test")
    kept = score.retention
    return [
        format_difference(score.bootstrap.difference),
        format_p(score.bootstrap.p_value),
        f"{kept.value:.2f} [{kept.low:.2f}, {kept.high:.2f}]" if kept else "-",
    ]
