#!/usr/bin/env python3
"""Numbers from runs into the documents.

    scripts/results record NAME REPORT.json    keep what an evaluation found as docs/records/NAME.json (and its plot)
    scripts/results render                     write docs/results.md, docs/speed, README's blocks, the configs' headers
    scripts/results check                      exit with 1 if those do not say what the records say

Needs the standard library alone.
"""

import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

import speed_pages  # noqa: E402

RECORDS = ROOT / "docs" / "records"
PLOTS = ROOT / "docs" / "plots"
BEGIN = "<!-- results: written by scripts/results, from docs/records -->"
END = "<!-- end of results -->"
MEASURES = {
    "bleu": "BLEU",
    "bleu_lowercase": "BLEU, lower-cased",
    "bleu_tutorial": "BLEU, tutorial's",
    "chrf": "chrF",
}


def record(name, report_path):
    """Keep of a report what a reader needs: scores with signatures, sizes, settings, where and when."""
    report = json.loads(report_path.read_text(encoding="utf-8"))
    runs = []
    for run in report["runs"]:
        environment = run["training_environment"] or {}
        folder = ROOT / run["path"]
        runs.append(
            {
                "name": run["name"],
                "config": run["config"],
                "attention": run["attention"],
                "seed": run["seed"],
                "lowercases": run["lowercases"],
                "search": run["search"],
                "best": run["model"],
                "training": read_training(folder) | read_log(folder / "train.log"),
                "hardware": environment.get("device_name"),
                "num_threads": environment.get("num_threads"),
                "commit": (environment.get("git") or {}).get("commit"),
                "is_dirty": (environment.get("git") or {}).get("is_dirty"),
                "torch": environment.get("packages", {}).get("torch"),
                "python": environment.get("python"),
                "date": environment.get("written_at"),
            }
        )
    value = {"name": name, "runs": runs, "length": report["length"], "sets": report["sets"]}
    for run in runs:
        run["best"].pop("format", None), run["best"].pop("format_version", None)
    RECORDS.mkdir(parents=True, exist_ok=True)
    (RECORDS / f"{name}.json").write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    stem = report_path.name.removesuffix(".json")
    suffix = stem.removeprefix("report") if stem.startswith("report") else f".{stem}"
    for kind in ("bleu", "retention"):
        plot = report_path.with_name(f"{kind}-by-length{suffix}.png")
        if plot.exists():
            PLOTS.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(plot, PLOTS / f"{name}-{kind}.png")


TRAINING_KEYS = ("minutes", "update", "epoch", "best_score", "best_update")


def read_training(folder):
    """How long a training was; of one that has not come to its end, how far it came."""
    if (folder / "finished.json").exists():
        finished = json.loads((folder / "finished.json").read_text(encoding="utf-8"))
        return {key: finished.get(key) for key in TRAINING_KEYS} | {"is_finished": True}
    events = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    last, best = events[-1], [event for event in events if event.get("is_best")][-1]
    values = (last["elapsed_s"] / 60, last["update"], last["epoch"], best["bleu"], best["update"])
    return dict(zip(TRAINING_KEYS, values, strict=True)) | {"is_finished": False}


def read_log(path):
    """What only the log of a training says."""
    text = path.read_text(encoding="utf-8")
    parameters = re.search(r"(\d+) parameters, ", text)
    precision = re.search(r"torch \S+ on .*, (\w+)$", text, re.MULTILINE)
    return {
        "num_parameters": int(parameters[1]) if parameters else None,
        "precision": precision[1] if precision else None,
    }


def load_records():
    """Evaluation records by name; other records (speed, resume) have their own pages."""
    values = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RECORDS.glob("*.json"))]
    return {value["name"]: value for value in values if "sets" in value}


def summary_rows(records):
    """A row a run: its headline scores on the first test set of its record."""
    for value in records.values():
        test = value["sets"][0]
        for position, run in enumerate(value["runs"]):
            scores = {m["name"]: m["runs"][position] for m in test["measures"]}
            yield value, test, run, scores


