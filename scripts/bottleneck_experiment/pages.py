"""From the records of the bottleneck experiment to its pages and README's block. Needs the standard library only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from scripts.bottleneck_experiment.findings import BASELINE, names, render_findings, retentions
from scripts.laboratory.harness.pages import PAIRED_BOOTSTRAP, interval_cell, mean_cell, p_value, percent, table
from scripts.laboratory.harness.records import ROOT, Record
from seq2seq_attn.files import read_json
from seq2seq_attn.metrics.attention_stats import DROPPED_BELOW, REPEATED_ABOVE

FOLDER = ROOT / "docs" / "bottleneck"
BEGIN = "<!-- bottleneck: written by scripts/results, from docs/bottleneck -->"
END = "<!-- end of bottleneck -->"
TITLES = {
    "joined": "One to six captions joined, trained on one to six",
    "single": "One to six captions joined, trained on single ones",
    "multi30k": "Multi30k, all test sets pooled",
}
INTRODUCTIONS = {
    "joined": "Captions of 4 to 10 tokens, one to six concatenated, in training as in the test: no length is "
    "unfamiliar, so unfamiliar lengths cannot explain a loss from one caption to six. It comes from limited capacity, "
    "or from what is harder to learn in the same number of updates: all lengths share them, and on one caption the "
    "fixed arms stay far below what they reach when trained on single ones (next section). All arms but `fixed-wide` "
    "use `quickstart`'s learning rate and dropout, and the same number of updates, in batches of 600 tokens; none is "
    "tuned; the model kept is the best on 200 single validation captions. Seeds of `fixed-wide` differ widely: see "
    "their validation scores under *The arms*, not the mean.",
    "single": "The same test, but no joined input in training: limited capacity and unfamiliar length act together, "
    "for attention too.",
    "multi30k": "Natural sentences. Each arm has the dropout rate that validated best with its first seed; the "
    "learning rate is that of `multi30k` for both.",
}
GOLD_ROWS = {
    "error rate": (0, "error_rate"),
    "error rate, shift -1": (-1, "error_rate"),
    "error rate, shift +1": (1, "error_rate"),
    "precision": (0, "precision"),
    "recall": (0, "recall"),
    "mass on links": (0, "mass"),
}


def load_records() -> dict[str, Record]:
    """The records of the experiment, by inputs. Multi30k's record holds those of other numbers of updates as
    "others"."""
    paths = {name: FOLDER / f"{name}.json" for name in TITLES}
    records: dict[str, Record] = {name: read_json(path) for name, path in paths.items() if path.is_file()}
    if "multi30k" in records:
        others = [read_json(path) for path in FOLDER.glob("multi30k-*updates.json")]
        records["multi30k"]["others"] = sorted(others, key=num_updates)
    return records


def num_updates(record: Record) -> int:
    """How long its arms were trained."""
    return int(record["arms"][0]["updates"])


def render_page(records: dict[str, Record]) -> str:
    """docs/bottleneck/README.md."""
    parts = [
        "# The bottleneck, measured",
        "Written by `scripts/results` from the records of `scripts/bottleneck` beside this page. "
        "Arms have the same data, vocabulary and "
        "number of updates, and (but for `fixed-wide`) the same number of parameters within 3 %; all are compared "
        "with the first, `additive`. BLEU is sacreBLEU's corpus BLEU of all sentences of a column; ± is the standard "
        "deviation over seeds; intervals are 95 % bootstrap intervals, over sentences, of the mean over seeds; p is "
        f"by {PAIRED_BOOTSTRAP}. Mass on links: the share of attention that falls on linked words. A source word is "
        f"dropped if its weights, summed over the target words, are below {DROPPED_BELOW:g}, and repeated if above "
        f"{REPEATED_ABOVE:g}. An empty dropout cell: that of the configuration.",
    ]
    for name, record in records.items():
        parts += _section(name, record)
    parts += ["## Expected beforehand, and measured", render_findings(records)]
    return "\n\n".join(parts) + "\n"


def render_block(records: dict[str, Record]) -> str:
    """The block of the project's README: a plot, a table, and where the rest is."""
    name = next((one for one in ("joined", "multi30k") if one in records), None)
    if name is None:
        return ""
    record = records[name]
    plot = f"![{TITLES[name]}](docs/bottleneck/{name}.png)"
    where = (
        "All arms, controls, p-values, alignment error rates and the natural half of the experiment: "
        "[docs/bottleneck](docs/bottleneck/README.md)."
    )
    return "\n\n".join(
        [f"{TITLES[name]}: BLEU, mean of {_seeds(record)}.", plot, _score_table(record, brief=True), where]
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
        "**Retention: the arm's mean / `additive`'s, with its 95 % band**, and p of the difference",
        _retention_table(record),
        f"**chrF** ({record['signatures']['chrf']})",
        _score_table(record, measure="chrf"),
    ]
    if gold := _gold_rows(record):
        parts += [
            "**Attention against gold links**, in forced decoding of references (shift +1: weights of the next step)",
            _table(_header(record), gold),
        ]
    parts += ["**Share of reference words missing from hypotheses**", _missing_table(record)]
    if attended := _attention_rows(record):
        parts += ["**Attention in forced decoding of the hypotheses**", _table(_header(record), attended)]
    if vectors := record.get("vectors"):
        parts += _vectors(name, vectors)
    parts += ["**The arms**", _arm_table(record)]
    if "tuning" in record:
        tried = [f"`{one['arm']}` {one['validation']:.1f} at {one['dropout']:g}" for one in record["tuning"]]
        parts.append(f"Dropout tried, with the first seed's validation BLEU: {', '.join(tried)}.")
    if record.get("others"):
        parts += [
            "**Retention of `fixed` by number of updates**, each row with runs of its own",
            _budgets(record),
        ]
    git = environment.get("git") or {}
    commits = sorted({commit for arm in record["arms"] for commit in arm["commits"]})
    parts.append(
        f"Trained at commit {', '.join(commits)}, one thread per run; scored at {git.get('commit', '?')[:12]}, "
        f"{environment['device_name']}, torch {packages['torch']}, sacreBLEU {packages['sacrebleu']}, "
        f"{environment['written_at']}."
    )
    return parts


