"""The laboratory: see `scripts/lab`."""

import argparse
import logging
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from scripts.laboratory.harness.records import ROOT, add_set_option, exit_code
from seq2seq_attn.errors import UsageError

TOOLS = (
    "budgets",
    "golden",
    "house",
    "own_texts",
    "page",
    "picture",
    "serve",
    "shifts",
    "closest",
    "unknown",
)
"""modules with a command of their own; `closest` is a step of the experiment distil"""
BENCHMARKS = Path(__file__).parent / "benchmarks"


def main(arguments: Sequence[str]) -> int | None:
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    match arguments:
        case ["list"]:
            list_experiments()
            return 0
        case ["run", "race", *rest]:
            module = "benchmarks.race"
        case ["run", *rest]:
            run(rest)
            return 0
        case ["bench", name, *rest] if name in benchmarks():
            module = f"benchmarks.{name.replace('-', '_')}"
        case ["bench"]:
            print("\n".join(f"{name}: {purpose}" for name, purpose in benchmarks().items()))
            return 0
        case [module, *rest] if module in TOOLS:
            pass
        case _:
            text = (ROOT / "scripts" / "lab").read_text(encoding="utf-8")
            usage = "\n".join(re.findall("(?m)^# (.*)", text))
            raise UsageError(f"{' '.join(arguments) or 'no command'}: no such tool\n{usage}")
    tool: Callable[[Sequence[str]], int | None] = import_module(f"scripts.laboratory.{module}").main
    return tool(rest)


def benchmarks() -> dict[str, str]:
    """Each benchmark, with the first line of its docstring."""
    purposes = {}
    for path in sorted(BENCHMARKS.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "\ndef main(" in text:
            docstring = text.split('"""')[1]
            purposes[path.stem.replace("_", "-")] = docstring.split("\n")[0]
    return purposes


def list_experiments() -> None:
    from scripts.laboratory.experiment import load_experiment, names

    for name in names():
        experiment = load_experiment(name)
        print(f"{name}: {experiment.question}\n  {', '.join(experiment.arms)} -> {experiment.page}")


def run(arguments: Sequence[str]) -> None:
    from scripts.laboratory.experiment import load_experiment, parse_seeds
    from scripts.laboratory.runner import run_experiment

    parser = argparse.ArgumentParser(
        prog="scripts/lab run", description="Train what is missing, score, record."
    )
    parser.add_argument("name", help="an experiment of scripts/lab list")
    parser.add_argument(
        "--seeds", metavar="N-M", help="seeds to train; default: those of the experiment"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="runs trained in parallel; default: 2"
    )
    parser.add_argument(
        "--only", metavar="ARM,...", help="arms to train; default: all. `none` trains nothing"
    )
    add_set_option(parser)
    options = parser.parse_args(arguments)
    experiment = load_experiment(options.name, dict(options.set))
    only = options.only.split(",") if options.only else list(experiment.arms)
    if unknown := [arm for arm in only if arm not in experiment.arms and arm != "none"]:
        raise UsageError(
            f"--only {','.join(unknown)}: expected some of {', '.join(experiment.arms)}"
        )
    chosen = [arm for arm in experiment.arms if arm in only]
    seeds = parse_seeds(options.seeds or experiment.seeds)
    for path in run_experiment(experiment, only=chosen, seeds=seeds, jobs=options.jobs):
        print(path)


if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(sys.argv[1:])))
