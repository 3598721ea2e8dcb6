"""From the records of the bottleneck experiment to its pages and README's block. Needs the standard library alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "bottleneck"
BEGIN = "<!-- bottleneck: written by scripts/bottleneck, from docs/bottleneck -->"
END = "<!-- end of bottleneck -->"
Record = dict[str, Any]

TITLES = {
    "joined": "One to six captions joined, trained on one to six",
    "single": "One to six captions joined, trained on single ones",
    "multi30k": "Multi30k, all test sets pooled",
}
INTRODUCTIONS = {
    "joined": "Captions of 4 to 10 tokens, one to six of them side by side, in training as in the test: no length is "
    "unfamiliar, so that what is lost is the vector's capacity.",
    "single": "The same test, but no joined input in training: capacity and unfamiliar length act together.",
    "multi30k": "Natural sentences. Each arm has the rate of dropout that validated best with its first seed.",
}


def load_records() -> dict[str, Record]:
    """What there is of the experiment, by its inputs; Multi30k's with those of fewer updates under "shorter"."""
    paths = {name: FOLDER / f"{name}.json" for name in TITLES}
    records = {name: _read(path) for name, path in paths.items() if path.is_file()}
    if "multi30k" in records:
        shorter = [_read(path) for path in FOLDER.glob("multi30k-*epochs.json")]
        records["multi30k"]["shorter"] = sorted(shorter, key=_num_updates)
    return records


def _read(path: Path) -> Record:
    found: Record = json.loads(path.read_text(encoding="utf-8"))
    return found


def _num_updates(record: Record) -> int:
    return int(record["arms"][0]["updates"])


def half_quality_length(record: Record, arm: str) -> float | None:
    """Mean source tokens at which half of the first point's BLEU is left, on straight lines between the points; None if
    that much is left at the last point."""
    first = mean(record["points"][0], arm)
    return _length_at_half([(point["mean_length"], mean(point, arm) / first) for point in record["points"]])


def half_retention_length(record: Record, arm: str) -> float | None:
    """The same for half of `additive`'s BLEU at the point; 0 if less than that is left at the first point."""
    return _length_at_half(
        [(point["mean_length"], mean(point, arm) / mean(point, "additive")) for point in record["points"]]
    )


def _length_at_half(points: Sequence[tuple[float, float]]) -> float | None:
    """Of (length, share)."""
    if points[0][1] < 0.5:
        return 0.0
    for (length, share), (next_length, next_share) in pairwise(points):
        if next_share < 0.5:
            return length + (share - 0.5) / (share - next_share) * (next_length - length)
    return None


def mean(point: Record, arm: str, measure: str = "bleu") -> float:
    """The arm's mean score over its seeds."""
    return float(point["scores"][arm][measure]["mean"])


def render_page(records: dict[str, Record]) -> str:
    """docs/bottleneck/README.md."""
    parts = [
        "# The bottleneck, measured",
        "Written by `scripts/bottleneck` from the records beside this page. Arms have the same data, vocabulary and "
        "number of updates, and (but for `none-wide`) the same number of parameters within 3 %; `additive`, the first "
        "one, is what the others are compared with. BLEU is sacreBLEU's, of all sentences of a point together; "
        "intervals are 95 % bootstrap intervals over sentences of the mean over seeds.",
    ]
    for name, record in records.items():
        parts += _section(name, record)
    parts += _findings(records)
    return "\n\n".join(parts) + "\n"


def render_block(records: dict[str, Record]) -> str:
    """The block of the project's README: a plot, a table, and where the rest is."""
    name = next((one for one in ("joined", "multi30k") if one in records), None)
    if name is None:
        return ""
    record = records[name]
    plot = f"![{TITLES[name]}](docs/bottleneck/{name}.png)"
    return "\n\n".join(
        [f"{TITLES[name]}: BLEU, mean of {_seeds(record)}.", plot, _score_table(record, brief=True), _where()]
    )


