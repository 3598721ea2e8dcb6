"""docs/quality.md: the recipes for Multi30k, and what each technique of `multi30k-fast` is
worth."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, get_args

from scripts.laboratory import experiment as experiments
from scripts.laboratory.harness.records import RECORDS, Record, load_records
from scripts.laboratory.harness.runs import changed_settings
from scripts.laboratory.pages.render import (
    LEVERS,
    describe_tests,
    mean_sd,
    origins,
    p_value,
    render,
    shared,
)
from seq2seq_attn.config import load_config
from seq2seq_attn.files import read_json

PAGE = "docs/quality.md"
CHOSEN_ON = tuple(filter(None, get_args(experiments.ChosenOn)))
"""how the settings of runs that were scored on test sets may have been chosen"""
TASK2 = "task2"
"""in the names of extra texts that come from Multi30k's task 2"""
SCORES = ["BLEU by seed", "mean", "SD", "minutes", "precision", "parameters"]
MEASURED = ("first-look", "distil", "search-quality", "unknown")
"""records of measurements of their own"""
BASELINE = {"beam_size", "length_penalty"}
"""the options of the search that the others are compared with"""


def quality_page() -> str:
    """The text of docs/quality.md."""
    recipes = recipe_records()
    techniques = ablation()
    records = load_records(RECORDS)
    changes = dict(records["first-look"]["rows"])
    del changes["the recipe"]
    compared = [row["against"] for row in (*techniques, *changes.values(), records["distil"])]
    ordered = sorted(changes.items(), key=lambda change: -float(change[1]["against"]["gain"]))
    return render(
        "quality.md.j2",
        recipes=recipes,
        mean_bleu=mean_bleu,
        score_names=SCORES,
        rows=[[f"`{name}`", track(row), *score_cells(row)] for name, row in recipes.items()],
        techniques=techniques,
        ablation=[[row["without"], *_gain(row), *score_cells(row)] for row in techniques],
        changes=ordered,
        paired_bootstrap=describe_tests(compared),
        num_gains=sum(_is_gain(change) for change in changes.values()),
        gain=lambda name: changes[name]["against"]["gain"],
        distil=records["distil"],
        search=records["search-quality"],
        grid=_grid(records["search-quality"]),
        unknown=records["unknown"],
        unknown_words=list(_unknown_words(records["unknown"])),
        search_options=list(_search_options(records["search-quality"])),
        origins=origins({f"records/{name}": records[name] for name in MEASURED}),
    )


def _is_gain(change: Record) -> bool:
    return bool(change["against"]["gain"] > 0 and change["against"]["p_value"] < 0.05)


def _grid(record: Record) -> dict[int, list[float]]:
    """BLEU by length penalty, for each beam size."""
    scores: dict[int, dict[float, float]] = {}
    for row in record["rows"]:
        options = row["options"]
        if options.keys() == BASELINE:
            by_penalty = scores.setdefault(options["beam_size"], {})
            by_penalty[options["length_penalty"]] = row["bleu"]
    return {size: [bleu for _, bleu in sorted(scores[size].items())] for size in sorted(scores)}


def _unknown_words(record: Record) -> Iterator[list[str]]:
    """A row per configuration and treatment of unknown words."""
    arms: dict[str, list[Record]] = {}
    for run in record["runs"]:
        arms.setdefault(run["run"], []).append(run)
    for name, runs in arms.items():
        for unk in ("pass", "keep"):
            counts = [run[unk]["all"] for run in runs]
            shares = []
            for key in ("kept", "in_place", "other_number"):
                shares.append(mean_sd([100 * count[key] / count["n"] for count in counts]))
            bleu = mean_sd([run[unk]["bleu"] for run in runs], digits=2)
            speed = mean_sd([run["speed_of_clean_text"] for run in runs], digits=2)
            yield [name, str(len(runs)), unk, *shares, bleu, speed if unk == "pass" else ""]


def _search_options(record: Record) -> Iterator[Sequence[Any]]:
    """A row per search with other options than beam size and length penalty."""
    for row in record["rows"]:
        names = [name for name in row["options"] if name not in BASELINE]
        if names:
            text = ", ".join(f"`{name}: {row['options'][name]}`" for name in names)
            yield [text, f"{row['bleu']:.2f}", p_value(row["p"]), f"{row['cpu_s']:.0f}"]


