"""Turn finished runs on Multi30k into records of levers: what a change of settings does to validation BLEU.

Runs that differ in nothing but the seed are one row. Test sets are translated only with --test, for rows that are
published: their settings must have been chosen on the validation set, which --chosen-on states.

    scripts/levers runs/a-s1 runs/a-s2 --against runs/multi30k-s1 runs/multi30k-s2
    scripts/levers runs/no-smoothing-s1 --without "label smoothing" --against runs/multi30k-s1 runs/multi30k-s2
    scripts/levers runs/final-s1 runs/final-s2 runs/final-s3 --test --chosen-on validation
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from scripts.harness.pages import p_value, table
from scripts.harness.records import RECORDS, Record, describe, exit_code, load_records
from scripts.harness.runs import describe_run, score
from seq2seq_attn.config import Config, load_config, packaged_config_names
from seq2seq_attn.errors import UsageError
from seq2seq_attn.evaluation.names import trained_settings
from seq2seq_attn.files import write_json
from seq2seq_attn.metrics.bleu import CorpusStatistics
from seq2seq_attn.metrics.seeds import BootstrapSamples, bootstrap, mean_difference, pool, spread
from seq2seq_attn.run_dir import RunDir

FOLDER = RECORDS / "levers"
BASELINE = "multi30k"
"""the record that the others are described by: what is named is what differs from its settings"""
BEAM_SIZE = 5
VALIDATION = "validation"
ELSEWHERE = "published elsewhere"
CHOSEN_ON = (VALIDATION, ELSEWHERE)
"""how the settings of published rows may have been chosen"""
TASK2 = "task2"
"""in the names of extra texts that come from Multi30k's task 2"""
_NO_SETTING = ("search.max_length_ratio", "search.beam_size", "train.precision")
"""decided by training, by this script, by the machine"""
_OBJECTIVES = "train.objectives."
_SCORES = ["BLEU by seed", "mean", "SD", "gain (n, p)", "minutes", "parameters", "hardware"]
_WHOLE_TRAINING = {"start": 0.0, "end": 1.0}
"""settings of an objective that say nothing: it acts from the first update to the last"""


def settings_of(config: Config) -> Record:
    """The settings that make two runs the same lever; of extra texts their names."""
    found = {key: value for key, value in trained_settings(config).items() if key not in _NO_SETTING}
    for name in config.train.objectives:
        for setting, value in _WHOLE_TRAINING.items():
            if found[key := f"{_OBJECTIVES}{name}.{setting}"] == value:
                del found[key]
    names = [spec if isinstance(spec, str) else spec[0] for spec in found.get("data.extra", [])]
    return {**found, "data.extra": [Path(name).name for name in names]}


def adopt(
    runs: Sequence[RunDir],
    *,
    folder: Path = FOLDER,
    against: Sequence[RunDir] = (),
    test: bool = False,
    chosen_on: str | None = None,
    without: str | None = None,
    device: str = "auto",
) -> list[Path]:
    """Score runs and add them to the records of their settings. Returns the records.

    Args:
        runs: finished runs; a run replaces an earlier one of the same settings and seed, but keeps its test scores if
            it is the same training.
        folder: of the records.
        against: runs of one setting, to which each row of `runs` is compared by the paired bootstrap.
        test: also translate the test sets, once, for publication.
        chosen_on: on what the settings were chosen.
        without: the lever of the recipe that `runs` do without: they are rows of the ablation.
        device: as for `translate`.

    Raises:
        UsageError: a run has not finished, or the test sets are not to be looked at.
    """
    check_chosen(test, chosen_on)
    check_finished([*runs, *against])
    validated = [validate([run], device=device) for run in against]
    written = []
    for settings, of_row in _rows(runs):
        path = folder / f"{_stem(settings, folder)}.json"
        known = load_records(folder).get(path.stem, {"runs": []})
        found = [validate([run], device=device) for run in of_row]
        before = {one["seed"]: one for one in known["runs"]}
        entries = []
        for run, of_run in zip(of_row, found, strict=True):
            new, old = entry(run, of_run, test=test, device=device), before.pop(run.config().seed, {})
            is_known = old.get("trained_at") == new["trained_at"]
            entries.append({**({"test": old["test"]} if is_known and "test" in old else {}), **new})
            if old and not is_known:
                known = {key: value for key, value in known.items() if key != "against"}  # of a run that is replaced
        seeds = {one["seed"] for one in entries}
        entries += before.values()
        record = {**known, "settings": settings, "config": of_row[0].config().name, "beam_size": BEAM_SIZE}
        record |= {"runs": sorted(entries, key=lambda one: int(one["seed"]))}
        record |= {"chosen_on": chosen_on} if chosen_on else {}
        record |= {"without": without} if without else {}
        if validated:
            record["against"] = {"seeds": sorted(seeds), **compared(validated, found)}
        write_json(path, {**record, "environment": describe("scripts/levers")})
        written.append(path)
    return written


