"""Measure how many names that training never showed are translated right, with the outputs `softmax` and `copy`.

The text is that of the config `quickstart`. A quarter of its surnames is held out: no training or validation pair with
such a name is kept, and of a larger test set only the pairs that have one. A token that occurs fewer than 20 times is
too rare for the vocabularies, as most of the other surnames are, so that copying can be learned. A name is right where
the translation has it as often as the reference.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.laboratory.harness.records import RECORDS, Record, add_record_option, add_set_option, describe, exit_code
from scripts.laboratory.harness.runs import train_one
from scripts.tools.other_records import names_block
from seq2seq_attn import load
from seq2seq_attn.captions.generator import write_corpus
from seq2seq_attn.config import load_config
from seq2seq_attn.files import write_json, write_lines
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.text.corpus import read_pairs

RECORD = RECORDS / "unseen-names.json"
LANGUAGES = ("de", "en")
NAME = re.compile(r"\b(?:Mr|Ms) (\w+)")
ONE_IN, NUM_TEST, MIN_FREQUENCY = 4, 6_000, 20
SYSTEMS = (("softmax", "keep"), ("softmax", "copy"), ("copy", "keep"))
"""the output of a run, and what is done with <unk> in its translations"""

Pairs = list[tuple[str, str]]


def read(directory: Path, split: str) -> Pairs:
    """The sentence pairs of a split."""
    return list(zip(*read_pairs(*(directory / f"{split}.{language}" for language in LANGUAGES)), strict=True))


def names_of(pair: tuple[str, str], held_out: set[str]) -> Counter[str]:
    """How often the target has each held-out name."""
    return Counter(name for name in NAME.findall(pair[1]) if name in held_out)


def make_corpus(directory: Path, overrides: Sequence[str]) -> tuple[set[str], Pairs]:
    """Write the training and validation pairs without the held-out names; these, and the test pairs with one."""
    captions = load_config(["quickstart"], overrides).data.captions.model_dump() | {"num_test": NUM_TEST}
    write_corpus(directory / "all", **captions)
    splits = {split: read(directory / "all", split) for split in ("train", "valid", "test")}
    names = sorted({name for pairs in splits.values() for pair in pairs for name in NAME.findall(pair[1])})
    held_out = set(names[::ONE_IN])
    for split in ("train", "valid"):
        kept = [pair for pair in splits[split] if not any(name in " ".join(pair) for name in held_out)]
        for index, language in enumerate(LANGUAGES):
            write_lines(directory / f"{split}.{language}", (pair[index] for pair in kept))
    return held_out, [pair for pair in splits["test"] if names_of(pair, held_out)]


def train_run(directory: Path, output: str, overrides: Sequence[str]) -> RunDir:
    """A run of the config `quickstart` with that output."""
    own = [
        f"name=unseen-names-{output}",
        "data.corpus=files",
        f"data.data_dir={directory}",
        *(f"data.{split}={directory / split}" for split in ("train", "valid")),
        f"data.vocab.min_frequency={MIN_FREQUENCY}",
        "train.device=cpu",
    ]
    names, settings = ["quickstart", f"output/{output}"], [*own, *overrides]
    return train_one(directory / f"{output}-s{load_config(names, settings).seed}", names, settings)


def count_right(run: RunDir, test: Pairs, held_out: set[str], unk: Any) -> Record:
    """Translate the test pairs; how many of the names are right, and BLEU."""
    sources, references = zip(*test, strict=True)
    hypotheses = [translation.text for translation in load(run.path, "cpu").translate(sources, unk=unk)]
    num_names = num_right = 0
    for pair, hypothesis in zip(test, hypotheses, strict=True):
        wanted = names_of(pair, held_out)
        num_names += wanted.total()
        num_right += sum(count for name, count in wanted.items() if len(re.findall(name, hypothesis)) == count)
    bleu = Measure("bleu", list(references)).statistics(hypotheses).score()
    return {"names": num_names, "right": num_right, "bleu": round(bleu.score, 1), "signature": bleu.signature}


def main() -> None:
    """Train, translate, print the section of the page, write the record."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(
        prog="scripts/unseen_names", description="Count unseen names that the outputs softmax and copy translate right."
    )
    parser.add_argument(
        "--dir", type=Path, default=Path("runs/unseen-names"), help="text and runs; default: %(default)s"
    )
    add_record_option(parser, RECORD)
    add_set_option(parser)
    options = parser.parse_args()
    options.dir.mkdir(parents=True, exist_ok=True)
    held_out, test = make_corpus(options.dir, options.set)
    rows = []
    for output, unk in SYSTEMS:
        run = train_run(options.dir, output, options.set)
        found = count_right(run, test, held_out, unk)
        rows.append({"output": output, "unk": unk, "seed": run.config().seed, **found})
    counts = {"held_out_surnames": len(held_out), "test_pairs": len(test)}
    what = "surnames never seen in training, captions, config quickstart (words of spaCy, additive attention, beam 5)"
    about = {"environment": describe("scripts/unseen_names")}
    record = {"what": what, "set": options.set, **counts, "systems": rows, **about}
    print("\n".join(names_block(record)))
    if options.record:
        write_json(options.record, record)


if __name__ == "__main__":
    sys.exit(exit_code(main))
