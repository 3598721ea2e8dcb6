"""A source of vectors: English captions from "pictures" of scenes, a vector per object (`scenes_corpus.py`).

Trains the config `quickstart` on three sources: the picture; the German caption with its nouns blanked out; both. BLEU
is that of the test set, with the paired bootstrap test of both against the German alone. The attention is that of
forced decoding: a noun of the reference counts as attended where the largest weight of its step, among all positions
of all sources, is on the vector of its object.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.laboratory.harness.records import (
    RECORDS,
    ROOT,
    Record,
    add_record_option,
    add_set_option,
    describe,
    exit_code,
)
from scripts.laboratory.harness.runs import bootstrap_by_name, score_lines, score_row, train_one
from scripts.tools.other_records import scenes_block
from scripts.tools.scenes_corpus import SPLITS, write_corpus
from seq2seq_attn import load
from seq2seq_attn.evaluation.attention import WordWeights
from seq2seq_attn.files import read_json, write_json
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.text.corpus import read_lines
from seq2seq_attn.text.tokenizers.several import source_words
from seq2seq_attn.text.tokenizers.vectors import has_vectors
from seq2seq_attn.translate.attention_map import AttentionMap
from seq2seq_attn.translate.heat_maps import plot_attention

RECORD = RECORDS / "scenes.json"
PLOT = ROOT / "docs" / "plots" / "scenes-attention.png"
CONFIG, TEST = "quickstart", "test"
PICTURE = "vectors"
SYSTEMS = ((PICTURE,), ("de",), ("de", PICTURE))
NUM_MAPS, MAP_OBJECTS = 4, 3
SETTINGS = ("data.max_length_ratio=30", "train.max_epochs=5", "train.device=cpu")
"""a picture of one object may have a caption of a dozen words"""

Gold = list[Record]


def train_run(directory: Path, sources: Sequence[str], overrides: Sequence[str]) -> RunDir:
    """A run with these sources."""
    own = [
        f"name=scenes-{'-'.join(sources)}",
        f"data={{corpus: files, data_dir: {directory}, source_languages: [{','.join(sources)}]}}",
        *(f"data.{split}={directory / split}" for split in ("train", "valid")),
        f"data.test={{{TEST}: {directory / TEST}}}",
    ]
    return train_one(directory / "-".join(sources), [CONFIG], [*own, *SETTINGS, *overrides])


def lines_of(directory: Path, sources: Sequence[str]) -> list[str]:
    """The test set's source lines."""
    columns = [read_lines(directory / f"{TEST}.{source}") for source in sources]
    return ["\t".join(line) for line in zip(*columns, strict=True)]


def count_attended(run: RunDir, lines: Sequence[str], references: Sequence[str], gold: Gold) -> dict[str, int]:
    """Nouns of the references, and how many of them have their largest weight on the vector of their object."""
    nouns, attended, between_words = 0, 0, WordWeights()
    for line, pair, of_line in zip(lines, load(run.path, "cpu").score(lines, references), gold, strict=True):
        words = source_words(line, pair.source_tokens[:-1])
        weights_TS = between_words.of(pair, words, of_line["words"])
        first = next(position for position, word in enumerate(words) if has_vectors([word]))
        for thing, position in of_line["nouns"]:
            weights_S = weights_TS[position]
            on_ends = 1.0 - weights_S.sum()
            nouns += 1
            attended += weights_S.argmax() == first + thing and weights_S[first + thing] > on_ends
    between_words.warn()
    return {"nouns": nouns, "attended": int(attended)}


def draw_maps(run: RunDir, directory: Path, gold: Gold) -> None:
    """Draw the attention of the first captions with as many objects as `MAP_OBJECTS`."""
    lines = lines_of(directory, (PICTURE,))
    chosen = [number for number, one in enumerate(gold) if len(one["labels"]) >= MAP_OBJECTS][:NUM_MAPS]
    found = load(run.path, "cpu").translate([lines[number] for number in chosen])
    maps = [
        AttentionMap.of([*gold[number]["labels"], "<eos>"], one.tokens, one.attention)
        for number, one in zip(chosen, found, strict=True)
        if one.attention is not None
    ]
    plot_attention(PLOT, maps, [one.text for one in found])


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/scenes", description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path("runs/scenes"), help="text and runs; default: %(default)s")
    add_record_option(parser, RECORD)
    parser.add_argument("--num-train", type=int, default=SPLITS["train"], metavar="N", help="default: %(default)s")
    parser.add_argument("--num-test", type=int, default=SPLITS["test"], metavar="N", help="default: %(default)s")
    parser.add_argument("--corpus", action="store_true", help="make the corpus and stop")
    parser.add_argument("--plot", action="store_true", help="draw docs/plots/scenes-attention.png as well")
    add_set_option(parser)
    return parser.parse_args(arguments)


def measure(directory: Path, overrides: Sequence[str], references: list[str], gold: Gold) -> Record:
    """Train the systems, and score and count; the rows of the record."""
    lines = {sources: lines_of(directory, sources) for sources in SYSTEMS}
    runs = {sources: train_run(directory, sources, overrides) for sources in SYSTEMS}
    scored = {sources: score_lines(run, lines[sources], references) for sources, run in runs.items()}
    samples = bootstrap_by_name(scored)
    _, german, both = SYSTEMS
    rows = []
    for sources, run in runs.items():
        row = {"sources": list(sources), **score_row(samples[sources], samples[german] if sources == both else None)}
        if PICTURE in sources:
            row |= count_attended(run, lines[sources], references, gold)
        rows.append(row)
    signature = scored[german].score().signature
    return {"systems": rows, "seed": runs[both].config().seed, "signature": signature}


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the corpus, train, print the section of the page, write the record."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = read_options(arguments)
    directory: Path = options.dir
    write_corpus(directory, {**SPLITS, "train": options.num_train, "test": options.num_test})
    if options.corpus:
        return
    gold: Gold = read_json(directory / "gold.json")[TEST]
    measured = measure(directory, options.set, read_lines(directory / f"{TEST}.en"), gold)
    objects = sum(len(one["labels"]) for one in gold)
    about = {
        "num_train": options.num_train,
        "num_test": len(gold),
        "objects": round(objects / len(gold), 2),
        "config": CONFIG,
        "set": [*SETTINGS, *options.set],
        "environment": describe("scripts/scenes"),
    }
    record = {"what": "English captions from a vector per object", **measured, **about}
    print("\n".join(scenes_block(record)))
    if options.record:
        write_json(options.record, record)
    if options.plot:
        draw_maps(RunDir(directory / PICTURE), directory, gold)


if __name__ == "__main__":
    sys.exit(exit_code(main))