def check_finished(runs: Sequence[RunDir]) -> None:
    """Raises UsageError if a run has not finished, UserError if a directory is not a run."""
    for run in runs:
        run.config()  # refuses what is not a run
        if not run.is_finished():
            raise UsageError(f"{run.path}: not a finished run; a record needs one, continue it with --resume")


def check_chosen(test: bool, chosen_on: str | None) -> None:
    """Raises UsageError if test sets are to be scored of settings that were not chosen on the validation set."""
    if test and chosen_on not in CHOSEN_ON:
        raise UsageError("--test: only for settings that were chosen on the validation set; add --chosen-on validation")


def validate(runs: Sequence[RunDir], *, device: str = "auto", keep_in: Path | None = None) -> CorpusStatistics:
    """A run, or the ensemble of several, on the validation set. `keep_in`: see `score`."""
    return score(runs, ["valid"], beam_size=BEAM_SIZE, device=device, keep_in=keep_in)["valid"]


def entry(
    run: RunDir, validated: CorpusStatistics, *, test: bool = False, device: str = "auto", keep_in: Path | None = None
) -> Record:
    """A run as a record keeps it: seed, scores, training. `test`: also translate the test sets."""
    found = {"seed": run.config().seed, VALIDATION: score_entry(validated), **describe_run(run)}
    if test:
        tested = score([run], [], beam_size=BEAM_SIZE, device=device, keep_in=keep_in)
        found["test"] = {name: score_entry(statistics) for name, statistics in tested.items()}
    return found


def score_entry(statistics: CorpusStatistics) -> Record:
    """A corpus score as a record keeps it."""
    found = statistics.score()
    return {"bleu": round(found.score, 2), "num_pairs": found.num_pairs, "signature": found.signature}


def refusals(records: Mapping[str, Record]) -> Iterator[str]:
    """One line for each record with scores of test sets that does not say how its settings were chosen."""
    for name, record in records.items():
        names = [one["name"] for one in record.get("sets", ())] + [str(record.get("test", ""))]
        has_tests = any("test" in run for run in record.get("runs", ())) or any(
            name.startswith("test_2") for name in names
        )
        if has_tests and record.get("chosen_on") not in CHOSEN_ON:
            yield (
                f"{name}: scores of test sets, and chosen_on is {record.get('chosen_on')!r}; choose settings on the "
                f"validation set and say so: chosen_on is {' or '.join(CHOSEN_ON)}"
            )


