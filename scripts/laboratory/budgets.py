"""Half, twice and four times as many updates as `train --train` chooses: `scripts/lab budgets
[--texts FOLDER] [--factors 1,0.5,2,4] NAME ...` trains, scores, and adds rows to the record.

The number of validations, the patience and the size of batches stay those of the choice. Names and
FOLDER are those of `scripts/lab own_texts`.
"""

from collections.abc import Sequence

from scripts.laboratory.harness.records import RECORDS, Record, describe
from scripts.laboratory.own_texts import RUNS, build_parser, describe_text, measure
from seq2seq_attn.api.own_text import NUM_VALIDATIONS, PATIENCE
from seq2seq_attn.files import read_json, write_json

RECORD = RECORDS / "budgets.json"


def main(arguments: Sequence[str]) -> None:
    """Train and score each text with each number of updates."""
    parser = build_parser("scripts/lab budgets")
    parser.add_argument("--factors", default="1,0.5,2,4")
    options = parser.parse_args(arguments)
    for name in options.names:
        about, text = describe_text(name, options.texts)
        text["settings"]["train.num_threads"] = 1
        for factor in options.factors.split(","):
            rows = read_json(RECORD)["rows"] if RECORD.exists() else {}
            row = rows.setdefault(name, {"about": about, "by_factor": {}})
            if factor != "1":
                text["settings"] |= budget(row["by_factor"]["1"], float(factor))
            measured = measure(RUNS / f"{name}-x{factor}", text)
            environment = describe("lab budgets")
            measured["commit"] = environment["git"]["commit"]
            row["by_factor"][factor] = measured
            write_json(RECORD, {"environment": environment, "rows": rows})


def budget(chosen: Record, factor: float) -> Record:
    """Return settings for a multiple of the chosen number of updates."""
    updates_per_validation = round(chosen["max_updates"] * factor / NUM_VALIDATIONS)
    return {
        "train.batch.size": chosen["batch_size"],
        "train.max_epochs": None,
        "train.max_updates": updates_per_validation * NUM_VALIDATIONS,
        "train.validation.every_updates": updates_per_validation,
        "train.validation.patience": PATIENCE,
    }
