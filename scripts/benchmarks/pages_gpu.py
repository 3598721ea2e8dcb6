"""From the records of scripts/gpu to their section of docs/speed. Needs the standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scripts.laboratory.harness.pages import provenance, ratio_cell, ratio_cells, table
from scripts.laboratory.harness.records import Record

PREFIX = "gpu-"


def render(records: dict[str, Record]) -> Iterator[str]:
    """The lines of the section; none without records."""
    found = {name: records[PREFIX + name] for name in SECTIONS if PREFIX + name in records}
    if not found:
        return
    yield "## On a GPU"
    for name, record in found.items():
        yield from ("", provenance(record, f"gpu {name}"), "")
        yield from SECTIONS[name](record)


def _tests(record: Record) -> Iterator[str]:
    failed = record["failed"]
    counts = f"{record['passed']} passed, {len(failed)} failed, {record['skipped']} skipped"
    yield f"Device tests and golden curves: {counts}."
    if failed:
        yield ""
    yield from (f"- `{test['name']}`: {test['message']}" for test in failed)


def _bleu(record: Record) -> Iterator[str]:
    way = "with CUDA graphs" if record["cuda_graphs"] else "without CUDA graphs"
    state = "" if record["is_finished"] else ", not finished"
    yield f"`seq2seq train -c {record['config']}` {way}{state}:"
    yield ""
    for target, minutes in record["minutes_to_bleu"].items():
        reached = "not reached" if minutes is None else f"{minutes:.1f} minutes"
        yield f"- {target} BLEU on the validation set (greedy): {reached}"
    used = "not known" if record["utilization"] is None else f"{100 * record['utilization']:.0f} %"
    peak = "" if record["peak_mib"] is None else f", peak {record['peak_mib']:,} MiB"
    yield (
        f"- {record['tokens_per_s']:,.0f} target tokens/s, GPU utilization {used}{peak}, "
        f"{100 * record['validation_share']:.0f} % of the time in validation"
    )
    yield f"- `{record['signature']}`"


def _training(record: Record) -> Iterator[str]:
    peaks = dict(record["peaks"])
    bandwidth = peaks.pop("bytes")
    products = ", ".join(f"{name} {peak / 1e12:.0f} TFLOP/s" for name, peak in peaks.items())
    yield f"Measured on the device: matrix products {products}; copies {bandwidth / 1e12:.1f} TB/s."
    for function in record["functions"]:
        names = list(function["rows"][0]["ratios"])
        yield ""
        yield (
            f"Sizes of `{function['config']}`, batches of {function['batch_size']}, teacher forcing "
            f"{function['teacher_forcing']:g}, {function['turns']} paired turns; a token costs "
            f"{function['flops_per_token'] / 1e6:.0f} MFLOP:"
        )
        yield ""
        header = ["", "tokens/s", *(f"x {name}" for name in names), "bound"]
        rows = [
            [row["name"], f"{row['tokens_per_s']:,.0f}", *ratio_cells(row, names), row["bound"]]
            for row in function["rows"]
        ]
        yield from table(header, rows, align="---")
        if function["differences"]:
            yield ""
        yield from differences(function)


def differences(record: Record) -> Iterator[str]:
    """How far loss and gradients are from the tutorial's, in each precision."""
    for precision, found in record["differences"].items():
        loss, gradients = f"loss {found['loss']:.1e}", f"gradients {found['gradients']:.1e}"
        yield f"- {precision} against the tutorial's, relative difference: {loss}, {gradients}"


def _translation(record: Record) -> Iterator[str]:
    yield (
        f"Translation of {record['sentences']:,} sentences, {record['steps']} steps each, batches of "
        f"{record['batch_size']}, random weights:"
    )
    yield ""
    rows = [
        [
            row["name"],
            f"{row['sentences_per_s']:,.0f}",
            ratio_cell(row["ratio"], row.get("interval"), digits=1),
            row["bound"],
        ]
        for row in record["rows"]
    ]
    yield from table(["", "sentences/s", "x tutorial's loop", "bound"], rows, align="---")


SECTIONS: dict[str, Callable[[Record], Iterator[str]]] = {
    "tests": _tests,
    "bleu": _bleu,
    "bleu-eager": _bleu,
    "training": _training,
    "translation": _translation,
}
"""block to the function that renders its record"""
