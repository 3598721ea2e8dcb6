"""Measure what the outputs `lexicon` and `lexical` gain over `softmax` with little training data.

The data is the first 2,000 training pairs of Multi30k, German to English, in words, of which the vocabularies leave out
none; the config is `own-tiny`. BLEU is that of test_2016_flickr, with the paired bootstrap test against softmax.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from scripts.laboratory.harness.records import RECORDS, add_record_option, add_set_option, describe, exit_code
from scripts.laboratory.harness.runs import bootstrap_by_name, score_lines, score_row, train_one
from scripts.tools.extra_pairs import fetched
from scripts.tools.levers_page import VALIDATION
from scripts.tools.other_records import lexicons_block
from seq2seq_attn.files import write_json, write_lines
from seq2seq_attn.metrics.seeds import pool
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.text.corpus import iter_lines

RECORD = RECORDS / "lexicons.json"
LANGUAGES = ("de", "en")
NUM_TRAIN, TEST = 2_000, "test_2016_flickr"
CONFIG = "own-tiny"
SETTINGS = ("train.batch.size=32", "train.max_epochs=25", "train.validation.num_pairs=100")
"""a third of the updates that the config would make: there are more pairs than it is made for"""
OUTPUTS = ("softmax", "lexicon", "lexical")


def make_corpus(directory: Path) -> None:
    """Write the first training pairs, the validation pairs and the test pairs."""
    paths = fetched("de")
    for split, published, limit in (("train", "train", NUM_TRAIN), ("valid", "valid", None), ("test", TEST, None)):
        for language, path in zip(LANGUAGES, paths[published], strict=True):
            write_lines(directory / f"{split}.{language}", islice(iter_lines(path), limit))


def train_run(directory: Path, output: str, seed: int, overrides: Sequence[str]) -> RunDir:
    """A run with that output."""
    own = [
        f"name=lexicons-{output}",
        "data.corpus=files",
        *(f"data.{side}_language={language}" for side, language in zip(("source", "target"), LANGUAGES, strict=True)),
        f"data.data_dir={directory}",
        *(f"data.{split}={directory / split}" for split in ("train", "valid")),
        "train.device=cpu",
    ]
    settings = [*own, *SETTINGS, *overrides, f"seed={seed}"]
    return train_one(directory / f"{output}-s{seed}", [CONFIG, f"output/{output}"], settings)


def main() -> None:
    """Train, translate, print the section of the page, write the record."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(
        prog="scripts/lexicons", description="BLEU of the outputs softmax, lexicon and lexical on 2,000 training pairs."
    )
    parser.add_argument("--dir", type=Path, default=Path("runs/lexicons"), help="text and runs; default: %(default)s")
    add_record_option(parser, RECORD)
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="of each output; default: %(default)s")
    add_set_option(parser)
    options = parser.parse_args()
    options.dir.mkdir(parents=True, exist_ok=True)
    make_corpus(options.dir)
    cases = [(output, seed) for seed in range(1, options.seeds + 1) for output in OUTPUTS]
    test = [list(iter_lines(options.dir / f"test.{language}")) for language in LANGUAGES]
    scored = {case: score_lines(train_run(options.dir, *case, options.set), *test) for case in cases}
    samples = bootstrap_by_name(scored)
    arms = {output: pool([part for case, part in samples.items() if case[0] == output]) for output in OUTPUTS}
    rows = [
        {"output": output, **score_row(arm, arms["softmax"]), "seeds": list(arm.values)} for output, arm in arms.items()
    ]
    first = next(iter(scored.values()))
    about = {
        "num_train": NUM_TRAIN,
        "test": TEST,
        **({} if options.set else {"chosen_on": VALIDATION}),
        "num_test": len(first),
        "config": CONFIG,
        "set": [*SETTINGS, *options.set],
        "num_seeds": options.seeds,
        "signature": first.score().signature,
        "environment": describe("scripts/lexicons"),
    }
    record = {"what": "Multi30k, German to English, words of spaCy", "systems": rows, **about}
    print("\n".join(lexicons_block(record)))
    if options.record:
        write_json(options.record, record)


if __name__ == "__main__":
    sys.exit(exit_code(main))
