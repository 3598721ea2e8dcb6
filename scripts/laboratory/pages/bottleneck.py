"""docs/bottleneck/README.md: how much BLEU is left on long sentences with attention, K vectors or one."""

from __future__ import annotations

from scripts.laboratory.harness.records import Record, load_records
from scripts.laboratory.pages.render import BOTTLENECK, render
from seq2seq_attn.metrics.attention_stats import DROPPED_BELOW, REPEATED_ABOVE

BASELINE = "additive"
"""the arm that the others are compared with"""
CORPORA = ("joined", "single", "multi30k")


def bottleneck_page() -> str:
    """The page."""
    records = load_records(BOTTLENECK)
    return render(
        "bottleneck.md.j2",
        records={name: records[name] for name in CORPORA},
        baseline=BASELINE,
        limits=(DROPPED_BELOW, REPEATED_ABOVE),
        seeds=_seeds,
        retentions=retentions,
        mean=mean,
    )


def mean(point: Record, arm: str) -> float:
    """The arm's mean BLEU over its seeds."""
    return float(point["scores"][arm]["bleu"]["mean"])


def retentions(record: Record) -> list[Record]:
    """The share of the baseline's BLEU that the fixed vector keeps at each point: `value`, `low`, `high`."""
    return [point["scores"]["fixed"]["bleu"]["retention"] for point in record["points"]]


def _seeds(record: Record) -> str:
    counts: dict[int, list[str]] = {}
    for arm in record["arms"]:
        counts.setdefault(len(arm["seeds"]), []).append(arm["name"])
    most = max(counts, key=lambda count: len(counts[count]))
    text = f"{most} seed{'s' * (most > 1)} per arm"
    remarks = [f"{count} of {', '.join(names)}" for count, names in sorted(counts.items()) if count != most]
    return text + (f" ({'; '.join(remarks)})" if remarks else "")