def replace_block(text: str, block: str) -> str:
    """A page with its block between the marks renewed; unchanged if it has no marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{BEGIN}\n{block}\n{END}{after}" if begin and end else text


def _where() -> str:
    return (
        "All arms, falsifiers, p-values, alignment error rates and the natural half of the experiment: "
        "[docs/bottleneck](docs/bottleneck/README.md)."
    )


def _section(name: str, record: Record) -> list[str]:
    environment = record["environment"]
    packages = environment["packages"]
    parts = [
        f"## {TITLES[name]}",
        f"{INTRODUCTIONS[name]} {_seeds(record).capitalize()}.",
        f"![BLEU]({name}.png)",
        f"**BLEU, mean over seeds** ({record['signatures']['bleu']}; length in tokens of {record['length']})",
        _score_table(record),
        "**Retention: the arm's mean / `additive`'s, with its 95 % band** (p of the difference by paired bootstrap)",
        _retention_table(record),
        f"**chrF** ({record['signatures']['chrf']})",
        _score_table(record, measure="chrf"),
    ]
    if any("gold" in one for one in record["attention"].values()):
        parts += ["**Attention against gold links**, reading the references", _gold_table(record)]
    parts += ["**Words that hypotheses lack and have in excess**, and what attention leaves out", _word_table(record)]
    parts += ["**The arms**", _arm_table(record)]
    if "tuning" in record:
        tried = [f"`{one['arm']}` {one['validation']:.1f} at {one['dropout']:g}" for one in record["tuning"]]
        parts.append(f"Dropout tried, with the validation BLEU of the first seed: {', '.join(tried)}.")
    if record.get("shorter"):
        parts += ["**Retention of `none` with fewer updates**, the cosine schedule as long as these", _budgets(record)]
    git = environment.get("git") or {}
    commits = sorted({commit for arm in record["arms"] for commit in arm["commits"]})
    parts.append(
        f"Trained at commit {', '.join(commits)}, one thread a run; scored at {git.get('commit', '?')[:12]}, "
        f"{environment['device_name']}, torch {packages['torch']}, sacreBLEU {packages['sacrebleu']}, "
        f"{environment['written_at']}."
    )
    return parts


def _seeds(record: Record) -> str:
    counts: dict[int, list[str]] = {}
    for arm in record["arms"]:
        counts.setdefault(len(arm["seeds"]), []).append(arm["name"])
    most = max(counts, key=lambda count: len(counts[count]))
    text = f"{most} seed{'s' * (most > 1)} an arm"
    others = [f"{count} of {', '.join(names)}" for count, names in sorted(counts.items()) if count != most]
    return text + (f" ({'; '.join(others)})" if others else "")


def _names(record: Record) -> list[str]:
    return [arm["name"] for arm in record["arms"]]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'|'.join(['---', *['---:'] * (len(header) - 1)])}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _header(record: Record) -> list[str]:
    return ["arm", *(f"{point['label']} (n {point['num_pairs']})" for point in record["points"])]


def _rows(record: Record, names: Sequence[str], cell: Callable[[Record], str]) -> list[list[str]]:
    return [[f"`{name}`", *(cell(point["scores"][name]) for point in record["points"])] for name in names]


def _score_table(record: Record, *, measure: str = "bleu", brief: bool = False) -> str:
    names = _names(record)
    if brief:
        names = [name for name in names if name in ("additive", "none") or name.startswith("slots")]

    def cell(scores: Record) -> str:
        found = scores[measure]
        if brief:
            return f"{found['mean']:.1f}"
        spread = f" ±{(max(found['by_seed']) - min(found['by_seed'])) / 2:.1f}" if len(found["by_seed"]) > 1 else ""
        return f"{found['mean']:.1f}{spread} [{found['low']:.1f}, {found['high']:.1f}]"

    return _table(_header(record), _rows(record, names, cell))


def _retention_table(record: Record) -> str:
    def cell(scores: Record) -> str:
        found = scores["bleu"]
        if "retention" not in found:
            return ""
        kept = found["retention"]
        return f"{kept['value']:.2f} [{kept['low']:.2f}, {kept['high']:.2f}], p {_p(found['p'])}"

    return _table(_header(record), _rows(record, _names(record)[1:], cell))


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _gold_table(record: Record) -> str:
    rows = []
    for name, values in record["attention"].items():
        for gold in values.get("gold", []):
            shift = f"{gold['shift']:+d}" if gold["shift"] else "none"
            shares = (gold["error_rate"], gold["precision"], gold["recall"], gold["mass"])
            rows.append([f"`{name}`", shift, *("" if share is None else f"{100 * share:.1f} %" for share in shares)])
    return _table(["arm", "shift", "alignment error rate", "precision", "recall", "mass on links"], rows)


def _word_table(record: Record) -> str:
    keys = ("missing", "excess", "dropped", "repeated")
    rows = []
    for name, values in record["attention"].items():
        shares = ["" if values[key] is None else f"{100 * values[key]:.1f} %" for key in keys]
        entropy = "" if values["entropy"] is None else f"{values['entropy']:.2f}"
        rows.append([f"`{name}`", *shares, entropy])
    header = ["arm", "missing", "in excess", "source words dropped", "repeated", "entropy (nats)"]
    return _table(header, rows)


def _arm_table(record: Record) -> str:
    rows = []
    for arm in record["arms"]:
        seeds, validation = ", ".join(map(str, arm["seeds"])), ", ".join(f"{one:.1f}" for one in arm["validation"])
        dropout = "" if arm["dropout"] is None else f"{arm['dropout']:g}"
        sizes = [f"{arm['parameters']:,}", seeds, dropout, str(arm["updates"]), validation]
        rows.append([f"`{arm['name']}`", arm["about"], *sizes])
    header = ["arm", "the decoder sees", "parameters", "seeds", "dropout", "updates", "validation BLEU of each seed"]
    return _table(header, rows)


def _budgets(record: Record) -> str:
    """How retention changes with the length of the training, at all budgets that were tried."""
    rows = []
    for one in (*record["shorter"], record):
        kept = _retentions(one)
        validation = [f"{arm['validation'][0]:.1f}" for arm in one["arms"]]
        rows.append(
            [str(_num_updates(one)), *validation, *(f"{value:.2f}" for value in kept), f"{kept[0] - kept[-1]:.2f}"]
        )
    arms = [f"validation BLEU of `{name}`" for name in _names(record)]
    labels = [str(point["label"]) for point in record["points"]]
    return _table(["updates", *arms, *labels, "first less last"], rows)


def _retentions(record: Record) -> list[float]:
    return [point["scores"]["none"]["bleu"]["retention"]["value"] for point in record["points"]]


def _findings(records: dict[str, Record]) -> list[str]:
    """What the protocol asked beforehand, and what came out."""
    found: list[str] = []
    if "joined" in records:
        found += _joined_findings(records["joined"])
        found += _half_quality("joined", records["joined"])
    if "multi30k" in records:
        found.append(_natural_finding(records["multi30k"]))
    return ["## What was asked, and what came out", "\n".join(f"- {line}" for line in found)] if found else []


def _joined_findings(record: Record) -> list[str]:
    first, last = record["points"][0], record["points"][-1]
    lines = []
    for arm, asked, holds in (
        ("additive", "at least 95", lambda k: k >= 95),
        ("none", "at most 35", lambda k: k <= 35),
    ):
        kept = 100 * mean(last, arm) / mean(first, arm)
        verdict = "it does" if holds(kept) else "it does not"
        lines.append(
            f"`{arm}` keeps {asked} % of its BLEU at six joined captions when trained on joined ones: {verdict}, "
            f"{kept:.0f} % ({mean(first, arm):.1f} to {mean(last, arm):.1f})."
        )
    if "none-reversed" in _names(record):
        kept, plain = (100 * mean(last, arm) / mean(first, arm) for arm in ("none-reversed", "none"))
        lines.append(
            "`none-reversed`: Sutskever et al. 2014 report no loss on long sentences for an encoder that reads the "
            f"source from its end; here it keeps {kept:.0f} % at six joined captions, the bidirectional `none` "
            f"{plain:.0f} %."
        )
    if "none-wide" in _names(record):
        wide, plain = ([mean(point, arm) for point in (first, last)] for arm in ("none-wide", "none"))
        parameters = next(arm["parameters"] for arm in record["arms"] if arm["name"] == "none-wide")
        kept = [f"{100 * end / start:.0f} % ({start:.1f} to {end:.1f})" for start, end in (wide, plain)]
        lines.append(
            f"`none-wide`: a summary of 2,048 numbers and {parameters:,} parameters keep {kept[0]} at six joined "
            f"captions, `none` keeps {kept[1]}."
        )
    return lines


def _half_quality(name: str, record: Record) -> list[str]:
    arms = ["none", *(arm for arm in _names(record) if arm.startswith("slots")), "additive"]
    shortest, longest = (record["points"][i]["mean_length"] for i in (0, -1))
    lines = []
    for what, length_at in (
        ("half of the first point's BLEU", half_quality_length),
        ("half of `additive`'s BLEU at that length", half_retention_length),
    ):
        lengths = {arm: length_at(record, arm) for arm in arms if arm in _names(record)}
        words = {None: f"more than {longest:.0f}", 0.0: f"less than {shortest:.0f}"}
        text = ", ".join(f"`{arm}` {words.get(at) or f'{at:.1f}'}" for arm, at in lengths.items())
        slots = [float("inf") if at is None else at for arm, at in lengths.items() if arm.startswith("slots")]
        rises = all(a <= b for a, b in pairwise(slots))
        verdict = "no K is below the one before" if rises else "it does not rise with every K"
        lines.append(f"{TITLES[name]}, source tokens at which {what} is left: {text}; {verdict}.")
    return lines


def _natural_finding(record: Record) -> str:
    values = _retentions(record)
    falls = all(a > b for a, b in pairwise(values))
    text = ", ".join(f"{value:.2f}" for value in values)
    distance = values[0] - values[-1]
    return (
        f"Multi30k, retention of `none` falls from bin to bin, the last at least 0.25 under the first: {text}; it "
        f"{'falls' if falls else 'does not fall'} from bin to bin, the last is {distance:.2f} under the first "
        f"({'as' if distance >= 0.25 else 'not as'} asked)."
    )
