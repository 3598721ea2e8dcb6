"""The bench of mechanisms from training runs to pages: see `scripts/mechanisms`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.laboratory.harness.records import ROOT, choose, exit_code
from scripts.mechanism_bench.pages import documents
from scripts.mechanism_bench.plan import BASELINE_ROW, CAPTIONS, MULTI30K, OF_TWO_MODELS, Row, all_rows
from seq2seq_attn.files import write_text


def main() -> None:
    """Train, evaluate, measure, write the pages."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    options = parse()
    rows = choose({row.name: row for row in all_rows()}, options.rows, "--rows")
    if options.list:
        print("\n".join(row.name for row in rows))
        return
    bases = (CAPTIONS, MULTI30K) if options.multi30k else (CAPTIONS,)
    if not options.no_training:
        train(rows, options.seeds, bases, options.jobs)
    record(rows, options.adopt)
    if options.speed:
        measure_speeds(rows, options.turns)
    for path, text in documents():
        write_text(path, text)
        print(f"written: {path.relative_to(ROOT)}", file=sys.stderr)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/mechanisms", description="The bench of mechanisms.")
    parser.add_argument("--rows", help="names, separated by commas; default: all (--list prints them)")
    parser.add_argument("--seeds", type=int, default=1, help="train seeds 1 to this; default: %(default)s")
    parser.add_argument("--jobs", type=int, default=2, help="training runs at a time, one thread each")
    parser.add_argument("--multi30k", action="store_true", help=f"also train each row on Multi30k (config {MULTI30K})")
    parser.add_argument("--adopt", type=Path, help="a folder of runs trained by hand, known by their settings")
    parser.add_argument("--no-training", action="store_true", help="record the finished runs only")
    parser.add_argument("--speed", action="store_true", help="measure training speed, on an idle core")
    parser.add_argument("--turns", type=int, default=9, help="of each speed measurement; default: %(default)s")
    parser.add_argument("--list", action="store_true", help="print the rows and stop")
    return parser.parse_args()


def train(rows: Sequence[Row], seeds: int, bases: Sequence[str], jobs: int) -> None:
    """Train what is missing, seed after seed, so that an interrupted bench has whole seeds."""
    from scripts.laboratory.harness.runs import train_all
    from scripts.mechanism_bench.runs import Training

    trainings = [Training(row, seed, base) for base in bases for seed in range(1, seeds + 1) for row in rows]
    train_all([one.planned for one in trainings], jobs)


def record(rows: Sequence[Row], adopted: Path | None) -> None:
    """Add every finished run of the rows to their records, and draw the attention of the first seeds."""
    import torch

    from scripts.mechanism_bench.measure import add_run, lacks_picture
    from scripts.mechanism_bench.pictures import draw
    from scripts.mechanism_bench.runs import RUNS, find_trained

    torch.set_num_threads(1)
    folders = [folder for folder in (RUNS, adopted) if folder is not None and folder.is_dir()]
    for training in (one for folder in folders for one in find_trained(folder, rows)):
        if is_new := add_run(training):
            logging.info("recorded: %s, seed %d (%s)", training.row.name, training.seed, training.run.path)
        if training.base == CAPTIONS and training.seed == 1 and (is_new or lacks_picture(training.row)):
            draw(training)


def measure_speeds(rows: Sequence[Row], turns: int) -> None:
    """Training speed relative to the baseline, row by row."""
    import torch

    from scripts.mechanism_bench.measure import add_speed
    from seq2seq_attn.runtime.memory import TRAINING_PRIMITIVES, keep_primitives, reuse_large_blocks

    torch.set_num_threads(1)
    keep_primitives(TRAINING_PRIMITIVES)
    reuse_large_blocks()
    for row in (row for row in rows if row != BASELINE_ROW):
        if row.overlay in OF_TWO_MODELS:
            logging.info("%s: trains two models, so its speed is not measured", row.name)
            continue
        speed = add_speed(row, turns)
        logging.info("%s: %.2f [%.2f, %.2f] of the baseline", row.name, speed["ratio"], speed["low"], speed["high"])


if __name__ == "__main__":
    sys.exit(exit_code(main))
