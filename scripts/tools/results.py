"""Numbers from runs into the documents.

scripts/results record NAME REPORT.json [validation|published elsewhere]
                                           keep the scores of an evaluation as docs/records/NAME.json (and its plot),
                                           and say what its settings were chosen on
scripts/results add NAME REPORT.json       add the run of an evaluation to docs/records/NAME.json: another seed
scripts/results render                     write docs/{results,quality,attention,mechanisms,typos}.md, the pages of
                                           docs/speed and docs/bottleneck, README's blocks, the configs' headers
scripts/results check                      exit with 1 if those do not say what the records say, or if a record with
                                           scores of Multi30k's test sets does not say what settings were chosen on
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev

from scripts.benchmarks import pages
from scripts.bottleneck_experiment import pages as bottleneck_pages
from scripts.laboratory.harness.pages import PAIRED_BOOTSTRAP, interval_cell, p_value, replace_block, table
from scripts.laboratory.harness.records import RECORDS, ROOT, SPEED, Record, exit_code, load_records
from scripts.mechanism_bench import pages as mechanism_pages
from scripts.tools import distil, first_look, levers, levers_page, search_quality, typos_page
from scripts.tools.evaluation_records import PLOTS, add_seed, keep_scores
from scripts.tools.other_records import other_records
from seq2seq_attn.files import read_json, write_text
from seq2seq_attn.metrics.by_length import MIN_PAIRS

BEGIN = "<!-- results: written by scripts/results, from docs/records -->"
END = "<!-- end of results -->"
MEASURES = {
    "bleu": "BLEU",
    "bleu_lowercase": "BLEU, lower-cased",
    "bleu_tutorial": "BLEU, tutorial",
    "chrf": "chrF",
}
DIRECTION = ["de", "en"]
"""of the rows of README that do not name theirs"""
TRAINED_ON = {"A": "29,000 pairs", "B": "29,000 pairs and captions of task 2"}
"""by track"""
PAGE_INTRODUCTION = f"""\
Written by `scripts/results` from the records in `docs/records`: first evaluations, then measurements of single
features. Brackets are 95 % bootstrap intervals over sentences. *Thin*: fewer than {MIN_PAIRS} pairs, too few to trust
the score. *Retention*: BLEU divided by that of the first run. *BLEU, tutorial*: BLEU on lower-cased spaCy tokens, the
convention of the PyTorch tutorial (see README). *p*: against the first run, by {PAIRED_BOOTSTRAP}."""
Records = dict[str, Record]


def evaluations() -> Records:
    """Evaluation records by name; other records (speed, resume) have their own pages."""
    return {record["name"]: record for record in load_records(RECORDS).values() if "sets" in record}


def summary_rows(records: Records) -> Iterator[tuple[Record, Record, Record, Record]]:
    """A row per configuration of a record, with its first seed: its headline scores on the first test set."""
    for value in records.values():
        test, configs = value["sets"][0], [run["config"] for run in value["runs"]]
        for config in dict.fromkeys(configs):
            position = configs.index(config)
            run = value["runs"][position]
            scores = {m["name"]: m["runs"][position] for m in test["measures"]}
            yield value, test, run, scores


def render_readme(records: Records) -> str:
    """The block of README: one table, then where the rest is."""
    rows = []
    for value, test, run, scores in summary_rows(records):
        languages = value.get("languages", DIRECTION)
        cells = [
            f"`{run['config']}`" + (f", {' to '.join(languages)}" if languages != DIRECTION else ""),
            f"`{run['attention']}`",
            f"{test['name']} ({test['num_pairs']})",
            "" if run["lowercases"] else interval(scores["bleu"]),
            f"{scores['bleu_tutorial']['score']:.1f}" if "bleu_tutorial" in scores else "",
            str(run["search"]["beam_size"]),
            run["training"]["precision"],
            str(run["num_threads"] or ""),
            f"{run['training']['minutes']:.0f}" + ("" if run["training"]["is_finished"] else " *"),
            f"{run['training']['num_parameters']:,}",
        ]
        rows.append(cells)
    header = ["configuration", "attention", "test set (n)", "BLEU, cased", "BLEU, tutorial", "beam", "precision"]
    lines = [
        *table([*header, "threads", "minutes", "parameters"], rows, align="---"),
        "",
        "Each row is a single run. To compare configurations, use means over seeds: those of Multi30k are below,",
        "those of captions in [docs/attention.md](docs/attention.md). Brackets are 95 % bootstrap intervals over",
        "sentences. Models that write lower case have no cased BLEU here. The tutorial is",
        "[bentrevett/pytorch-seq2seq](https://github.com/bentrevett/pytorch-seq2seq), notebook 3; it reports BLEU on",
        "lower-cased spaCy tokens. Scores whose signature in [docs/results.md](docs/results.md) lacks `<unk>:whole`",
        "were computed with `<unk>` split into three tokens, so those of models that write `<unk>`, such as",
        "`tutorial`, are too low. Minutes are the wall time of training, including validations. The machine also did",
        "other work, and bf16 is faster: compare minutes of one precision and number of threads only. They include",
        "earlier stages, but not the runs that made the texts of `multi30k-distilled` and `multi30k-extra`.",
        "A star marks a run that stopped before its last epoch.",
        "`multi30k-extra` also trains on captions of Multi30k's task 2: do not compare it with the others.",
        "Signatures, seeds, commits, hardware, every test set and BLEU by sentence length:",
        "[docs/results.md](docs/results.md).",
        *seeds_table(),
    ]
    for name, value in records.items():
        if len(value["runs"]) > 1 and (PLOTS / f"{name}-bleu.png").exists():
            test = value["sets"][-1]
            about = f"{test['name']}, n = {test['num_pairs']}; p is against the first run, by {PAIRED_BOOTSTRAP}"
            lines += ["", f"BLEU by source length of the runs of `scripts/{name}`; {about}:", ""]
            lines += [*by_length(value, test, [run["name"] for run in value["runs"]])]
            lines += ["", f"![BLEU by source length, {name}](docs/plots/{name}-bleu.png)"]
            break
    return "\n".join(lines)


def of_several_seeds() -> Records:
    """The records of configurations that were trained with several seeds."""
    records = load_records(levers.FOLDER)
    shown = [
        one
        for one in records.values()
        if sum("test" in run for run in one["runs"]) > 1 and levers_page.is_packaged(one)
    ]
    all_found = [*((one["config"], one) for one in shown), *((one["student"], one) for one in distil.records())]
    return dict(sorted(all_found, key=lambda one: levers_page.track(one[1])))


def seeds_table() -> list[str]:
    """The configurations that were trained with several seeds, on the test sets."""
    of_config = of_several_seeds()
    names = levers_page.test_names(of_config[levers_page.BASELINE])
    rows = [
        [f"`{config}`", TRAINED_ON[levers_page.track(one)], *levers_page.test_cells(one, names)]
        for config, one in of_config.items()
    ]
    return [
        "",
        "Means ± standard deviations over several seeds (BLEU, cased; [docs/quality.md](docs/quality.md)):",
        "",
        *table(["configuration", "trained on", "seeds", *names], rows, align="---"),
    ]


def render_page(records: Records) -> str:
    """docs/results.md: all scores of all records."""
    lines = ["# Results", "", PAGE_INTRODUCTION]
    for name, value in records.items():
        lines += ["", f"## {name}", ""]
        for run in value["runs"]:
            training = run["training"]
            lines.append(
                f"- `{run['name']}`: config `{run['config']}`, attention `{run['attention']}`, seed {run['seed']}, "
                f"{training['num_parameters']:,} parameters; {training['minutes']:.1f} minutes, "
                f"{training['update']} updates ({training['epoch']} epochs{unfinished(training)}) "
                f"on {run['hardware']}, {threads(run)}, {training['precision']}; "
                f"torch {run['torch']}, commit {(run['commit'] or 'unknown')[:12]}"
                f"{' with changes' if run['is_dirty'] else ''}, {run['date']}; beam {run['search']['beam_size']}, "
                f"length penalty {run['search']['length_penalty']:g}"
            )
        for test in value["sets"]:
            names = [run["name"] for run in value["runs"]]
            lines += ["", f"### {name}: {test['name']}, n = {test['num_pairs']}", ""]
            rows = [
                [
                    MEASURES.get(measure["name"], measure["name"]),
                    *map(interval, measure["runs"]),
                    f"`{measure['signature']}`",
                ]
                for measure in test["measures"]
            ]
            lines += [*table(["measure", *names, "signature"], rows, align="---"), "", *by_length(value, test, names)]
        for kind in ("bleu", "retention"):
            if (PLOTS / f"{name}-{kind}.png").exists():
                lines += ["", f"![{kind} by length](plots/{name}-{kind}.png)"]
    return "\n".join([*lines, *other_records()]) + "\n"


def by_length(value: Record, test: Record, names: Sequence[str]) -> list[str]:
    """The first measure of each bucket; p of the paired bootstrap against the first run."""
    rows = []
    for bucket in test["buckets"]:
        runs = bucket["measures"][0]["runs"]
        p_values = [p_value(run["paired_bootstrap"]["p_value"]) for run in runs if "paired_bootstrap" in run]
        thin = " (thin)" if bucket["is_thin"] else ""
        rows.append([f"{bucket['label']}{thin}", str(bucket["num_pairs"]), *map(interval, runs), *p_values])
    length = value["length"]
    compared = [f"p ({name})" for name, run in zip(names, runs, strict=True) if "paired_bootstrap" in run]
    header = [f"{length['of']} {length.get('in', 'tokens')}", "n", *names, *compared]
    return table(header, rows, align="---")


def interval(score: Record) -> str:
    """A score with its interval."""
    return interval_cell(score, key="score")


def threads(run: Record) -> str:
    """`1 thread`."""
    return f"{run['num_threads']} thread{'s' * (run['num_threads'] != 1)}"


def config_header(name: str, measure: str, run: Record, test: Record, score: Record, signature: str, mean: str) -> str:
    """The score of a configuration, as the comment in its file; `mean` is its line about several seeds."""
    training, search = run["training"], run["search"]
    return (
        f"#\n# Result: {measure} {interval(score)} on {test['name']} (n = {test['num_pairs']}), seed {run['seed']}, "
        f"beam {search['beam_size']}, length penalty {search['length_penalty']:g};\n{mean}"
        f"# {training['minutes']:.0f} minutes{unfinished(training)} on {threads(run)} of "
        f"{run['hardware']}, "
        f"{training['precision']}; {signature}\n"
        f"# (docs/records/{name}.json)\n"
    )


def config_documents(records: Records) -> Iterator[tuple[Path, str]]:
    """Path and wanted text of each packaged configuration that has a record, which its header shows."""
    headers: dict[str, str] = {}
    of_config = of_several_seeds()
    for value, test, run, scores in summary_rows(records):
        measures = {measure["name"]: measure["signature"] for measure in test["measures"]}
        name = "bleu_tutorial" if run["lowercases"] else "bleu"
        mean = ""
        if run["config"] in of_config:
            seeds, score = levers_page.test_cells(of_config[run["config"]], [test["name"]])
            mean = f"# mean of seeds {seeds}: {score};\n"
        elif len(of_seeds := [one for one in value["runs"] if one["config"] == run["config"]]) > 1:
            of_runs = next(measure["runs"] for measure in test["measures"] if measure["name"] == name)
            values = [of_runs[value["runs"].index(one)]["score"] for one in of_seeds]
            seeds = ", ".join(str(one["seed"]) for one in of_seeds)
            mean = f"# mean of seeds {seeds}: {fmean(values):.2f} ± {stdev(values):.2f};\n"
        header = config_header(value["name"], MEASURES[name], run, test, scores[name], measures[name], mean)
        headers.setdefault(run["config"], header)
    for config, header in headers.items():
        path = ROOT / "configs" / f"{config}.yaml"
        if path.exists():
            text = re.sub(r"#\n# Result: .*\n(# .*\n)*", "", path.read_text(encoding="utf-8"))
            yield path, re.sub(r"^(?=name:|extends:)", header, text, count=1, flags=re.MULTILINE)


def unfinished(training: Record) -> str:
    """A remark on a training run that was stopped before its end."""
    return "" if training["is_finished"] else f", stopped; the best model is of update {training['best_update']}"


def documents() -> Iterator[tuple[Path, str]]:
    """Path and wanted text of each generated document."""
    records, speed, bottleneck = evaluations(), load_records(SPEED), bottleneck_pages.load_records()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = replace_block(readme, BEGIN, END, f"\n{render_readme(records)}\n")
    readme = replace_block(readme, pages.BEGIN, pages.END, f"\n{pages.render_block(speed)}\n")
    block = bottleneck_pages.render_block(bottleneck)
    yield ROOT / "README.md", replace_block(readme, bottleneck_pages.BEGIN, bottleneck_pages.END, block)
    yield SPEED / "README.md", pages.render_page(speed)
    yield bottleneck_pages.FOLDER / "README.md", bottleneck_pages.render_page(bottleneck)
    if typos_page.RECORD.exists():
        yield typos_page.PAGE, "\n".join(typos_page.page_lines(read_json(typos_page.RECORD))) + "\n"
    yield ROOT / "docs" / "results.md", render_page(records)
    yield from config_documents(records)
    yield from mechanism_pages.documents()
    yield ROOT / "docs" / "quality.md", render_quality()


def render_quality() -> str:
    """docs/quality.md: levers of training, then the options of the search."""
    lines = [
        "# Quality",
        "",
        "Written by `scripts/results` from the records of the scripts that each section names.",
        "",
    ]
    lines += levers_page.render(load_records(levers.FOLDER))
    if first_look.RECORD.exists():
        lines += first_look.render(read_json(first_look.RECORD))
    for found in distil.records():
        lines += distil.render(found)
    return "\n".join([*lines, search_quality.render(read_json(search_quality.RECORD))])


def main(arguments: Sequence[str]) -> int:
    """Run one of the forms; the exit code."""
    match arguments:
        case ["record", name, report, *chosen_on]:
            keep_scores(name, Path(report), " ".join(chosen_on))
        case ["add", name, report]:
            add_seed(name, Path(report))
        case ["render"]:
            for document, text in documents():
                write_text(document, text)
        case ["check"]:
            stale = [path for path, text in documents() if not path.exists() or path.read_text("utf-8") != text]
            problems = [
                f"{document.relative_to(ROOT)}: not what the records say; run scripts/results render"
                for document in stale
            ]
            problems += levers.refusals(load_records(RECORDS) | load_records(levers.FOLDER))
            print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
            return 1 if problems else 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(sys.argv[1:])))
