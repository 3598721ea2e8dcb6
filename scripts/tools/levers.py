"""Turn finished runs on Multi30k into records of levers: what a change of settings does to validation BLEU.

Runs that differ in nothing but the seed are one row. Test sets are translated only with --test, for rows that are
published: their settings must have been chosen on the validation set, which --chosen-on states.

    scripts/levers runs/a-s1 runs/a-s2 --against runs/multi30k-s1 runs/multi30k-s2
    scripts/levers runs/no-smoothing-s1 --without "label smoothing" --against runs/multi30k-s1 runs/multi30k-s2
    scripts/levers runs/final-s1 runs/final-s2 runs/final-s3 --test --chosen-on validation
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from scripts.laboratory.harness.records import RECORDS, Record, describe, exit_code, load_records
from scripts.laboratory.harness.runs import describe_run, minutes_before, score
from scripts.laboratory.harness.settings import OBJECTIVES, difference, settings_of
from scripts.tools.levers_page import BASELINE, VALIDATION, render
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import sha256_of_values, write_json
from seq2seq_attn.metrics.bleu import CorpusStatistics
from seq2seq_attn.metrics.seeds import BootstrapSamples, bootstrap, mean_difference, pool
from seq2seq_attn.run_dir import RunDir

FOLDER = RECORDS / "levers"
BEAM_SIZE = 5
ELSEWHERE = "published elsewhere"
CHOSEN_ON = (VALIDATION, ELSEWHERE)
"""how the settings of published rows may have been chosen"""


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
        runs: finished runs; a run replaces an earlier one of the same settings and seed that has no test scores.
        folder: of the records.
        against: runs of one setting, to which each row of `runs` is compared by the paired bootstrap.
        test: also translate the test sets, once, for publication.
        chosen_on: on what the settings were chosen.
        without: the lever of the recipe that `runs` do without: they are rows of the ablation.
        device: as for `translate`.

    Raises:
        UsageError: a run has not finished, another run of its settings and seed has test scores, the test sets are not
            to be looked at, or `against` has several settings.
    """
    check_chosen(test, chosen_on)
    check_finished([*runs, *against])
    if len([*_rows(against)]) > 1:
        raise UsageError("--against: runs of different settings; name the seeds of one row")
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
            if "test" in old and not is_known:
                raise UsageError(f"{run.path}: test scores of seed {new['seed']} are on record; train another seed")
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
            other = against[0].config()
            record["against"] = {"config": other.name, "settings": difference(settings, settings_of(other))}
            record["against"] |= {"seeds": sorted(seeds), **compared(validated, found)}
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
    found["minutes"] = round(found["minutes"] + minutes_before(run), 1)
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
        if not difference(record["settings"], settings):
            return name
    if BASELINE not in records:
        return BASELINE
    changed = difference(records[BASELINE]["settings"], settings)
    words = "-".join(f"{_short(key)}-{value}" for key, value in changed.items())
    short = re.sub(r"[^A-Za-z0-9.]+", "-", words).strip("-")
    digest = sha256_of_values(changed)[:6]
    return short if len(short) <= 60 and short not in records else f"{short[:50].strip('-')}-{digest}"


def _short(key: str) -> str:
    """The end of a setting's name, and the objective that it belongs to."""
    is_of_objective = key.startswith(OBJECTIVES)
    return key.removeprefix(OBJECTIVES) if is_of_objective else key.removesuffix(".name").rpartition(".")[2]


def compared(baseline: Sequence[CorpusStatistics], row: Sequence[CorpusStatistics]) -> Record:
    """The difference of the means of two rows of runs, with its p by the paired bootstrap."""
    samples = bootstrap([*baseline, *row])
    arms: list[BootstrapSamples] = [pool(samples[: len(baseline)]), pool(samples[len(baseline) :])]
    test = mean_difference(*arms)
    bleu = round(fmean(one.score().score for one in baseline), 2)
    return {"num_runs": len(baseline), "bleu": bleu, "gain": round(test.difference, 2), "p_value": test.p_value}


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
