"""From the records of docs/speed to its page and README's block. Needs the standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scripts.benchmarks import pages_gpu
from scripts.laboratory.harness.pages import count_of, provenance, ratio_cell, ratio_cells, table, with_settings
from scripts.laboratory.harness.records import SPEED, Record
from seq2seq_attn.files import write_json

BEGIN = "<!-- speed: written by scripts/results, from docs/speed -->"
END = "<!-- end of speed -->"
_ABOUT = (
    "Written by `scripts/results` from the records beside this page. The tutorial is "
    "[bentrevett/pytorch-seq2seq](https://github.com/bentrevett/pytorch-seq2seq), notebook 3, with its loop written "
    "anew. In a *turn*, all contestants do the same work one after another. A column `x NAME` is the median over "
    "turns of the ratio of speeds within a turn, which is not the ratio of the median speeds; brackets are its 95 % "
    "confidence interval, or the range of fewer than six turns. *Plain* is our code without "
    "`seq2seq_attn/model/fast`, *fast* is with it. *Of the GEMM peak* is the share of the speed that matrix products "
    "alone reach on the same machine. The tutorial and the peers compute in fp32. A config is that of the commit of "
    "its section: `multi30k` has had the decoder `conditional` since 2026-11-24, and the output `lexical` since "
    "2026-11-26."
)


def publish(name: str, record: Record, *, save: bool) -> None:
    """Print a measurement as the page shows it; `save`: and write its record."""
    print("\n".join(SECTIONS[name](record)))
    if save:
        write_json(SPEED / f"{name}.json", record)


def render_page(records: dict[str, Record]) -> str:
    """docs/speed/README.md."""
    lines = ["# Speed", "", _ABOUT]
    for name, section in SECTIONS.items():
        if name in records:
            lines += ["", *section(records[name])]
    if on_a_gpu := list(pages_gpu.render(records)):
        lines += ["", *on_a_gpu]
    return "\n".join(lines) + "\n"


def render_block(records: dict[str, Record]) -> str:
    """README's block: the figures that a user asks for first."""
    lines = []
    if record := records.get("time-to-bleu"):
        lines.append(
            f"- training `{record['config']}`{with_settings(record['settings'])} on "
            f"{count_of(record['threads'], 'thread')} of {_hardware(record)}: validation BLEU (cased, greedy) after "
            f"the first epochs {_course(record)}; peak memory {record['peak_mib'] / 1024:.1f} GiB"
        )
    if record := records.get("train"):
        by_name = {row["name"]: row for row in record["rows"]}
        for precision in ("bf16", "fp32"):
            if row := by_name.get(f"ours, fast, {precision}"):
                ratios = ", ".join(
                    f"{ratio:.1f} times as fast as the {name.replace(', ', ' with ')}"
                    for name, ratio in row["ratios"].items()
                )
                lines.append(
                    f"- training the tutorial's model, one core, ours in {precision}, the tutorial in fp32: {ratios}"
                )
    if record := records.get("peers"):
        for what in dict.fromkeys(row["what"] for row in record["rows"]):
            rows = [row for row in record["rows"] if row["what"] == what and row["contestant"].startswith("ours, ")]
            by_precision = {row["contestant"].removeprefix("ours, "): row for row in reversed(rows)}
            for precision in ("bf16", "fp32"):
                if row := by_precision.get(precision):
                    ratios = ", ".join(f"{ratio:.1f} times as fast as {name}" for name, ratio in row["ratios"].items())
                    task = what.replace("14 steps forced", "exactly 14 tokens per sentence")
                    lines.append(f"- {task}, one core, ours in {precision}, the others in fp32: {ratios}")
    lines.append("")
    lines.append("All figures, what differs from the peers, and what bounds them: [docs/speed](docs/speed/README.md).")
    return "\n".join(lines)


def _hardware(record: Record) -> str:
    return str(record["environment"]["device_name"])


