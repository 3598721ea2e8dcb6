"""The race on the page about speed: BLEU by minute, and by how much ours leads."""

from collections.abc import Sequence

from scripts.laboratory.harness.records import RECORDS, Record
from seq2seq_attn.files import read_json

LEADER = "ours, multi30k-fast"
SLACK = 0.5
"""minutes by which a checkpoint may be late: it is kept after the update that reaches its minute"""


def race() -> Record | None:
    """The record of the race so far."""
    path = RECORDS / "race.json"
    return dict(read_json(path)) if path.exists() else None


def finished(record: Record) -> list[Record]:
    """The systems that were scored."""
    return [system for system in record["systems"] if "points" in system]


def bleu_at(system: Record, minute: float) -> float | None:
    """Lower-cased BLEU of the last checkpoint by a minute, as some systems write lower case; None before the first."""
    scores = [point["bleu_lower_case"] for point in system["points"] if point["minutes"] <= minute + SLACK]
    return scores[-1] if scores else None


def leads(record: Record) -> list[str]:
    """A sentence for each other system: by how much `multi30k-fast` leads, and where it does not."""
    systems = {system["name"]: system for system in finished(record)}
    leader = systems.get(LEADER)
    sentences = []
    for name, system in systems.items():
        if leader is None or name.startswith("ours"):
            continue
        scores = {minute: (bleu_at(leader, minute), bleu_at(system, minute)) for minute in record["minutes"]}
        gains = {minute: ours - its for minute, (ours, its) in scores.items() if ours is not None and its is not None}
        ahead, behind = ([minute for minute in gains if (gains[minute] > 0) == sign] for sign in (True, False))
        text = f"never ahead of {name}"
        if ahead:
            ends = (f"{pick(gains[minute] for minute in ahead):.1f}" for pick in (min, max))
            where = "at every checkpoint" if not behind else f"at minute {_listed(ahead)}"
            text = f"ahead of {name} by {' to '.join(dict.fromkeys(ends))} BLEU {where}"
        sentences.append(f"{text}, behind it at minute {_listed(behind)}" if ahead and behind else text)
    return sentences


def _listed(minutes: Sequence[float]) -> str:
    return ", ".join(f"{minute:g}" for minute in minutes)
