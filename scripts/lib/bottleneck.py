"""The bottleneck experiment from trainings to pages: see `scripts/bottleneck`."""

from __future__ import annotations

import argparse

from bottleneck_plan import (
    CAPTIONS_ARMS,
    MULTI30K_ARMS,
    Arm,
    captions_trainings,
    multi30k_trainings,
    multi30k_tuning,
)
from bottleneck_train import train_all


def main() -> None:
    options = parse()
    arms = choose_arms(CAPTIONS_ARMS if options.corpus == "captions" else MULTI30K_ARMS, options.arms)
    if options.corpus == "captions":
        train_all(captions_trainings(arms, options.seeds), options.jobs)
    else:
        train_all(multi30k_tuning(arms), options.jobs)
        train_all(multi30k_trainings(arms, options.seeds), options.jobs)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bottleneck", description="The bottleneck experiment.")
    parser.add_argument("--corpus", choices=("captions", "multi30k"), required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="trainings at a time, one thread each")
    parser.add_argument("--arms", help="names, separated by commas; default: all")
    return parser.parse_args()


def choose_arms(arms: tuple[Arm, ...], names: str | None) -> list[Arm]:
    by_name = {arm.name: arm for arm in arms}
    wanted = names.split(",") if names else list(by_name)
    if unknown := [name for name in wanted if name not in by_name]:
        raise SystemExit(f"--arms {','.join(unknown)}: arms are {', '.join(by_name)}")
    return [by_name[name] for name in wanted]


if __name__ == "__main__":
    main()