def render_readme(records):
    """The block of README: one table, then where the rest is."""
    lines = [
        "| configuration | attention | test set (n) | BLEU, cased | BLEU, tutorial's | beam | minutes | parameters |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for _, test, run, scores in summary_rows(records):
        cells = [
            f"`{run['config']}`",
            f"`{run['attention']}`",
            f"{test['name']} ({test['num_pairs']})",
            interval(scores["bleu"]),
            f"{scores['bleu_tutorial']['score']:.1f}" if "bleu_tutorial" in scores else "",
            str(run["search"]["beam_size"]),
            number(run["training"]["minutes"], "{:.0f}") + ("" if run["training"].get("is_finished", True) else " *"),
            number(run["training"]["num_parameters"], "{:,}"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "One seed each; brackets are 95 % bootstrap intervals over sentences. The tutorial's convention is BLEU on",
        "lower-cased spaCy tokens. Minutes are wall time of training with its validations, on a machine that did other",
        "work too; * was stopped before its last epoch. Signatures, seeds, commits, hardware, every test set and",
        "BLEU by sentence length: [docs/results.md](docs/results.md).",
    ]
    for name, value in records.items():
        if len(value["runs"]) > 1 and (PLOTS / f"{name}-bleu.png").exists():
            test = value["sets"][-1]
            lines += ["", f"BLEU by length in the record `{name}` ({test['name']}, n = {test['num_pairs']}):", ""]
            lines += [*by_length(value, test, [run["name"] for run in value["runs"]])]
            lines += ["", f"![BLEU by source length, {name}](docs/plots/{name}-bleu.png)"]
            break
    return "\n".join(lines)


def render_page(records):
    """docs/results.md: all scores of all records."""
    lines = ["# Results", "", "Written by `scripts/results` from the records in `docs/records`."]
    for name, value in records.items():
        lines += ["", f"## {name}", ""]
        for run in value["runs"]:
            training = run["training"]
            lines.append(
                f"- `{run['name']}`: config `{run['config']}`, attention `{run['attention']}`, seed {run['seed']}, "
                f"{number(training['num_parameters'], '{:,}')} parameters; "
                f"{number(training['minutes'], '{:.1f}')} minutes, "
                f"{training['update']} updates ({training['epoch']} epochs{unfinished(training)}) "
                f"on {run['hardware']}, {run['num_threads']} threads, {training['precision']}; "
                f"torch {run['torch']}, commit {(run['commit'] or 'unknown')[:12]}"
                f"{' with changes' if run['is_dirty'] else ''}, {run['date']}; beam {run['search']['beam_size']}, "
                f"length penalty {run['search']['length_penalty']:g}"
            )
        for test in value["sets"]:
            names = [run["name"] for run in value["runs"]]
            lines += ["", f"### {name}: {test['name']}, n = {test['num_pairs']}", ""]
            lines += [f"| | {' | '.join(names)} | signature |", f"|---|{'---|' * len(names)}---|"]
            for measure in test["measures"]:
                cells = " | ".join(interval(run) for run in measure["runs"])
                label = MEASURES.get(measure["name"], measure["name"])
                lines.append(f"| {label} | {cells} | `{measure['signature']}` |")
            lines += ["", *by_length(value, test, names)]
        for kind in ("bleu", "retention"):
            if (PLOTS / f"{name}-{kind}.png").exists():
                lines += ["", f"![{kind} by length](plots/{name}-{kind}.png)"]
    return "\n".join([*lines, *other_records()]) + "\n"


def other_records():
    """What the records say that are not evaluations."""
    if (path := RECORDS / "cli.json").exists():
        value = json.loads(path.read_text(encoding="utf-8"))
        environment = value["environment"]
        yield from ["", "## The command line", "", f"`scripts/bench_cli` on {environment['device_name']}.", ""]
        imports = "imports" if value["help"]["imports_torch"] else "does not import"
        yield f"- `seq2seq --help`: {value['help']['seconds']:.2f} s; it {imports} torch"
        yield f"- one sentence from a cold start: {value['cold_start']['seconds']:.1f} s"
        for case in value["hostile_lines"]:
            yield (
                f"- {case['lines_in']:,} hostile lines: {case['lines_out']:,} lines out, exit {case['exit_code']}, "
                f"{case['seconds']:.0f} s, at most {case['peak_mib']:.0f} MiB"
            )
        if scoring := value.get("scoring"):
            yield (
                f"- {scoring['lines']:,} saved translations of two systems scored without a model (every measure, six "
                f"lengths, 1,000 resamples, plots): {scoring['seconds']:.1f} s"
            )
    if (path := RECORDS / "kill-resume.json").exists():
        value = json.loads(path.read_text(encoding="utf-8"))
        found = "identical" if value["identical"] else "DIFFERENT"
        yield from ["", "## Exact resume", ""]
        yield (
            f"`scripts/kill_resume`: a training of {value['updates']} updates killed {len(value['kills'])} times "
            f"with SIGKILL and resumed each time; its final weights and an uninterrupted training's are {found}, bit "
            "for bit."
        )


def by_length(value, test, names):
    """BLEU of each bucket; p of the paired bootstrap against the first run."""
    p_columns = [f" p ({name})" for name in names[1:]]
    yield f"| {value['length']['of']} tokens | n | {' | '.join(names)} |{''.join(f'{p} |' for p in p_columns)}"
    yield f"|---|---|{'---|' * (len(names) + len(p_columns))}"
    for bucket in test["buckets"]:
        runs = next(m["runs"] for m in bucket["measures"] if m["name"] == "bleu")
        cells = [interval(run) for run in runs]
        cells += [f"{run['paired_bootstrap']['p_value']:.4f}" for run in runs[1:]]
        thin = " (thin)" if bucket["is_thin"] else ""
        yield f"| {bucket['label']}{thin} | {bucket['num_pairs']} | {' | '.join(cells)} |"


def interval(score):
    """A score with its interval."""
    return f"{score['score']:.1f} [{score['low']:.1f}, {score['high']:.1f}]"


def config_header(name, run, test, score, signature):
    """What a configuration reaches, as the comment that its file carries."""
    training, search = run["training"], run["search"]
    return (
        f"#\n# Result: BLEU {interval(score)} on {test['name']} (n = {test['num_pairs']}), seed {run['seed']}, "
        f"beam {search['beam_size']}, length penalty {search['length_penalty']:g};\n"
        f"# {number(training['minutes'], '{:.0f}')} minutes{unfinished(training)} on {run['num_threads']} thread(s) of "
        f"{run['hardware']}, "
        f"{training['precision']}; {signature}\n"
        f"# (docs/records/{name}.json)\n"
    )


def config_documents(records):
    """Path and wanted text of each packaged configuration that has a record: its header says what came out."""
    headers = {}
    for value, test, run, scores in summary_rows(records):
        measures = {measure["name"]: measure["signature"] for measure in test["measures"]}
        name = "bleu_tutorial" if run["lowercases"] else "bleu"
        header = config_header(value["name"], run, test, scores[name], measures[name])
        headers.setdefault(run["config"], header)
    for config, header in headers.items():
        path = ROOT / "configs" / f"{config}.yaml"
        if path.exists():
            text = re.sub(r"#\n# Result: .*\n(# .*\n)*", "", path.read_text(encoding="utf-8"))
            yield path, re.sub(r"^(?=name:|extends:)", header, text, count=1, flags=re.MULTILINE)


def unfinished(training):
    """A word on a training that was stopped before its end."""
    return (
        "" if training.get("is_finished", True) else f", stopped; the best model is of update {training['best_update']}"
    )


def number(value, form):
    """A formatted number, or nothing where the run did not say."""
    return "" if value is None else form.format(value)


def replace_block(text, begin, end, block):
    """A page with what lies between the two marks renewed."""
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{block}\n\n{end}{after}"


def documents():
    """Path and wanted text of each generated document."""
    records = load_records()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = replace_block(readme, BEGIN, END, render_readme(records))
    speed = speed_pages.load_records()
    yield ROOT / "README.md", replace_block(readme, speed_pages.BEGIN, speed_pages.END, speed_pages.render_block(speed))
    yield speed_pages.FOLDER / "README.md", speed_pages.render_page(speed)
    yield ROOT / "docs" / "results.md", render_page(records)
    yield from config_documents(records)


def main(arguments):
    """Run one of the three forms; the exit code."""
    match arguments:
        case ["record", name, path]:
            record(name, Path(path))
        case ["render"]:
            for path, text in documents():
                path.write_text(text, encoding="utf-8")
        case ["check"]:
            stale = [path for path, text in documents() if not path.exists() or path.read_text("utf-8") != text]
            for path in stale:
                print(
                    f"{path.relative_to(ROOT)}: not what the records say; run scripts/results render", file=sys.stderr
                )
            return 1 if stale else 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
