"""The expectations of the bottleneck experiment, written down beforehand, beside the figures of its records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from scripts.laboratory.harness.pages import interval_cell, table
from scripts.laboratory.harness.records import Record

BASELINE = "additive"
"""the arm that the others are compared with"""
EXPECTED_KEPT = {
    BASELINE: "at least 95 %",
    "fixed": "at most 35 %",
    "fixed-reversed": "Sutskever et al. 2014 report no loss on long sentences with reversed sources",
}
"""of the BLEU at one caption, at six joined captions, trained on joined ones"""
HALF_QUALITY = "source tokens at which BLEU is half of the arm's own at the first point"
HALF_RETENTION = f"source tokens at which BLEU is half of that of `{BASELINE}` at the same length"


def render_findings(records: dict[str, Record]) -> str:
    """Tables of expectations and figures."""
    rows = [
        *(_kept_rows(records["joined"]) if "joined" in records else []),
        *(_natural_rows(records["multi30k"]) if "multi30k" in records else []),
    ]
    parts = [table(["expected beforehand", "measured"], rows, align="---")] if rows else []
    for name, trained_on in (("joined", "one to six captions"), ("single", "single captions")):
        if name in records:
            title = f"Trained on {trained_on}: the source length at which half of the BLEU is left"
            note = "An arm that begins low can keep half of its own BLEU for long."
            parts.append([f"{title} (expected to rise with the number of slots). {note}"])
            parts.append(_half_table(records[name]))
    return "\n\n".join("\n".join(part) for part in parts)


def mean(point: Record, arm: str) -> float:
    """The arm's mean BLEU over its seeds."""
    return float(point["scores"][arm]["bleu"]["mean"])


def names(record: Record) -> list[str]:
    """The arms of a record."""
    return [arm["name"] for arm in record["arms"]]


def retentions(record: Record) -> list[Record]:
    """The share of the baseline's BLEU that the fixed vector keeps at each point: `value`, `low`, `high`."""
    return [point["scores"]["fixed"]["bleu"]["retention"] for point in record["points"]]


def half_quality_length(record: Record, arm: str) -> float | None:
    """Mean source tokens at which half of the first point's BLEU is left, on straight lines between the points; None if
    that much is left at the last point."""
    first = mean(record["points"][0], arm)
    return _length_at_half([(point["mean_length"], mean(point, arm) / first) for point in record["points"]])


def half_retention_length(record: Record, arm: str) -> float | None:
    """The same for half of the baseline's BLEU at the point; 0 if less than that is left at the first point."""
    return _length_at_half(
        [(point["mean_length"], mean(point, arm) / mean(point, BASELINE)) for point in record["points"]]
    )


def _length_at_half(points: Sequence[tuple[float, float]]) -> float | None:
    """Of (length, share)."""
    if points[0][1] < 0.5:
        return 0.0
    for (length, share), (next_length, next_share) in pairwise(points):
        if next_share < 0.5:
            return length + (share - 0.5) / (share - next_share) * (next_length - length)
    return None


def _kept_rows(record: Record) -> list[list[str]]:
    """Seeds are shown because the mean of an arm that has not always learned to translate is no typical run's."""
    rows = []
    for arm, expected in EXPECTED_KEPT.items():
        if arm in names(record):
            first, last = (mean(record["points"][i], arm) for i in (0, -1))
            seeds = ", ".join(f"{score:.1f}" for score in record["points"][0]["scores"][arm]["bleu"]["by_seed"])
            text = f"{100 * last / first:.0f} % ({first:.1f} to {last:.1f}; seeds at one caption: {seeds})"
            rows.append([f"BLEU that `{arm}` keeps at six joined captions: {expected}", text])
    return rows


def _natural_rows(record: Record) -> list[list[str]]:
    kept = retentions(record)
    shares = ", ".join(interval_cell(one, digits=2) for one in kept)
    difference = kept[0]["value"] - kept[-1]["value"]
    expected = "Multi30k: the retention of `fixed` falls from bucket to bucket, the last at least 0.25 below the first"
    is_met = difference >= 0.25 and all(before["value"] > after["value"] for before, after in pairwise(kept))
    return [[expected, f"{shares}; the last is {difference:.2f} below the first{'' if is_met else ' (missed)'}"]]


def _half_table(record: Record) -> list[str]:
    shortest, longest = (record["points"][i]["mean_length"] for i in (0, -1))
    words = {None: f"more than {longest:.0f}", 0.0: f"less than {shortest:.0f}"}
    rows = []
    for arm in ("fixed", *(arm for arm in names(record) if arm.startswith("slots")), BASELINE):
        if arm in names(record):
            lengths = (half_quality_length(record, arm), half_retention_length(record, arm))
            rows.append([f"`{arm}`", *(words.get(length) or f"{length:.1f}" for length in lengths)])
    return table(["arm", HALF_QUALITY, HALF_RETENTION], rows)
