"""The race on the page about speed: BLEU by minute, and by how much ours leads."""

from collections.abc import Sequence

import numpy as np

from scripts.laboratory.harness.records import RECORDS, Record
from seq2seq_attn.files import read_json

LEADER = "ours, multi30k-fast"


def race() -> Record | None:
    """The record of the race so far."""
    path = RECORDS / "race.json"
    return dict(read_json(path)) if path.exists() else None


def finished(record: Record) -> list[Record]:
    """The systems that were scored."""
    return [system for system in record["systems"] if "points" in system]


def bleu_at(system: Record, minute: float) -> float:
    """Lower-cased BLEU at a minute, as some systems write lower case: on the line between two
    checkpoints, from 0 at the start; after the last checkpoint, its score."""
    minutes, bleu = (
        [point[key] for point in system["points"]] for key in ("minutes", "bleu_lower_case")
    )
    return float(np.interp(minute, [0.0, *minutes], [0.0, *bleu]))


def leads(record: Record) -> list[str]:
    """A sentence for each other system: by how much `multi30k-fast` leads, and where it does not.
    The other was stopped at its last checkpoint, so later minutes say nothing."""
    systems = {system["name"]: system for system in finished(record)}
    leader = systems.get(LEADER)
    sentences = []
    for name, system in systems.items():
        if leader is None or name.startswith("ours"):
            continue
        minutes = [
            minute for minute in record["minutes"] if minute <= system["points"][-1]["minutes"]
        ]
        if not minutes:
            continue
        gains = {minute: bleu_at(leader, minute) - bleu_at(system, minute) for minute in minutes}
        ahead, behind = (
            [minute for minute in gains if (gains[minute] > 0) == sign] for sign in (True, False)
        )
        text = f"never ahead of {name}"
        if ahead:
            ends = (f"{pick(gains[minute] for minute in ahead):.1f}" for pick in (min, max))
            where = (
                f"from minute {minutes[0]:g} to {minutes[-1]:g}"
                if not behind
                else f"at minute {_listed(ahead)}"
            )
            text = f"ahead of {name} by {' to '.join(dict.fromkeys(ends))} BLEU {where}"
        sentences.append(
            f"{text}, behind it at minute {_listed(behind)}" if ahead and behind else text
        )
    return sentences


def _listed(minutes: Sequence[float]) -> str:
    return ", ".join(f"{minute:g}" for minute in minutes)
