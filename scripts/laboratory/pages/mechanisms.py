"""docs/mechanisms.md: every mechanism with its formula and its figures, and which to choose."""

import importlib
import inspect
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any, Literal, get_args, get_origin

from scripts.laboratory.harness.records import ROOT, Record, load_records
from scripts.laboratory.pages.reference import as_yaml
from scripts.laboratory.pages.render import (
    MECHANISMS,
    load_yaml,
    mean_sd,
    percent,
    ratio,
    render,
)
from seq2seq_attn.config import SearchConfig
from seq2seq_attn.model.build import ENCODER_SHORTHANDS
from seq2seq_attn.model.variants import (
    AXES,
    SCORER,
    SEARCH,
    Axis,
    find_build,
    packaged_variants,
    read_parameters,
)
from seq2seq_attn.train.loss import OBJECTIVE

BASELINE = "attention/additive"
MAX_LOSS = 2.0
"""BLEU below the baseline from which a row needs a reason"""
CITATION = re.compile(r"\s*\((?P<paper>[^()]*\b(?:19|20)\d\d\b[^()]*(?:\([^()]*\)[^()]*)*)\)")
TRAINED: dict[str, Axis] = {**AXES, "objective": OBJECTIVE}
SEARCHED: dict[str, Axis] = {"search": SEARCH, "scorer": SCORER}


def mechanisms_page() -> str:
    """The text of docs/mechanisms.md."""
    texts = load_yaml("mechanisms.yaml")
    rows = mechanisms()
    baseline = rows[BASELINE]
    measured = [row for row in rows.values() if row["bleu"]]
    tables: dict[str, list[Sequence[Any]]] = {axis: [] for axis in texts["axes"]}
    for row in rows.values():
        tables[row["axis"]].append(table_cells(row))
    losses = []
    for row in measured:
        loss = fmean(baseline["bleu"]) - fmean(row["bleu"])
        if loss > MAX_LOSS:
            losses.append((row["name"], loss, texts["reasons"][row["name"]]))
    return render(
        "mechanisms.md.j2",
        rows=rows,
        baseline=baseline,
        texts=texts,
        tables=tables,
        search_rows={name: search_rows(axis) for name, axis in SEARCHED.items()},
        losses=losses,
        speeds=[row["speed"] for row in measured if row["speed"]],
        max_loss=MAX_LOSS,
    )


def mechanisms() -> dict[str, Record]:
    """The rows by name, axis after axis, the parts of the baseline first.

    Every overlay of `configs/` has a row, and so has every record. A mechanism that has left the
    package keeps the row of its record.
    """
    texts = load_yaml("mechanisms.yaml")
    axes = [*texts["axes"]]
    records = {record["row"]: record for record in load_records(MECHANISMS).values()}
    overlays = {
        f"{axis}/{path.stem}": f"{axis}/{path.stem}"
        for axis in axes
        for path in (ROOT / "configs" / axis).glob("*.yaml")
    }
    for name, record in records.items():
        overlays[name] = shlex.split(record["command"])[5]
    parts = [BASELINE, *texts["parts_of_baseline"]]

    def order(name: str) -> tuple[int, bool, str, str]:
        return axes.index(name.split("/")[0]), name not in parts, overlays[name], name

    return {
        name: describe(name, overlays[name], records.get(name))
        for name in sorted(overlays, key=order)
    }


def describe(name: str, overlay: str, record: Record | None) -> Record:
    """A row: what the docstring of the variant's module says, and what its record measured."""
    axis, variant = overlay.split("/")
    if axis == "encoder" and variant in ENCODER_SHORTHANDS:
        variant, _ = ENCODER_SHORTHANDS[variant]
    row = {"name": name, "axis": axis, **measurements(record)}
    if variant not in packaged_variants(TRAINED[axis]):
        idea = load_yaml("mechanisms.yaml")["removed"][name]
        return row | {"link": f"`{name}`", "idea": idea, "formula": "", "paper": "", "options": ""}
    row |= describe_variant(TRAINED[axis], variant)
    row["link"] = f"[`{name}`]({row['file']})"
    if name != overlay and record is not None:
        [_, setting] = shlex.split(record["command"])[6:]
        option = setting.removeprefix(f"model.{axis}.options.")
        row |= {"idea": f"`{overlay}` with `{option}`", "formula": "", "paper": "", "options": ""}
    return row


