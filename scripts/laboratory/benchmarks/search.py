"""Translation speed and BLEU of a trained run on a test set, in each precision; one thread."""

import itertools
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from scripts.laboratory.benchmarks.measure import CPU, build_parser, publish
from scripts.laboratory.harness import turns
from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.runs import describe_run
from seq2seq_attn import load
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.run import Run
from seq2seq_attn.runtime.memory import keep_memory_flat

SPLIT = "test_2016_flickr"
BEAM_SIZES = (1, 5)
BATCH_SIZES = (64,)
NUM_TURNS = 5


def main(arguments: Sequence[str]) -> None:
    parser = build_parser("search", __doc__)
    parser.add_argument("--run", type=Path, required=True, help="a trained run")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    keep_memory_flat()  # as `seq2seq translate` does
    split, num_turns = ("valid", 1) if options.quick else (SPLIT, NUM_TURNS)
    about = {"name": Run(options.run).config.name, **describe_run(options.run)}
    rows = measure(options.run, split, num_turns, BATCH_SIZES, CPU)
    publish({"run": about, "split": split, "rows": rows}, options.record)


def measure(
    run: Path, split: str, num_turns: int, batch_sizes: Sequence[int], device: torch.device
) -> list[Record]:
    """Sentences per second from text to text, and BLEU. The first turn, which allocates memory, is
    not counted."""
    text = Run(run).read_set(split)
    bleu = Measure("bleu", text.references)
    precisions = [*turns.precisions(device)]
    if device == CPU:
        precisions.append("int8")
    rows = []
    for precision in precisions:
        translator = load(run, str(device), precision=precision)
        for beam_size, batch_size in itertools.product(BEAM_SIZES, batch_sizes):
            options = {"beam_size": beam_size, "batch_size": batch_size}
            seconds = []
            for _ in range(1 + num_turns):
                began_at = time.perf_counter()
                translations = translator.translate(text.source, keep_attention=False, **options)
                seconds.append(time.perf_counter() - began_at)
            scored = bleu.statistics([translation.text for translation in translations])
            speed = len(text.source) / statistics.median(seconds[1:])
            row = {"precision": precision, **options, "sentences_per_s": speed}
            rows.append(row | {"bleu": scored.score().score, "signature": scored.signature})
    return rows