def _minutes(minutes: float | None) -> str:
    return "no time measured" if minutes is None else f"{minutes:.1f} minutes"


def _time_to_bleu(record: Record) -> Iterator[str]:
    yield from ("## Time to a BLEU", "", provenance(record, "time_to_bleu"), "")
    yield from (f"Training with config `{record['config']}`{with_settings(record['settings'])}:", "")
    for target, minutes in record["minutes_to_bleu"].items():
        yield f"- {target} BLEU, at the first validation that reaches it: {_minutes(minutes)}"
    speed, peak = f"{record['tokens_per_s']:,.0f} target tokens/s", f"peak {record['peak_mib']:,.0f} MiB"
    yield f"- {speed} on {count_of(record['threads'], 'thread')}, {peak}"
    yield f"- `{record['signature']}`, greedy; after each epoch: {_course(record)}"


def _course(record: Record) -> str:
    return ", ".join(f"{one['bleu']:.1f} ({one['minutes']:.1f} min)" for one in record["validations"])


def _fast(record: Record) -> Iterator[str]:
    yield from ("## What each piece of speed code is worth", "", provenance(record, "bench_fast"), "")
    yield (
        f"The speed with everything on, divided by the speed without that piece: median of {record['turns']} paired "
        "turns, one thread, CPU time. *Hand-written unroll*: forward and backward pass of the decoder's recurrence. "
        "*Batched recurrence*: both directions of the encoder in one product per step. *Loss that makes its own "
        "gradient*: logits are computed in chunks and replaced by their gradient, which saves memory too. *All of "
        "these*: the three columns before it. *Aligned rows of logits*: padded to a multiple of 64. *Prepared steps*: "
        "search with weights and keys rearranged once. *Packed products*: weights in oneDNN's own layout."
    )
    yield ""
    yield from _pieces(record)


def _fast_again(record: Record) -> Iterator[str]:
    yield from ("### The same on another machine", "", provenance(record, "bench_fast"), "")
    yield from _pieces(record)


def _pieces(record: Record) -> Iterator[str]:
    rows: dict[str, dict[str, float]] = record["rows"]
    pieces = list(dict.fromkeys(piece for of_row in rows.values() for piece in of_row))
    cells = [[what, *(f"{of_row[p]:.2f}" if p in of_row else "" for p in pieces)] for what, of_row in rows.items()]
    yield from table(["", *pieces], cells)
    small = [piece for piece in pieces if all(of_row.get(piece, 0.0) < 1.1 for of_row in rows.values())]
    if small:
        yield from ("", f"Below 1.1 in every row: {', '.join(small)}.")


def _train(record: Record) -> Iterator[str]:
    options = record["options"]
    peaks = ", ".join(f"{name} {peak / 1e9:.0f} GFLOP/s" for name, peak in record["gemm_peak"].items())
    config = options["config"]
    what = "the size of the tutorial's model" if config == "tutorial" else f"the sizes of `{config}`"
    threads = " and ".join(map(str, options["cores"] or [options["threads"]]))
    yield (
        f"## Training at {what}, teacher forcing {options['teacher_forcing']:g}, {threads} "
        f"thread{'s' * (threads != '1')}"
    )
    yield from ("", provenance(record, "bench_train"), "")
    yield (
        f"Median target tokens/s of {options['batches']} paired turns. A token costs "
        f"{record['flops_per_token'] / 1e6:.0f} MFLOP; matrix products peak at {peaks}."
    )
    yield ""
    yield from _emulated(record)
    names = list(record["rows"][0]["ratios"])
    header = ["", "tokens/s", "of the GEMM peak", *(f"x {name}" for name in names)]
    yield from table(
        header,
        [
            [
                row["name"],
                f"{row['tokens_per_s']:,.0f}",
                f"{100 * row['share_of_gemm_peak']:.0f} %",
                *ratio_cells(row, names),
            ]
            for row in record["rows"]
        ],
    )
    if findings := list(_findings(record)):
        yield from ("", *findings)