def render(records: Mapping[str, Record]) -> list[str]:
    """The section of docs/quality.md: a table of levers on the validation set, one of published rows."""
    if BASELINE not in records:
        return []
    base = records[BASELINE]
    first = base["runs"][0]
    lines = ["## Settings tried", ""]
    lines += [
        f"Multi30k, {first[VALIDATION]['num_pairs']:,} validation pairs, beam {base['beam_size']}, "
        f"`{first[VALIDATION]['signature']}`; by `scripts/levers`. A row is a config, or `{base['config']}` with the "
        "settings that it names; do not compare rows of different languages. Track A trains on the 29,000 pairs alone; "
        "track B also on captions of Multi30k's task 2: do not compare it with track A. SD is the standard deviation "
        "over seeds. The gain is over the mean of n runs without those settings, with the p of the paired bootstrap. "
        "Subword sampling keeps all subwords in the vocabulary, hence its parameters. Minutes are wall time, the mean "
        "over seeds, on machines that did other work too.",
        "",
    ]
    ordered = sorted(records.items(), key=lambda one: (one[0] != BASELINE, _languages(one[1]), -_mean(one[1])))
    rows = [[_label(record, base), track(record), *_scores(record)] for _, record in ordered if "without" not in record]
    lines += [*table(["settings", "track", *_SCORES], rows, align="---:"), "", *_ablation(records, base)]
    published = [record for _, record in ordered if any("test" in run for run in record["runs"])]
    if published:
        names = list(dict.fromkeys(name for record in published for name in test_names(record)))
        header = ["settings", "track", "settings chosen on", "seeds", *names]
        lines += ["### Test sets", "", "Each run translated the test sets once; mean ± SD over seeds.", ""]
        lines += [*table(header, [_published(record, base, names) for record in published]), ""]
    return lines


def _ablation(records: Mapping[str, Record], base: Record) -> list[str]:
    """The recipe without each of its levers."""
    without = sorted((record for record in records.values() if "without" in record), key=_mean)
    if not without:
        return []
    rows = [[record["without"], _label(record, base), *_scores(record)] for record in without]
    about = (
        f"`{base['config']}` without one of its levers at a time: the row's settings replace those of the config. The "
        "gain is that of the row over the config, so it is negative where the lever helps."
    )
    return ["### Ablation", "", about, "", *table(["without", "settings", *_SCORES], rows, align="---:"), ""]


def _rows(runs: Sequence[RunDir]) -> Iterator[tuple[Record, list[RunDir]]]:
    of_settings: dict[str, list[RunDir]] = {}
    for run in runs:
        of_settings.setdefault(json.dumps(settings_of(run.config()), sort_keys=True), []).append(run)
    for settings, of_row in of_settings.items():
        yield json.loads(settings), of_row


def _stem(settings: Record, folder: Path) -> str:
    """The name of a record: that of the record with these settings, else one made of what differs from the baseline."""
    records = load_records(folder)
    for name, record in records.items():
        if not _difference(record["settings"], settings):
            return name
    if BASELINE not in records:
        return BASELINE
    changed = _difference(records[BASELINE]["settings"], settings)
    words = "-".join(f"{_short(key)}-{value}" for key, value in changed.items())
    short = re.sub(r"[^A-Za-z0-9.]+", "-", words).strip("-")
    digest = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:6]
    return short if len(short) <= 60 and short not in records else f"{short[:50].strip('-')}-{digest}"


def _short(key: str) -> str:
    """The end of a setting's name, and the objective that it belongs to."""
    is_of_objective = key.startswith(_OBJECTIVES)
    return key.removeprefix(_OBJECTIVES) if is_of_objective else key.removesuffix(".name").rpartition(".")[2]


def _difference(base: Record, settings: Record) -> Record:
    """The settings that differ, as the second has them; a key that a record lacks has its default."""
    defaults = settings_of(load_config(["base"]))
    keys = dict.fromkeys([*base, *settings])
    values = {key: (base.get(key, defaults.get(key)), settings.get(key, defaults.get(key))) for key in keys}
    return {key: new for key, (old, new) in values.items() if old != new}


def compared(baseline: Sequence[CorpusStatistics], row: Sequence[CorpusStatistics]) -> Record:
    """The difference of the means of two rows of runs, with its p by the paired bootstrap."""
    samples = bootstrap([*baseline, *row])
    arms: list[BootstrapSamples] = [pool(samples[: len(baseline)]), pool(samples[len(baseline) :])]
    test = mean_difference(*arms)
    return {"num_runs": len(baseline), "gain": round(test.difference, 2), "p_value": test.p_value}