def describe_variant(axis: Axis, name: str) -> Record:
    """The file of a variant, and what its docstring and its signature say."""
    module = importlib.import_module(f"{axis.package}.{name}")
    docstring = inspect.getdoc(module) or ""
    idea, paper = summary_and_paper(docstring)
    return {
        "file": f"../{_path(module)}",
        "idea": idea,
        "formula": formula(docstring),
        "paper": paper,
        "options": ", ".join(options(axis, name)),
    }


def _path(module: ModuleType) -> Path:
    return Path(*module.__name__.split(".")).with_suffix(".py")


def summary_and_paper(docstring: str) -> tuple[str, str]:
    """The first sentence of a docstring without its citation, and the first citation."""
    first = " ".join(docstring.split("\n\n")[0].split())
    match = CITATION.search(first) or CITATION.search(" ".join(docstring.split()))
    without_citation = CITATION.sub("", first, count=1)
    sentence = re.split(r"(?<!et al)\.(?:\s|$)", without_citation)[0]
    paper = match["paper"].rstrip(".") if match else ""
    return sentence.strip().rstrip(":"), paper


def formula(docstring: str) -> str:
    """The first formula of a docstring: each of its lines as code."""
    for paragraph in docstring.split("\n\n"):
        if paragraph.startswith("    "):
            lines = [re.sub(r"(?<!:)\s{3,}", "; ", line.strip()) for line in paragraph.splitlines()]
            return "<br>".join(f"`{line.replace('`', '')}`" for line in lines)
    return ""


def options(axis: Axis, name: str) -> Iterator[str]:
    """The options of a variant with their defaults: the parameters of `build` that have a default,
    or the fields of a search method's own options."""
    if axis is SEARCH:
        parameters = read_parameters(find_build(axis, name, function="search"))
        [*_, settings] = parameters.values()
        for option, field in settings.annotation.model_fields.items():
            if option not in SearchConfig.model_fields:
                yield f"`{option}` = {as_yaml(field.default)}"
        return
    if axis is AXES["normalizer"]:
        return
    signature = inspect.signature(find_build(axis, name), eval_str=True)
    for option, parameter in signature.parameters.items():
        if parameter.default is not parameter.empty:
            yield f"`{option}` = {as_yaml(parameter.default)}{_alternatives(parameter)}"


def _alternatives(parameter: inspect.Parameter) -> str:
    if get_origin(parameter.annotation) is not Literal:
        return ""
    choices = get_args(parameter.annotation)
    alternatives = [as_yaml(choice) for choice in choices if choice != parameter.default]
    return f" (or {', '.join(alternatives)})"


def measurements(record: Record | None) -> Record:
    """BLEU of each seed, alignment error rate and training speed; empty without a record."""
    record = record or {"captions": [], "multi30k": []}
    bleu = [run["bleu"] for run in record["captions"]]
    multi30k_bleu = [run["validation_bleu"] for run in record["multi30k"]]
    error_rates = [run["error_rates"].get("0") for run in record["captions"]]
    known = [rate for rate in error_rates if rate is not None]
    return {
        "bleu": bleu,
        "score": {"captions": fmean(bleu or [0]), "multi30k": fmean(multi30k_bleu or [0])},
        "multi30k_bleu": multi30k_bleu,
        "error_rate": fmean(known) if known else None,
        "speed": record.get("speed"),
    }


def table_cells(row: Record) -> Sequence[Any]:
    """A row of a table of trained mechanisms."""
    speed = row["speed"]
    bleu = mean_sd(row["bleu"])
    if len(row["bleu"]) == 1:
        bleu += " (1 seed)"
    return [
        row["link"],
        row["idea"],
        row["formula"],
        row["paper"],
        row["options"],
        bleu,
        mean_sd(row["multi30k_bleu"]),
        percent(row["error_rate"]),
        "" if speed is None else ratio(speed["ratio"], None),
    ]


def search_rows(axis: Axis) -> list[Sequence[str]]:
    """A row per search method or scorer."""
    rows: list[Sequence[str]] = []
    for name in packaged_variants(axis):
        row = describe_variant(axis, name)
        link = f"[`{name}`]({row['file']})"
        rows.append([link, row["idea"], row["formula"], row["paper"], row["options"]])
    return rows