def _findings(record: Record) -> Iterator[str]:
    yield from _bounds(record)
    for precision, ratio in record.get("fed_back", {}).items():
        forcing = record["options"]["teacher_forcing"]
        yield f"- {precision}: teacher forcing {forcing:g} trains at {100 * ratio:.0f} % of the speed of 1"
    yield from pages_gpu.differences(record)


def _bounds(record: Record) -> Iterator[str]:
    """The upper bound on that machine, from the peak of its matrix products, against the tutorial's better loop."""
    bucketed = {row["name"]: row["tokens_per_s"] for row in record["rows"]}.get("tutorial, bucketed batches")
    if bucketed is None:
        return
    for precision, peak in record["gemm_peak"].items():
        speed = peak / record["flops_per_token"]
        yield (
            f"- {precision}, upper bound, with matrix products at peak and all else free: {speed:,.0f} tokens/s, "
            f"{speed / bucketed:.1f} times the tutorial's bucketed loop"
        )


def _processes(record: Record) -> Iterator[str]:
    yield from ("## Two cores: threads and processes", "", provenance(record, "bench_processes"), "")
    turns = f"median of {record['turns']} turns in which all make the same {record['updates']} updates"
    yield from (f"`{record['config']}`, target tokens/s: {turns}.", "")
    text = f"two processes of pure matrix products are {record['machine_ratio']:.2f} times as fast as one"
    yield from (f"Upper bound on this machine's two cores: {text}.", "")
    header = ["", "tokens/s", f"x {record['rows'][0]['name']}", "peak MiB, all processes"]
    rows = [
        [
            row["name"],
            f"{row['tokens_per_s']:,.0f}",
            ratio_cell(row["ratio"], row.get("interval")),
            f"{row['peak_mib']:,.0f}",
        ]
        for row in record["rows"]
    ]
    yield from table(header, rows)


def _peers(record: Record) -> Iterator[str]:
    yield from ("## Against JoeyNMT and OpenNMT-py, one core", "", provenance(record, "bench_peers"))
    kinds = dict.fromkeys((row["what"], row["hidden_size"]) for row in record["rows"])
    for what, size in kinds:
        rows = [row for row in record["rows"] if (row["what"], row["hidden_size"]) == (what, size)]
        names = list(rows[0]["ratios"])
        yield from ("", f"**{what}, hidden size {size}**", "")
        header = ["", rows[0]["unit"], *(f"x {name}" for name in names), "peak MiB", "parameters"]
        yield from table(
            header,
            [
                [
                    row["contestant"],
                    f"{row['speed']:,.0f}",
                    *ratio_cells(row, names),
                    f"{row['peak_mib']:,.0f}" if row["peak_mib"] else "",
                    f"{row['parameters']:,}",
                ]
                for row in rows
            ],
        )
    yield from ("", "What is equal, and what is not:", "")
    yield from (f"- {difference}" for difference in record["differences"])


def _search(record: Record) -> Iterator[str]:
    options = record["options"]
    yield from ("## Translating", "", provenance(record, "bench_search"), "")
    yield (
        f"{count_of(options['threads'], 'thread')}, {record['steps']} forced steps per sentence, batches of "
        f"{options['batch_size']}, random weights; the tutorial's loop translates one sentence at a time."
    )
    yield ""
    yield from _emulated(record)
    rows = [
        [row["name"], f"{row['sentences_per_s']:,.0f}", ratio_cell(row["ratio"], row.get("interval"), digits=1)]
        for row in record["rows"]
    ]
    yield from table(["", "sentences/s", "x tutorial's loop"], rows)
    yield ""
    for precision, found in record["differences"].items():
        yield (
            f"- {precision} against the tutorial: log-probabilities within {found['log_prob']:.1e}, "
            f"{100 * found['same_tokens']:.1f} % of tokens the same"
        )
    if found := record.get("run"):
        signature, commit = found["rows"][0]["beam_1"]["signature"], found["commit"]
        about = f"A `{found['name']}` run of commit {commit} on test_2016_flickr, from text to text"
        yield from ("", f"{about}; `{signature}`:", "")
        header = ["", "greedy, sentences/s", "BLEU", "beam 5, sentences/s", "BLEU", "one sentence, greedy"]
        yield from table(
            header,
            [
                [
                    row["precision"],
                    f"{row['beam_1']['sentences_per_s']:,.0f}",
                    f"{row['beam_1']['bleu']:.2f}",
                    f"{row['beam_5']['sentences_per_s']:,.0f}",
                    f"{row['beam_5']['bleu']:.2f}",
                    f"{row['one_sentence_ms']:.1f} ms",
                ]
                for row in found["rows"]
            ],
        )