def _mean(record: Record) -> float:
    return fmean(run[VALIDATION]["bleu"] for run in record["runs"])


def track(record: Record) -> str:
    """A: trained on Multi30k's 29,000 pairs. B: also on captions of its task 2."""
    return "B" if any(TASK2 in name for name in record.get("settings", {}).get("data.extra", ())) else "A"


def _languages(record: Record) -> tuple[str, str, str]:
    settings = record["settings"]
    return track(record), settings.get("data.target_language", "en"), settings.get("data.source_language", "de")


def is_packaged(record: Record) -> bool:
    """Whether its settings are those of a packaged configuration."""
    name = record["config"]
    return name in packaged_config_names() and not _difference(settings_of(load_config([name])), record["settings"])


def _label(record: Record, base: Record) -> str:
    """A configuration's name, or what differs from the baseline."""
    if is_packaged(record):
        return f"`{record['config']}`"
    changed = _difference(base["settings"], record["settings"])
    return ", ".join(f"`{key}={_shown(value)}`" for key, value in changed.items()) or f"`{base['config']}`"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _scores(record: Record) -> list[str]:
    """The cells of `_SCORES`."""
    runs = record["runs"]
    values = spread([run[VALIDATION]["bleu"] for run in runs])
    gain = record.get("against", {"seeds": None})
    is_of_these = gain["seeds"] == [run["seed"] for run in runs]  # seeds may have been added since
    deviation = "" if values.standard_deviation is None else f"{values.standard_deviation:.2f}"
    return [
        ", ".join(f"{run[VALIDATION]['bleu']:.2f}" for run in runs),
        f"{values.mean:.2f}",
        deviation,
        f"{gain['gain']:+.2f} ({gain['num_runs']}, {p_value(gain['p_value'])})" if is_of_these else "",
        f"{fmean(run['minutes'] for run in runs):.0f}",
        f"{runs[0]['parameters']:,}",
        ", ".join(dict.fromkeys(str(run["hardware"]) for run in runs)),
    ]


def _published(record: Record, base: Record, names: Sequence[str]) -> list[str]:
    return [_label(record, base), track(record), record.get("chosen_on", ""), *test_cells(record, names)]


def test_names(record: Record) -> list[str]:
    """The test sets that runs of a record were scored on."""
    return list(dict.fromkeys(name for run in record["runs"] for name in run.get("test", ())))


def test_cells(record: Record, names: Sequence[str]) -> list[str]:
    """Seeds, then BLEU on each test set, mean ± SD, of the runs that have it."""
    tested = [run for run in record["runs"] if "test" in run]
    cells = [", ".join(str(run["seed"]) for run in tested)]
    for name in names:
        values = [run["test"][name]["bleu"] for run in tested if name in run["test"]]
        if not values:
            cells.append("")
            continue
        found = spread(values)
        deviation = "" if found.standard_deviation is None else f" ± {found.standard_deviation:.2f}"
        cells.append(f"{found.mean:.2f}{deviation}")
    return cells


def main() -> None:
    """Score the runs, write the records, print the table."""
    parser = argparse.ArgumentParser(
        prog="scripts/levers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=RunDir, nargs="+", metavar="RUN", help="finished runs; seeds of a row together")
    parser.add_argument(
        "--against", type=RunDir, nargs="+", default=[], metavar="RUN", help="compare each row to these"
    )
    parser.add_argument("--test", action="store_true", help="also score the test sets, for publication")
    parser.add_argument("--chosen-on", choices=CHOSEN_ON, help="what the settings were chosen on")
    parser.add_argument("--without", metavar="LEVER", help="rows of the ablation: the recipe without this lever")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the records; default: %(default)s")
    parser.add_argument("--device", default="auto", help="default: %(default)s")
    options = parser.parse_args()
    adopt(**vars(options))
    print("\n".join(render(load_records(options.folder))))


if __name__ == "__main__":
    sys.exit(exit_code(main))
