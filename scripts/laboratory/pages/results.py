"""docs/results.md: evaluations of trained configurations; and the headers of configurations, which
show the same scores."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean

from scripts.laboratory.harness.records import RECORDS, ROOT, Record, load_records
from scripts.laboratory.pages.quality import recipe_records, test_cells, test_names, track
from scripts.laboratory.pages.render import describe_tests, interval, mean_sd, origins, render

MEASURES = {
    "bleu": "BLEU",
    "bleu_lowercase": "BLEU, lower-cased",
    "bleu_tutorial": "BLEU, tutorial",
    "chrf": "chrF",
}
FEATURES = ("unseen-names", "lexicons", "sources", "scenes", "cli", "kill-resume")
"""records of single features"""


def evaluations() -> dict[str, Record]:
    """Evaluation records by name; records of speed and of resume have other pages."""
    return {record["name"]: record for record in load_records(RECORDS).values() if "sets" in record}


def configurations(records: Mapping[str, Record]) -> dict[str, Record]:
    """Each configuration that has a record: its first run, and its scores on the first test set.

    The scores are cased BLEU, or the tutorial's BLEU for models that write lower case. Where the
    record of the recipe has several seeds, they are the scores of those.
    """
    configs: dict[str, Record] = {}
    for record in records.values():
        for number, run in enumerate(record["runs"]):
            if run["config"] not in configs:
                configs[run["config"]] = _scores(record, number)
    return configs


def _scores(record: Record, first: int) -> Record:
    """The scores of the configuration whose first run has that number in the record."""
    test = record["sets"][0]
    run = record["runs"][first]
    config = run["config"]
    name = "bleu_tutorial" if run["lowercases"] else "bleu"
    [measure] = [measure for measure in test["measures"] if measure["name"] == name]
    recipe = recipe_records().get(config, {"runs": []})
    runs = [run for run in recipe["runs"] if "test" in run]
    scores = [run["test"][test["name"]]["bleu"] for run in runs]
    minutes = [run["minutes"] for run in runs]
    if not runs:
        for other, scored in zip(record["runs"], measure["runs"], strict=True):
            if other["config"] == config:
                runs.append(other)
                scores.append(scored["score"])
                minutes.append(other["training"]["minutes"])
    first_score = measure["runs"][first]
    several = mean_sd(scores, sign=" ± ")
    return {
        "config": config,
        "record": record["name"],
        "languages": record.get("languages", ["de", "en"]),
        "test": test["name"],
        "num_pairs": test["num_pairs"],
        "run": run,
        "measure": MEASURES[name],
        "signature": measure["signature"],
        "first_score": first_score,
        "seeds": [run["seed"] for run in runs],
        "scores": scores,
        "mean": fmean(scores),
        "bleu": several if len(scores) > 1 else interval(first_score, "score"),
        "minutes": fmean(minutes),
    }


def results_page(records: Mapping[str, Record]) -> str:
    """The text of docs/results.md."""
    others = load_records(RECORDS)
    recipes = recipe_records()
    systems = others["sources"]["systems"]
    compared = [row["paired_bootstrap"] for row in systems if "gain" in row]
    return render(
        "results.md.j2",
        other=others,
        overview=configurations(records),
        several=recipes,
        tests=test_names(*recipes.values()),
        track=track,
        test_cells=test_cells,
        paired_bootstrap=describe_tests(compared),
        origins=origins({f"records/{name}": others[name] for name in FEATURES}),
    )


def config_headers(records: Mapping[str, Record]) -> Iterator[tuple[Path, str]]:
    """Path and wanted text of each packaged configuration that has a record, which its header
    shows."""
    for config, scores in configurations(records).items():
        path = ROOT / "configs" / f"{config}.yaml"
        if path.exists():
            text = path.read_text(encoding="utf-8")
            text = re.sub(r"#\n# Result: .*\n(# .*\n)*", "", text)
            first_key = re.search(r"^(name:|extends:)", text, flags=re.MULTILINE)
            assert first_key, path
            start = first_key.start()
            result = render("config.txt.j2", config=scores)
            yield path, f"{text[:start]}{result}{text[start:]}"