def _prepare(record: Record) -> Iterator[str]:
    yield from ("## Preparing", "", provenance(record, "bench_prepare"), "")
    bare = ", ".join(f"{name} {speed:,.0f}" for name, speed in record["bare_lines_per_s"].items())
    yield (
        f"Text made from lines of {record['origin']}. Lines/s count one side; lines/s/core are per second of CPU time. "
        f"The tokenizers alone: {bare} lines/s."
    )
    yield ""
    header = ["pairs", "tokenizer", "processes", "lines/s", "lines/s/core", "s to train the tokenizer", "peak MiB"]
    yield from table(
        header,
        [
            [
                f"{row['pairs']:,}",
                row["tokenizer"],
                str(row["processes"]),
                f"{row['lines_per_s']:,.0f}",
                f"{row['lines_per_s_per_core']:,.0f}",
                f"{row['tokenizer_seconds']:.0f}",
                f"{row['peak_mib']:,.0f}",
            ]
            for row in record["rows"]
        ],
    )


def _scaling(record: Record) -> Iterator[str]:
    yield from ("## How the cost grows", "", provenance(record, "bench_scaling"), "")
    yield from ("Training `quickstart` on random pairs, one thread:", "")
    rows = [[f"{row['pairs']:,}", f"{row['us_per_token']:.1f}", f"{row['epoch_s']:.2f}"] for row in record["by_pairs"]]
    yield from table(["pairs", "µs per target token", "seconds to order an epoch"], rows)
    yield from ("", f"The slowest is {100 * record['spread']:.1f} % slower than the fastest.", "")
    rows = [[str(row["source_positions"]), f"{row['us_per_token']:.1f}"] for row in record["by_source_length"]]
    yield from table(["source positions", "µs per target token"], rows)
    line = record["line"]
    yield ""
    yield (
        f"Linear fit: {line['intercept']:.1f} + {line['slope']:.2f} S µs, S source positions; the largest relative "
        f"residual is {100 * line['error']:.1f} %."
    )


def _revisions(record: Record) -> Iterator[str]:
    yield from (f"## Against commit {record['base'][:7]}", "", provenance(record, "bench_revisions"), "")
    yield (
        f"The speed of the commit above, divided by that of {record['base'][:7]} (below 1: slower): median of "
        f"{record['turns']} paired turns, CPU time of whole commands on one thread. Training is that of `multi30k`."
    )
    yield ""
    rows = [[kind, ratio_cell(ratio, record["intervals"][kind])] for kind, ratio in record["ratios"].items()]
    yield from table(["", "ratio"], rows)


SECTIONS: dict[str, Callable[[Record], Iterator[str]]] = {
    "time-to-bleu": _time_to_bleu,
    "train": _train,
    "cores": _train,
    "cores-multi30k": _train,
    "processes": _processes,
    "peers": _peers,
    "search": _search,
    "prepare": _prepare,
    "scaling": _scaling,
    "fast": _fast,
    "fast-again": _fast_again,
    "revisions": _revisions,
}
"""record name to the function that renders it"""


def _emulated(record: Record) -> Iterator[str]:
    if record.get("left_out"):
        yield f"Left out, as the processor only emulates it: {', '.join(record['left_out'])}."
        yield ""
