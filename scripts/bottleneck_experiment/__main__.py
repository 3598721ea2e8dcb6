"""The bottleneck experiment from training runs to records and plots: see `scripts/bottleneck`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.bottleneck_experiment.findings import BASELINE
from scripts.bottleneck_experiment.pages import FOLDER, num_updates
from scripts.bottleneck_experiment.plan import (
    CAPTIONS_ARMS,
    MULTI30K_ARMS,
    RUNS,
    Arm,
    Training,
    captions_trainings,
    multi30k_trainings,
    multi30k_tuning,
    validation,
)
from scripts.laboratory.harness.records import Record, choose, exit_code
from scripts.laboratory.harness.runs import train_all
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json, write_json
from seq2seq_attn.model.build import build_model, count_parameters

MOST_SEEDS = 20
"""the largest number of seeds per arm"""


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = parse()
    all_arms = CAPTIONS_ARMS if options.corpus == "captions" else MULTI30K_ARMS
    arms = choose({arm.name: arm for arm in all_arms}, options.arms, "--arms")
    if options.parameters:
        print_parameters(options.corpus, arms)
        return
    if not options.report_only:
        train(options, arms)
    if not options.train_only:
        evaluate(options.corpus)
        print("scripts/results render writes the pages", file=sys.stderr)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bottleneck", description="The bottleneck experiment.")
    parser.add_argument("--corpus", choices=("captions", "multi30k"), required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="runs trained in parallel, one thread each")
    parser.add_argument("--arms", help="names, separated by commas; default: all")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--parameters", action="store_true", help="print the arms' numbers of parameters and stop")
    only.add_argument("--train-only", action="store_true")
    only.add_argument("--report-only", action="store_true", help="of all runs that are finished")
    return parser.parse_args()


def train(options: argparse.Namespace, arms: Sequence[Arm]) -> None:
    """Train what is missing."""
    if options.corpus == "captions":
        trainings = captions_trainings(arms, options.seeds)
    else:
        tune(arms, options.jobs)
        trainings = multi30k_trainings(arms, options.seeds)
    train_all([one.planned for one in trainings], options.jobs)


def tune(arms: Sequence[Arm], jobs: int) -> None:
    """Train whatever the search for each arm's dropout asks for, until it asks for nothing more."""
    while not all(one.is_finished for arm in arms for one in multi30k_tuning(arm)):
        train_all([one.planned for arm in arms for one in multi30k_tuning(arm)], jobs)


def finished(corpus: str) -> list[Training]:
    """Every finished run of the experiment, whatever arms and seeds were asked for this time: a record loses none."""
    if corpus == "captions":
        trainings = captions_trainings(CAPTIONS_ARMS, MOST_SEEDS)
    else:
        tuned = [arm for arm in MULTI30K_ARMS if any(one.is_finished for one in multi30k_tuning(arm))]
        trainings = multi30k_trainings(tuned, MOST_SEEDS)
    found = [one for one in trainings if one.is_finished]
    if not found:
        raise UserError(f"{corpus}: no finished run under {RUNS}/; train first")
    for name in dict.fromkeys(one.inputs for one in found):
        if not any(one.inputs == name and one.arm.name == BASELINE for one in found):
            raise UserError(f"{name}: no finished run of `{BASELINE}`, with which the others are compared")
    return found


def evaluate(corpus: str) -> None:
    """Write the records and plots of the finished runs."""
    from scripts.bottleneck_experiment.evaluate import evaluate_joined, evaluate_lengths
    from scripts.bottleneck_experiment.plots import plot, plot_vectors

    FOLDER.mkdir(parents=True, exist_ok=True)
    trainings = finished(corpus)
    for name in dict.fromkeys(one.inputs for one in trainings):
        found = in_order([one for one in trainings if one.inputs == name])
        json_path = RUNS / f"report.{name}.json"
        record = (evaluate_joined if corpus == "captions" else evaluate_lengths)(found, json_path)
        if corpus == "multi30k":
            record["tuning"] = tuning([one.arm for one in found])
        keep_other_number(FOLDER / f"{name}.json", record)
        write_json(FOLDER / f"{name}.json", record)
        plot(name, record, FOLDER / f"{name}.png")
        if record.get("vectors"):
            plot_vectors(record["vectors"], FOLDER / f"{name}-vectors.png")


def keep_other_number(path: Path, record: Record) -> None:
    """Keep the former record under another name if its runs made another number of updates: the page shows both."""
    if path.exists() and num_updates(former := read_json(path)) != num_updates(record):
        write_json(path.with_stem(f"{path.stem}-{num_updates(former)}updates"), former)


def tuning(arms: Sequence[Arm]) -> list[Record]:
    """Validation scores of each arm with each rate of dropout."""
    return [
        {"arm": one.arm.name, "dropout": one.dropout, "validation": validation(one)}
        for arm in dict.fromkeys(arms)
        for one in sorted(multi30k_tuning(arm), key=lambda one: one.dropout or 0)
        if one.is_finished
    ]


def in_order(trainings: Sequence[Training]) -> list[Training]:
    """Arm after arm, as the plan lists them: the first one is what the others are compared with."""
    order = [arm.name for arm in (*CAPTIONS_ARMS, *MULTI30K_ARMS)]
    return sorted(trainings, key=lambda one: (order.index(one.arm.name), one.seed))


def print_parameters(corpus: str, arms: Sequence[Arm]) -> None:
    """The number of parameters of each arm, and how far it is from the first one's."""
    inputs = "joined" if corpus == "captions" else "multi30k"
    prepared = prepare_corpus(load_config([f"bottleneck/{inputs}"]))
    num_source_ids, num_target_ids = len(prepared.source_vocab), len(prepared.target_vocab)
    first = None
    for arm in arms:
        model = Training(inputs, arm, 1).config.model
        count = count_parameters(build_model(model, num_source_ids=num_source_ids, num_target_ids=num_target_ids))
        first = first or count
        print(f"{arm.name:16} {count:>12,}  {100 * (count / first - 1):+.1f} %  {arm.about}")


if __name__ == "__main__":
    sys.exit(exit_code(main))
