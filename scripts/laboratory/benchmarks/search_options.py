"""Translation speed and BLEU of a trained run in each precision; one thread, CPU time.

Contestants translate the validation set and the test sets from text to text. A set is a turn.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from scripts.laboratory.benchmarks.measure import CPU, build_parser, publish
from scripts.laboratory.benchmarks.search import precisions
from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.runs import describe_run
from scripts.laboratory.harness.turns import Contestant, paired_ratio, take_turns
from seq2seq_attn import load
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.run import Run
from seq2seq_attn.runtime.memory import TRANSLATING_PRIMITIVES, keep_memory_flat, keep_primitives

BEAM_SIZES = (5, 1)


def main(arguments: Sequence[str]) -> None:
    parser = build_parser("search-options", __doc__)
    parser.add_argument("--run", type=Path, required=True, help="a trained run")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    keep_memory_flat()  # as `seq2seq translate` does
    keep_primitives(TRANSLATING_PRIMITIVES)
    limit = 4 if options.quick else None
    config = Run(options.run).config
    corpus = prepare_corpus(config)
    sets = {
        name: [lines[:limit] for lines in corpus.text(name)]
        for name in corpus.splits
        if name != "train"
    }
    sentences = {name: len(lines) for name, (lines, _) in sets.items()}
    rows = [row for beam_size in BEAM_SIZES for row in compare(options.run, sets, beam_size)]
    publish(
        {
            "run": {"name": config.name, **describe_run(options.run)},
            "sentences": sentences,
            "rows": rows,
        },
        options.record,
    )


def compare(run: Path, sets: dict[str, list[list[str]]], beam_size: int) -> list[Record]:
    """A row for each precision: speed, its ratio to fp32, BLEU of each set."""
    contestants, bleu, signatures = [], dict[str, dict[str, float]](), set[str]()
    search: dict[str, Any] = {"beam_size": beam_size, "keep_attention": False}
    for precision in precisions(CPU):
        translator = load(run, "cpu", precision=precision)
        translator.translate(next(iter(sets.values()))[0][:64], **search)  # allocates memory
        scores = bleu[precision] = {}

        def work(turn: int, translator: Any = translator, scores: Any = scores) -> float:
            split, (sources, references) = [*sets.items()][turn]
            translations = translator.translate(sources, **search)
            texts = [translation.text for translation in translations]
            statistics = Measure("bleu", references).statistics(texts)
            scores[split] = statistics.score().score
            signatures.add(statistics.signature)
            return len(sources)

        contestants.append(Contestant(precision, work, clock=time.process_time))
    take_turns(contestants, len(sets))
    rows = []
    for one in contestants:
        ratio = paired_ratio(one.speeds, contestants[0].speeds)
        figures = {
            "sentences_per_s": one.speed,
            "ratio": ratio.value,
            "interval": [ratio.low, ratio.high],
        }
        about = {"beam_size": beam_size, "name": one.name, "signature": " ".join(signatures)}
        rows.append({**about, **figures, "bleu": bleu[one.name]})
    return rows