def problems() -> Iterator[str]:
    """A line for each record with scores of test sets that does not say how its settings were
    chosen, and each recipe whose configuration is no longer the measured one."""
    for folder in (RECORDS, LEVERS):
        for name, record in load_records(folder).items():
            if _is_tested(record) and record.get("chosen_on") not in CHOSEN_ON:
                yield (
                    f"{name}: scores of test sets, and chosen_on is {record.get('chosen_on')!r}; "
                    "choose settings on the validation set and say so: chosen_on is "
                    f"{' or '.join(CHOSEN_ON)}"
                )
    for name, record in recipe_records().items():
        settings = record.get("settings")
        changed = changed_settings(settings, load_config([name])) if settings else []
        if changed:
            yield (
                f"configs/{name}.yaml: its record has other values of {', '.join(changed)}; "
                "train it again"
            )


def _is_tested(record: Record) -> bool:
    if any("test" in run for run in record.get("runs", ())):
        return True
    names = [test["name"] for test in record.get("sets", ())]
    names.append(str(record.get("test", "")))
    return any(name.startswith("test_2") for name in names)


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
    for name in experiments.names():
        experiment = experiments.load_experiment(name)
        if experiment.page != PAGE:
            continue
        for arm_name, arm in experiment.arms.items():
            path = experiment.arm_path(arm_name)
            if path.exists():
                yield arm_name, arm, read_json(path)


def is_current(record: Record) -> bool:
    """Whether the runs that a record is compared with are of today's `multi30k-fast`."""
    settings = {**record["settings"], **record["against"]["settings"]}
    return not changed_settings(settings, load_config(["multi30k-fast"]))


def mean_bleu(record: Record) -> float:
    """Mean BLEU of a record's runs on the validation set."""
    return fmean(run["validation"]["bleu"] for run in record["runs"])


def track(record: Record) -> str:
    """A: trained on Multi30k's 29,000 pairs. B: also on captions of its task 2, or from a run that
    was."""
    settings: Mapping[str, Any] = record.get("settings", {})
    names = [*settings.get("data.extra", ()), settings.get("train.start_from") or ""]
    return "B" if any(TASK2 in name for name in names) else "A"


def score_cells(record: Record) -> list[str]:
    """The columns `SCORES` of a record."""
    runs = record["runs"]
    scores = [run["validation"]["bleu"] for run in runs]
    return [
        ", ".join(f"{score:.2f}" for score in scores),
        f"{fmean(scores):.2f}",
        f"{stdev(scores):.2f}" if len(scores) > 1 else "",
        f"{fmean(run['minutes'] for run in runs):.0f}",
        shared(runs, "precision"),
        f"{runs[0]['parameters']:,}",
    ]


def _gain(record: Record) -> tuple[str, str]:
    """The gain over the recipe, and the BLEU of the recipe's runs. Seeds are named where not all
    were compared."""
    against = record["against"]
    seeds = ""
    if against["seeds"] != [run["seed"] for run in record["runs"]]:
        plural = "s" if len(against["seeds"]) > 1 else ""
        seeds = f"; seed{plural} {', '.join(map(str, against['seeds']))}"
    gain = f"{against['gain']:+.2f} ({against['num_runs']}, {p_value(against['p_value'])}{seeds})"
    recipe = f"{against['bleu']:.2f}"
    return gain, recipe if is_current(record) else f"{recipe}, former recipe"


def test_names(*records: Record) -> list[str]:
    """The test sets that runs of some records were scored on."""
    names: dict[str, None] = {}
    for record in records:
        for run in record["runs"]:
            names |= dict.fromkeys(run.get("test", ()))
    return list(names)


def test_cells(record: Record, names: Sequence[str]) -> list[str]:
    """Seeds, then BLEU on each test set, mean ± SD, of the runs that have it."""
    tested = [run["test"] | {"seed": run["seed"]} for run in record["runs"] if "test" in run]
    cells = [", ".join(str(test["seed"]) for test in tested)]
    for name in names:
        scores = [test[name]["bleu"] for test in tested if name in test]
        cells.append(mean_sd(scores, digits=2, sign=" ± "))
    return cells
