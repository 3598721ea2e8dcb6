"""How often shifted sides are refused: `scripts/lab shifts [--texts FOLDER]` takes texts of 1,000
successive pairs, moves the last half or tenth of the targets by a line, and writes the record.

FOLDER is that of `scripts/lab own_texts`; `europarl/train.de.gz` and `train.en.gz` too.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from random import Random

from scripts.laboratory.harness.records import RECORDS, ROOT, describe
from scripts.laboratory.own_texts import LANGUAGES
from seq2seq_attn.data.shifts import check_sides
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_json
from seq2seq_attn.text.lines import read_lines

NUM_TEXTS = 20
NUM_PAIRS = 1_000
SHARES = (0, 0.1, 0.5, 1)
Sides = tuple[list[str], list[str]]


def main(arguments: Sequence[str]) -> None:
    """Shift texts of each corpus, and count those that are refused."""
    parser = argparse.ArgumentParser(prog="scripts/lab shifts")
    parser.add_argument("--texts", type=Path, default=ROOT / "data")
    texts = parser.parse_args(arguments).texts
    rows = {
        "Multi30k": count_refused(_read_pair(texts / "multi30k")),
        "Europarl": count_refused(_read_pair(texts / "europarl")),
        "CMUDict": count_refused(
            _read_table(texts / "cmudict" / "cmudict-0.7b.train-dev-20-21.gz")
        ),
    }
    for language in LANGUAGES:
        path = texts / "g2p" / f"{language}_train.tsv.gz"
        rows[f"sounds, {language}"] = count_refused(_read_table(path))
    about = {"num_texts": NUM_TEXTS, "num_pairs": NUM_PAIRS, "shares": SHARES}
    environment = describe("lab shifts")
    write_json(RECORDS / "shifts.json", {"environment": environment, **about, "rows": rows})


def count_refused(sides: Sides) -> list[int]:
    """Return how many texts are refused after the targets of the last share of the pairs have moved
    by a line, for each share."""
    random = Random(1)
    counts = []
    for share in SHARES:
        num_refused = 0
        for _ in range(NUM_TEXTS):
            start = random.randrange(len(sides[0]) - NUM_PAIRS)
            sources, targets = (side[start : start + NUM_PAIRS + 1] for side in sides)
            first = round(NUM_PAIRS * (1 - share))
            del sources[-1], targets[first if share else -1]
            num_refused += is_refused(sources, targets)
        counts.append(num_refused)
    return counts


def is_refused(sources: Sequence[str], targets: Sequence[str]) -> bool:
    """Whether the sides are taken as shifted."""
    try:
        check_sides("text", list(zip(range(NUM_PAIRS), sources, targets, strict=True)))
    except UserError:
        return True
    return False


def _read_pair(folder: Path) -> Sides:
    return read_lines(folder / "train.de.gz"), read_lines(folder / "train.en.gz")


def _read_table(path: Path) -> Sides:
    rows = [line.split(maxsplit=1) for line in read_lines(path)]
    return [word for word, _ in rows], [sounds for _, sounds in rows]
