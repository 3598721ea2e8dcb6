"""What the bottleneck experiment was asked beforehand, and what its records say came out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

Record = dict[str, Any]
UNLEARNED_BLEU = 2.0
BASELINE = "additive"
"""the arm that the others are compared with"""


def render_findings(records: dict[str, Record]) -> str:
    """A list, a line for each question."""
    lines: list[str] = []
    if "joined" in records:
        lines += _joined(records["joined"])
    for name, trained_on in (("joined", "one to six captions"), ("single", "single captions")):
        if name in records:
            lines += _half_quality(records[name], trained_on)
            lines += _alignment(records[name], trained_on)
    if "multi30k" in records:
        lines.append(_natural(records["multi30k"]))
    return "\n".join(f"- {line}" for line in lines)


def mean(point: Record, arm: str, measure: str = "bleu") -> float:
    """The arm's mean score over its seeds."""
    return float(point["scores"][arm][measure]["mean"])


def names(record: Record) -> list[str]:
    """The arms of a record."""
    return [arm["name"] for arm in record["arms"]]


def retentions(record: Record, arm: str = "none") -> list[Record]:
    """What share of the baseline's BLEU an arm keeps at each point: `value`, `low`, `high`."""
    return [point["scores"][arm]["bleu"]["retention"] for point in record["points"]]


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


def says_of_slots(lengths: dict[str, float | None]) -> str:
    """Whether the lengths of arms of growing K rise; None: longer than the test reaches."""
    measured = [length for length in lengths.values() if length is not None]
    beyond = [f"`{arm}`" for arm, length in lengths.items() if length is None]
    is_rising = all(a < b for a, b in pairwise(measured)) and None not in list(lengths.values())[: len(measured)]
    if not is_rising:
        return "it does not rise with every K"
    if len(beyond) < 2:  # one beyond the test is still longer than those within
        return "it rises with every K"
    return f"it rises with every K as far as the test reaches, which does not tell {', '.join(beyond)} apart"


def _length_at_half(points: Sequence[tuple[float, float]]) -> float | None:
    """Of (length, share)."""
    if points[0][1] < 0.5:
        return 0.0
    for (length, share), (next_length, next_share) in pairwise(points):
        if next_share < 0.5:
            return length + (share - 0.5) / (share - next_share) * (next_length - length)
    return None


def _joined(record: Record) -> list[str]:
    first, last = record["points"][0], record["points"][-1]
    lines = []
    for arm, asked, holds in (
        ("additive", "at least 95", lambda k: k >= 95),
        ("none", "at most 35", lambda k: k <= 35),
    ):
        if arm not in names(record):
            continue
        kept = 100 * mean(last, arm) / mean(first, arm)
        verdict = "it does" if holds(kept) else "it does not"
        lines.append(
            f"`{arm}` keeps {asked} % of its BLEU at six joined captions when trained on joined ones: {verdict}, "
            f"{kept:.0f} % ({mean(first, arm):.1f} to {mean(last, arm):.1f})."
        )
    for arm, about in (
        (
            "none-reversed",
            "Sutskever et al. 2014 report no loss on long sentences for an encoder that reads the source from its end",
        ),
        ("none-wide", "a summary of 2,048 numbers and ten times the parameters"),
    ):
        if {arm, "none"} <= set(names(record)):
            kept = [
                f"{100 * mean(last, one) / mean(first, one):.0f} % ({mean(first, one):.1f} to {mean(last, one):.1f})"
                for one in (arm, "none")
            ]
            text = f"`{arm}`: {about}; here it keeps {kept[0]} at six joined captions, `none` {kept[1]}"
            lines.append(f"{text}{_unlearned(first, arm)}.")
    return lines


def _unlearned(point: Record, arm: str) -> str:
    """What must be said of an arm some of whose seeds have learned next to nothing: its mean is no typical run's."""
    by_seed = point["scores"][arm]["bleu"]["by_seed"]
    if min(by_seed) >= UNLEARNED_BLEU:
        return ""
    found = ", ".join(f"{score:.1f}" for score in by_seed)
    return f"; not all of its seeds have learned to translate in these updates (one caption, seed by seed: {found})"


def _half_quality(record: Record, trained_on: str) -> list[str]:
    arms = ["none", *(arm for arm in names(record) if arm.startswith("slots")), BASELINE]
    shortest, longest = (record["points"][i]["mean_length"] for i in (0, -1))
    lines = []
    for what, length_at in (
        ("half of the first point's BLEU", half_quality_length),
        (f"half of `{BASELINE}`'s BLEU at that length", half_retention_length),
    ):
        lengths = {arm: length_at(record, arm) for arm in arms if arm in names(record)}
        words = {None: f"more than {longest:.0f}", 0.0: f"less than {shortest:.0f}"}
        text = ", ".join(f"`{arm}` {words.get(at) or f'{at:.1f}'}" for arm, at in lengths.items())
        verdict = says_of_slots({arm: at for arm, at in lengths.items() if arm.startswith("slots")})
        lines.append(f"Trained on {trained_on}, source tokens at which {what} is left: {text}; {verdict}.")
    return lines


def _alignment(record: Record, trained_on: str) -> list[str]:
    points = record["points"]
    gold = [{row["shift"]: row for row in point["attention"].get(BASELINE, {}).get("gold", [])} for point in points]
    if not all(gold):
        return []
    first, last = ({shift: f"{100 * row['error_rate']:.1f} %" for shift, row in gold[i].items()} for i in (0, -1))
    text = (
        f"Trained on {trained_on}, `{BASELINE}`'s attention misses the gold links at an alignment error rate of "
        f"{first[0]} on one caption ({first[-1]} when held a word early, {first[1]} a word late) and {last[0]} on six"
    )
    without = [arm for arm in names(record) if "gold" not in points[0]["attention"][arm]]
    if uniform := points[0]["attention"].get("uniform"):
        rate = next(row["error_rate"] for row in uniform["gold"] if not row["shift"])
        text += f"; equal weights (`uniform`) have {100 * rate:.1f} % on one"
    if without:
        text += f". {', '.join(f'`{arm}`' for arm in without)} have no weights over words: nothing of theirs aligns"
    return [f"{text}."]


def _natural(record: Record) -> str:
    kept = retentions(record)
    falls = all(a["value"] > b["value"] for a, b in pairwise(kept))
    distance = kept[0]["value"] - kept[-1]["value"]
    is_apart = kept[0]["low"] > kept[-1]["high"]
    values = ", ".join(f"{one['value']:.2f}" for one in kept)
    return (
        "Multi30k, retention of `none` falls from bin to bin, the last at least 0.25 under the first, bands apart: "
        f"{values}; it {'falls' if falls else 'does not fall'} from bin to bin, the last is {distance:.2f} under the "
        f"first ({'as' if distance >= 0.25 else 'not as'} asked), their bands are {'' if is_apart else 'not '}apart."
    )
