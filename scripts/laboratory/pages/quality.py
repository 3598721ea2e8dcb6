"""docs/quality.md: the recipes for Multi30k, and what each technique of `multi30k-fast` is
worth."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import get_args

from scripts.laboratory import experiment as experiments
from scripts.laboratory.harness.records import RECORDS, Record, load_records
from scripts.laboratory.harness.runs import changed_settings
from scripts.laboratory.pages.render import LEVERS, mean_sd, p_value, render, shared
from seq2seq_attn.config import load_config
from seq2seq_attn.files import read_json

PAGE = "docs/quality.md"
CHOSEN_ON = tuple(filter(None, get_args(experiments.ChosenOn)))
"""how the settings of runs that were scored on test sets may have been chosen"""
TASK2 = "task2"
"""in the names of extra texts that come from Multi30k's task 2"""
SCORES = ["BLEU by seed", "mean", "SD", "minutes", "precision", "parameters", "hardware"]


def quality_page() -> str:
    recipes = recipe_records()
    tests = test_names(*recipes.values())
    return render(
        "quality.md.j2",
        recipes=recipes,
        mean_bleu=mean_bleu,
        score_names=SCORES,
        rows=[
            [f"`{name}`", track(record), *score_cells(record)] for name, record in recipes.items()
        ],
        tests=tests,
        tested=[
            [f"`{name}`", record["chosen_on"], *test_cells(record, tests)]
            for name, record in recipes.items()
        ],
        ablation=[
            [record["without"], *_gain(record), *score_cells(record)] for record in ablation()
        ],
        techniques=ablation(),
    )


def problems() -> Iterator[str]:
    """A line for each record with scores of test sets that does not say how its settings were
    chosen, and each recipe whose configuration is no longer the measured one."""
    for folder in (RECORDS, LEVERS):
        for name, record in load_records(folder).items():
            names = [test["name"] for test in record.get("sets", ())] + [
                str(record.get("test", ""))
            ]
            is_tested = any("test" in run for run in record.get("runs", ()))
            is_tested = is_tested or any(name.startswith("test_2") for name in names)
            if is_tested and record.get("chosen_on") not in CHOSEN_ON:
                yield (
                    f"{name}: scores of test sets, and chosen_on is {record.get('chosen_on')!r}; "
                    "choose settings on the validation set and say so: chosen_on is "
                    f"{' or '.join(CHOSEN_ON)}"
                )
    for name, record in recipe_records().items():
        if "settings" in record and (
            changed := changed_settings(record["settings"], load_config([name]))
        ):
            yield f"configs/{name}.yaml: its record has other values of {', '.join(changed)}; train it again"


def recipe_records() -> dict[str, Record]:
    """The records of packaged configurations: those of track A, then B, the best last."""
    records = {name: record for name, arm, record in arm_records() if arm.is_published}
    return dict(sorted(records.items(), key=lambda item: (track(item[1]), mean_bleu(item[1]))))


def ablation() -> list[Record]:
    """The recipe without each of its techniques, the greatest loss first."""
    rows = [{**record, "without": arm.without} for _, arm, record in arm_records() if arm.without]
    return sorted(rows, key=lambda record: float(record["against"]["gain"]))


def arm_records() -> Iterator[tuple[str, experiments.Arm, Record]]:
    """The arms of the experiments whose page this is, with their records."""
    for experiment in map(experiments.load_experiment, experiments.names()):
        arms = experiment.arms.items() if experiment.page == PAGE else ()
        yield from (
            (name, arm, read_json(path))
            for name, arm in arms
            if (path := experiment.arm_path(name)).exists()
        )


def is_current(record: Record) -> bool:
    """Whether the runs that a record is compared with are of today's `multi30k-fast`."""
    settings = {**record["settings"], **record["against"]["settings"]}
    return not changed_settings(settings, load_config(["multi30k-fast"]))


def mean_bleu(record: Record) -> float:
    return fmean(run["validation"]["bleu"] for run in record["runs"])


def track(record: Record) -> str:
    """A: trained on Multi30k's 29,000 pairs. B: also on captions of its task 2, or from a run that
    was."""
    settings = record.get("settings", {})
    names = [*settings.get("data.extra", ()), settings.get("train.start_from") or ""]
    return "B" if any(TASK2 in name for name in names) else "A"


def score_cells(record: Record) -> list[str]:
    runs = record["runs"]
    scores = [run["validation"]["bleu"] for run in runs]
    return [
        ", ".join(f"{score:.2f}" for score in scores),
        f"{fmean(scores):.2f}",
        f"{stdev(scores):.2f}" if len(scores) > 1 else "",
        f"{fmean(run['minutes'] for run in runs):.0f}",
        shared(runs, "precision"),
        f"{runs[0]['parameters']:,}",
        shared(runs, "hardware"),
    ]


def _gain(record: Record) -> tuple[str, str]:
    """The gain over the recipe, and the BLEU of the recipe's runs. Seeds are named where not all
    were compared."""
    against = record["against"]
    is_of_all = against["seeds"] == [run["seed"] for run in record["runs"]]
    seeds = (
        ""
        if is_of_all
        else f"; seed{'s' * (len(against['seeds']) > 1)} {', '.join(map(str, against['seeds']))}"
    )
    gain = f"{against['gain']:+.2f} ({against['num_runs']}, {p_value(against['p_value'])}{seeds})"
    return gain, f"{against['bleu']:.2f}{'' if is_current(record) else ', former recipe'}"


def test_names(*records: Record) -> list[str]:
    """The test sets that runs of some records were scored on."""
    return list(
        dict.fromkeys(
            name for record in records for run in record["runs"] for name in run.get("test", ())
        )
    )


def test_cells(record: Record, names: Sequence[str]) -> list[str]:
    """Seeds, then BLEU on each test set, mean ± SD, of the runs that have it."""
    tested = [run for run in record["runs"] if "test" in run]
    scores = [
        [run["test"][name]["bleu"] for run in tested if name in run["test"]] for name in names
    ]
    return [
        ", ".join(str(run["seed"]) for run in tested),
        *(mean_sd(score, digits=2, sign=" ± ") for score in scores),
    ]