def _seeds(record: Record) -> str:
    counts: dict[int, list[str]] = {}
    for arm in record["arms"]:
        counts.setdefault(len(arm["seeds"]), []).append(arm["name"])
    most = max(counts, key=lambda count: len(counts[count]))
    text = f"{most} seed{'s' * (most > 1)} per arm"
    others = [f"{count} of {', '.join(names)}" for count, names in sorted(counts.items()) if count != most]
    return text + (f" ({'; '.join(others)})" if others else "")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(table(header, rows))


def _header(record: Record) -> list[str]:
    return ["arm", *(f"{point['label']} (n {point['num_pairs']})" for point in record["points"])]


def _rows(record: Record, arms: Sequence[str], cell: Callable[[Record], str]) -> list[list[str]]:
    return [[f"`{arm}`", *(cell(point["scores"][arm]) for point in record["points"])] for arm in arms]


def _score_table(record: Record, *, measure: str = "bleu", brief: bool = False) -> str:
    arms = names(record)
    if brief:
        arms = [arm for arm in arms if arm in (BASELINE, "fixed") or arm.startswith("slots")]

    def cell(scores: Record) -> str:
        found = scores[measure]
        if brief:
            return f"{found['mean']:.1f}"
        return f"{mean_cell(found['by_seed'])} [{found['low']:.1f}, {found['high']:.1f}]"

    return _table(_header(record), _rows(record, arms, cell))


def _retention_table(record: Record) -> str:
    def cell(scores: Record) -> str:
        found = scores["bleu"]
        if "retention" not in found:
            return ""
        kept = found["retention"]
        return f"{interval_cell(kept, digits=2)}, p {p_value(found['p'])}"

    return _table(_header(record), _rows(record, names(record)[1:], cell))


def _arm_table(record: Record) -> str:
    rows = []
    for arm in record["arms"]:
        seeds, validation = ", ".join(map(str, arm["seeds"])), ", ".join(f"{one:.1f}" for one in arm["validation"])
        dropout = "" if arm["dropout"] is None else f"{arm['dropout']:g}"
        sizes = [f"{arm['parameters']:,}", seeds, dropout, str(arm["updates"]), validation]
        rows.append([f"`{arm['name']}`", arm["about"], *sizes])
    header = ["arm", "the decoder sees", "parameters", "seeds", "dropout", "updates", "validation BLEU of each seed"]
    return _table(header, rows)


def _gold_rows(record: Record) -> list[list[str]]:
    """Of each arm with weights over words: alignment error rate and the rest, by point."""
    rows = []
    for arm in names(record):
        of_points = [point["attention"].get(arm, {}).get("gold") for point in record["points"]]
        if all(of_points):
            for title, (shift, key) in GOLD_ROWS.items():
                found = [next(row[key] for row in gold if row["shift"] == shift) for gold in of_points]
                rows.append([f"`{arm}`, {title}", *map(percent, found)])
    return rows


def _missing_table(record: Record) -> str:
    points = record["points"]
    rows = [[f"`{arm}`", *(percent(point["attention"][arm]["missing"]) for point in points)] for arm in names(record)]
    return _table(_header(record), rows)


def _attention_rows(record: Record) -> list[list[str]]:
    rows = []
    for arm in names(record):
        found = [point["attention"][arm] for point in record["points"]]
        if found[0]["entropy"] is not None:
            for title, key in (("source words dropped", "dropped"), ("source words repeated", "repeated")):
                rows.append([f"`{arm}`, {title}", *(percent(one[key]) for one in found)])
            rows.append([f"`{arm}`, entropy in nats", *(f"{one['entropy']:.2f}" for one in found)])
    return rows


def _vectors(name: str, vectors: Record) -> list[str]:
    first, second = (100 * share for share in vectors["shares"])
    return [
        f"**The sentence vectors of `{vectors['arm']}`** (seed {vectors['seed']}) along their first two principal "
        f"components, which explain {first:.0f} % and {second:.0f} % of variance; the first one's correlation with "
        f"the length is {vectors['correlation']:.2f}.",
        f"![Sentence vectors]({name}-vectors.png)",
    ]


def _budgets(record: Record) -> str:
    """Retention of `fixed` by number of updates."""
    rows = []
    for one in sorted((*record["others"], record), key=num_updates):
        kept = [point["value"] for point in retentions(one)]
        validation = [f"{fmean(arm['validation']):.1f} at {arm['dropout']:g}" for arm in one["arms"]]
        values = [f"{value:.2f}" for value in (*kept, kept[0] - kept[-1])]
        rows.append([str(num_updates(one)), str(len(one["arms"][0]["seeds"])), *validation, *values])
    arms = [f"validation BLEU of `{arm}` at its dropout" for arm in names(record)]
    labels = [str(point["label"]) for point in record["points"]]
    return _table(["updates", "seeds", *arms, *labels, "first minus last"], rows)
