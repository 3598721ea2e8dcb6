"""docs/bottleneck/README.md: how much BLEU is left on long sentences with attention, K vectors or one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from scripts.laboratory.harness.records import Record, load_records
from scripts.laboratory.pages.render import BOTTLENECK, interval, render
from seq2seq_attn.metrics.attention_stats import DROPPED_BELOW, REPEATED_ABOVE

BASELINE = "additive"
"""the arm that the others are compared with"""
CORPORA = ("joined", "single", "multi30k")


def load_bottleneck() -> dict[str, Record]:
    """The records of the experiment by corpus. Multi30k's has "budgets": its own and those of other numbers of
    updates."""
    records = load_records(BOTTLENECK)
    budgets = [record for name, record in records.items() if name.startswith("multi30k")]
    records["multi30k"]["budgets"] = sorted(budgets, key=lambda record: int(record["arms"][0]["updates"]))
    return {name: records[name] for name in CORPORA}


def bottleneck_page(records: dict[str, Record]) -> str:
    """The page."""
    kept = retentions(records["multi30k"])
    is_falling = all(point["value"] > following["value"] for point, following in pairwise(kept))
    return render(
        "bottleneck.md.j2",
        records=records,
        baseline=BASELINE,
        limits=(DROPPED_BELOW, REPEATED_ABOVE),
        seeds=_seeds,
        retentions=retentions,
        mean=mean,
        natural=", ".join(interval(share, digits=2) for share in kept),
        is_met=kept[0]["value"] - kept[-1]["value"] >= 0.25 and is_falling,
        half_rows=_half_rows,
    )


def mean(point: Record, arm: str) -> float:
    """The arm's mean BLEU over its seeds."""
    return float(point["scores"][arm]["bleu"]["mean"])


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


def _half_rows(record: Record) -> list[list[str]]:
    shortest, longest = (record["points"][i]["mean_length"] for i in (0, -1))
    words = {None: f"more than {longest:.0f}", 0.0: f"less than {shortest:.0f}"}
    rows, names = [], [arm["name"] for arm in record["arms"]]
    for arm in ("fixed", *(name for name in names if name.startswith("slots")), BASELINE):
        lengths = (half_quality_length(record, arm), half_retention_length(record, arm))
        rows.append([f"`{arm}`", *(words.get(length) or f"{length:.1f}" for length in lengths)])
    return rows


def _seeds(record: Record) -> str:
    counts: dict[int, list[str]] = {}
    for arm in record["arms"]:
        counts.setdefault(len(arm["seeds"]), []).append(arm["name"])
    most = max(counts, key=lambda count: len(counts[count]))
    text = f"{most} seed{'s' * (most > 1)} per arm"
    remarks = [f"{count} of {', '.join(names)}" for count, names in sorted(counts.items()) if count != most]
    return text + (f" ({'; '.join(remarks)})" if remarks else "")
