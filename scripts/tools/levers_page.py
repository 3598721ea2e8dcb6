"""The records of levers as tables of docs/quality.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from scripts.laboratory.harness.pages import PAIRED_BOOTSTRAP, p_value, table
from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.settings import difference, settings_of
from seq2seq_attn.config import load_config, packaged_config_names
from seq2seq_attn.metrics.seeds import spread

BASELINE = "multi30k"
"""the record that the others are described by: what is named is what differs from its settings"""
VALIDATION = "validation"
TASK2 = "task2"
"""in the names of extra texts that come from Multi30k's task 2"""
_SCORES = ["BLEU by seed", "mean", "SD", "gain (n, p)", "over (BLEU)", "minutes", "precision", "parameters", "hardware"]


def render(records: Mapping[str, Record]) -> list[str]:
    """The section of docs/quality.md: a table of levers on the validation set, one of published rows."""
    if BASELINE not in records:
        return []
    base = records[BASELINE]
    first = base["runs"][0]
    lines = ["## Settings tried", ""]
    lines += [
        f"Multi30k, {first[VALIDATION]['num_pairs']:,} validation pairs, beam {base['beam_size']}, "
        f"`{first[VALIDATION]['signature']}`; by `scripts/levers`. A row names a config and the settings changed in it "
        f"(`{base['config']}` if it names no config); do not compare rows of different languages. Track A trains on "
        "the 29,000 pairs alone; track B also on captions of Multi30k's task 2: do not compare it with track A. SD is "
        "the standard deviation over seeds. The gain is over the mean of n runs of another row, with p by "
        f"{PAIRED_BOOTSTRAP}; in brackets the BLEU of these runs. Seeds are listed if only some of this row's were "
        "compared. Subword sampling keeps all subwords in the vocabulary, so it has more parameters. Minutes are wall "
        "time, the mean over seeds, earlier stages included, on one thread if the settings say nothing else, and on "
        "machines that did other work too; compare those of one precision only.",
        "",
    ]
    ordered = sorted(records.items(), key=lambda one: (one[0] != BASELINE, _languages(one[1]), -_mean(one[1])))
    rows = [
        [_label(record, base), track(record), *_scores(record, base)]
        for _, record in ordered
        if "without" not in record or is_packaged(record)
    ]
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
    rows = [[record["without"], _label(record, base), *_scores(record, base)] for record in without]
    about = (
        "What the techniques of a recipe are worth: each row lacks one of them. The gain, negative where the technique "
        "helps, is over the recipe named in the column `over`."
    )
    return ["### Ablation", "", about, "", *table(["without", "settings", *_SCORES], rows, align="---:"), ""]


def _mean(record: Record) -> float:
    return fmean(run[VALIDATION]["bleu"] for run in record["runs"])


def track(record: Record) -> str:
    """A: trained on Multi30k's 29,000 pairs. B: also on captions of its task 2, or from a run that was."""
    settings = record.get("settings", {})
    names = [*settings.get("data.extra", ()), settings.get("train.start_from") or ""]
    return "B" if any(TASK2 in name for name in names) else "A"


def _languages(record: Record) -> tuple[str, str, str]:
    settings = record["settings"]
    return track(record), settings.get("data.target_language", "en"), settings.get("data.source_language", "de")


def is_packaged(record: Record) -> bool:
    """Whether its settings are those of a packaged configuration."""
    name = record["config"]
    return name in packaged_config_names() and not difference(settings_of(load_config([name])), record["settings"])


def _label(record: Record, base: Record) -> str:
    """A configuration's name, if it is not the baseline, and what differs from it."""
    if is_packaged(record):
        return f"`{record['config']}`"
    name, named = record["config"].partition("+")[0], []  # without the names of overlays
    reference = base["settings"]
    if name != base["config"] and name in packaged_config_names():
        reference, named = settings_of(load_config([name])), [f"`{name}`"]
    return ", ".join([*named, *_named(difference(reference, record["settings"]))]) or f"`{name}`"


def _named(changed: Mapping[str, Any]) -> list[str]:
    """Settings with their values; those of one section with the same value together, `section.{one,other}=value`."""
    groups: dict[tuple[str, str], list[str]] = {}
    for key, value in changed.items():
        section, dot, last = key.rpartition(".")
        groups.setdefault((section + dot, _shown(value)), []).append(last)
    return [
        f"`{section}{names[0] if len(names) == 1 else '{' + ','.join(names) + '}'}={value}`"
        for (section, value), names in groups.items()
    ]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _scores(record: Record, base: Record) -> list[str]:
    """The cells of `_SCORES`."""
    runs = record["runs"]
    values = spread([run[VALIDATION]["bleu"] for run in runs])
    deviation = "" if values.standard_deviation is None else f"{values.standard_deviation:.2f}"
    return [
        ", ".join(f"{run[VALIDATION]['bleu']:.2f}" for run in runs),
        f"{values.mean:.2f}",
        deviation,
        *_gain(record, base),
        f"{fmean(run['minutes'] for run in runs):.0f}",
        ", ".join(dict.fromkeys(run["precision"] for run in runs)),
        f"{runs[0]['parameters']:,}",
        ", ".join(dict.fromkeys(str(run["hardware"]) for run in runs)),
    ]


def _gain(record: Record, base: Record) -> tuple[str, str]:
    """The gain, and the label of the row that it is over. Seeds are named where not all were compared."""
    if "against" not in record:
        return "", ""
    against = record["against"]
    is_of_all = against["seeds"] == [run["seed"] for run in record["runs"]]
    seeds = "" if is_of_all else f"; seed{'s' * (len(against['seeds']) > 1)} {', '.join(map(str, against['seeds']))}"
    settings, name = {**record["settings"], **against["settings"]}, against.get("config", base["config"])
    other = {**record, "settings": settings, "config": name}
    gain = f"{against['gain']:+.2f} ({against['num_runs']}, {p_value(against['p_value'])}{seeds})"
    return gain, f"{_label(other, base)} ({against['bleu']:.2f})"


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
