"""The part of docs/results.md that shows other measurements: the command line, lexicons, sources, vectors, resume."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.laboratory.harness.pages import interval_cell, p_value, percent, provenance, table, with_settings
from scripts.laboratory.harness.records import RECORDS, Record, load_records

P_HEADER = "p (paired bootstrap)"


def other_records() -> Iterator[str]:
    """The records that are not evaluations."""
    records = load_records(RECORDS)
    if value := records.get("cli"):
        yield from ["", "## The command line", "", provenance(value, "bench_cli"), ""]
        imports = "imports" if value["help"]["imports_torch"] else "does not import"
        yield f"- `seq2seq --help`: {value['help']['seconds']:.2f} s; it {imports} torch"
        yield f"- one sentence from a cold start: {value['cold_start']['seconds']:.1f} s"
        for case in value["hostile_lines"]:
            yield (
                f"- {case['lines_in']:,} malformed or extreme lines: {case['lines_out']:,} lines out, exit "
                f"{case['exit_code']}, {case['seconds']:.0f} s, at most {case['peak_mib']:.0f} MiB"
            )
    if value := records.get("unseen-names"):
        yield from names_block(value)
    if value := records.get("lexicons"):
        yield from lexicons_block(value)
    if value := records.get("sources"):
        yield from sources_block(value)
    if value := records.get("scenes"):
        yield from scenes_block(value)
    if value := records.get("kill-resume"):
        found = "identical" if value["identical"] else "DIFFERENT"
        yield from ["", "## Exact resume", ""]
        yield (
            f"A run of {value['updates']} updates, killed {len(value['kills'])} times "
            f"with SIGKILL and resumed each time; its final weights and those of an uninterrupted run are {found}, bit "
            f"for bit. {provenance(value, 'kill_resume')}"
        )


def names_block(value: Record) -> Iterator[str]:
    """How many names that training never showed are translated right, by output."""
    yield from ["", "## Names that training never showed", ""]
    yield (
        f"{value['what'][:1].upper()}{value['what'][1:]}{with_settings(value['set'])}; "
        f"{value['test_pairs']} test pairs with one of {value['held_out_surnames']} "
        f"held-out names; {value['systems'][0]['signature']}. {provenance(value, 'unseen_names')}"
    )
    rows = []
    for row in value["systems"]:
        right = f"{row['right']} of {row['names']} ({percent(row['right'] / row['names'])})"
        rows.append([f"`{row['output']}`", f"`{row['unk']}`", str(row["seed"]), right, f"{row['bleu']:.1f}"])
    yield ""
    yield from table(["output", "`--unk`", "seed", "names right", "BLEU of these pairs"], rows, align="---")


def lexicons_block(value: Record) -> Iterator[str]:
    """BLEU of the outputs with a lexicon, on little data."""
    yield from ["", "## Lexicons with little training data", ""]
    yield (
        f"{value['what']}, the first {value['num_train']:,} training pairs; config "
        f"`{value['config']}`{with_settings(value['set'])}, {value['num_seeds']} seed(s); {value['test']}, n = "
        f"{value['num_test']}; 95 % bootstrap intervals over sentences; {value['signature']}. "
        f"{provenance(value, 'lexicons')}"
    )
    rows = [[f"`{row['output']}`", *_scores(row)] for row in value["systems"]]
    yield from ["", *table(["output", "BLEU", "gain over `softmax`", P_HEADER], rows, align="---")]


def sources_block(value: Record) -> Iterator[str]:
    """BLEU of three sources together and of each alone."""
    yield from ["", "## Several sources", ""]
    yield (
        f"{value['what']}; config `{value['config']}`{with_settings(value['set'])}, seed {value['seed']}; "
        f"{value['test']}, n = {value['num_test']}; 95 % bootstrap intervals; {value['signature']}. "
        f"{provenance(value, 'sources')}"
    )
    header = ["sources", "BLEU", f"gain over `{value['best_single']}`", P_HEADER]
    rows = [[", ".join(row["sources"]), *_scores(row)] for row in value["systems"]]
    yield from ["", *table(header, rows, align="---")]


def scenes_block(value: Record) -> Iterator[str]:
    """BLEU of captions from a vector per object, from German without its nouns, and from both."""
    names = {"vectors": "a vector per object", "de": "German without its nouns"}
    yield from ["", "## A picture as a source", ""]
    yield (
        f"{value['what']}, {value['objects']:g} objects on average in random order, and from the "
        f"German caption with its nouns blanked out; {value['num_train']:,} training pairs, n = {value['num_test']}; "
        f"config `{value['config']}`{with_settings(value['set'])}, seed {value['seed']}; 95 % bootstrap intervals; "
        f"{value['signature']}. {provenance(value, 'scenes')} "
        "Attended: the share of the reference's nouns at which attention, in forced decoding, has "
        "its largest weight on the vector of that object."
    )
    rows = []
    for row in value["systems"]:
        has_nouns = "nouns" in row
        attended = f"{percent(row['attended'] / row['nouns'])} of {row['nouns']:,} nouns" if has_nouns else ""
        rows.append([" and ".join(names[source] for source in row["sources"]), *_scores(row), attended])
    header = ["sources", "BLEU", "gain over the German", P_HEADER, "attended"]
    yield from ["", *table(header, rows, align="---")]
    yield from ["", "![Attention on the objects of a scene](plots/scenes-attention.png)"]


def _scores(row: Record) -> list[str]:
    """Three cells: BLEU, the gain and its p, both empty for the row that others are compared to."""
    if "gain" not in row:
        return [interval_cell(row["bleu"]), "", ""]
    return [interval_cell(row["bleu"]), interval_cell(row["gain"]), p_value(row["paired_bootstrap"]["p_value"])]
