"""Every mechanism on the same bench: docs/attention.md (all figures) and docs/mechanisms.md (which
to choose)."""

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby
from os.path import relpath
from pathlib import Path
from statistics import fmean
from textwrap import dedent

from scripts.laboratory.harness.records import ROOT, Record, load_records
from scripts.laboratory.pages.render import DOCS, MECHANISMS, load_yaml, render

CAPTIONS, MULTI30K = "quickstart", "multi30k-short"
"""the config under each row's overlay: of the table, and of its column for Multi30k"""
BASELINE = "attention/additive"
MAX_LOSS = 2.0
"""BLEU below the baseline from which a row needs a reason"""
UNMEASURED: Record = {"captions": [], "multi30k": []}


def mechanism_pages() -> Iterator[tuple[Path, str]]:
    """Path and wanted text of both pages."""
    rows = mechanisms()
    bench = [row for row in rows.values() if row["bleu"]]
    baseline, reasons = fmean(rows[BASELINE]["bleu"]), load_yaml("mechanisms.yaml")["reasons"]
    for row in bench:
        loss = baseline - fmean(row["bleu"])
        row["loss"] = (
            (loss, reasons.get(row["name"], "the cause is not known")) if loss > MAX_LOSS else None
        )
    for name in ("attention", "mechanisms"):
        text = render(
            f"{name}.md.j2",
            rows=rows,
            bench=bench,
            baseline=rows[BASELINE],
            texts=load_yaml("mechanisms.yaml"),
            speeds=[row["speed"] for row in bench if row["speed"]],
            runs=[run for row in bench for run in row["captions"]],
            captions=CAPTIONS,
            multi30k=MULTI30K,
            max_loss=MAX_LOSS,
        )
        yield DOCS / f"{name}.md", text


def mechanisms() -> dict[str, Record]:
    """The rows by name, axis after axis: the baseline and its parts first, then those with a record
    or an overlay in `configs/`. A variant that has left the package stays by its record."""
    texts, rows = load_yaml("mechanisms.yaml"), {}
    for axis in texts["axes"]:
        for path in (ROOT / "configs" / axis).glob("*.yaml"):
            row = describe(f"{axis}/{path.stem}", f"{axis}/{path.stem}", (), UNMEASURED)
            if row["source"]:
                rows[row["name"]] = row
    for record in load_records(MECHANISMS).values():
        _, _, _, _, _, overlay, *settings = shlex.split(record["command"])
        rows[record["row"]] = describe(record["row"], overlay, settings[1::2], record)
    axes, first = list(texts["axes"]), (BASELINE, *texts["parts_of_baseline"])
    order = sorted(
        rows,
        key=lambda name: (
            axes.index(name.split("/")[0]),
            name not in first,
            rows[name]["overlay"],
            name,
        ),
    )
    return {name: rows[name] for name in order}


def describe(name: str, overlay: str, settings: Sequence[str], record: Record) -> Record:
    """A row as the templates need it: an overlay with its settings, what it does, and what was
    measured."""
    axis, variant = overlay.split("/")
    folder = "train/objectives" if axis == "objective" else f"model/{axis}"
    source = (
        ROOT
        / "seq2seq_attn"
        / load_yaml("mechanisms.yaml")["files"].get(overlay, f"{folder}/{variant}.py")
    )
    picture = DOCS / "plots" / "mechanisms" / f"{name.replace('/', '-')}.png"
    return {
        "name": name,
        "overlay": overlay,
        "axis": axis,
        "anchor": name.replace("/", ""),
        "settings": settings,
        "command": f"seq2seq train -c {CAPTIONS} -c {overlay}{''.join(f' --set {setting}' for setting in settings)}",
        "source": relpath(source, DOCS) if source.exists() else None,
        "picture": relpath(picture, DOCS) if picture.exists() else None,
        **_explanation(name, source),
        **_measured(record),
    }


def _explanation(name: str, source: Path) -> Record:
    """The question that a row answers, and the docstring of its file as Markdown: its first
    paragraph, then the rest with formulas as code, without shapes and measurements."""
    text = (
        ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) if source.exists() else ""
    )
    first, *rest = (text or "").split("\n\n")
    introduction, parts = " ".join(first.split()), []
    for is_formula, paragraphs in groupby(rest, key=lambda text: text.startswith("    ")):
        if is_formula:
            parts.append("```text\n" + dedent("\n\n".join(paragraphs)) + "\n```")
            continue
        shown = (
            text for text in paragraphs if not text.startswith(("Shapes", "In our measurements"))
        )
        parts += [" ".join(text.split()).replace("*", r"\*") for text in shown]
    sentence = re.split(r"(?<=[.?])\s|\s\(", introduction, maxsplit=1)[0].rstrip(":.") + "."
    question = load_yaml("mechanisms.yaml")["questions"].get(name, sentence)
    return {"question": question, "introduction": introduction, "explanation": parts}


def _measured(record: Record) -> Record:
    """Means over the seeds of a record. Attention's figures are None without attention to source
    words."""
    captions = record["captions"]
    rates = {
        key: rate
        for run in captions[:1]
        for key, rate in run["error_rates"].items()
        if rate is not None
    }
    buckets = zip(*(run["by_length"] for run in captions), strict=True)
    return {
        "captions": captions,
        "multi30k": record["multi30k"],
        "speed": record.get("speed"),
        "bleu": [run["bleu"] for run in captions],
        "multi30k_bleu": [run["validation_bleu"] for run in record["multi30k"]],
        "by_length": [fmean(score["bleu"] for score in bucket) for bucket in buckets],
        "error_rates": {
            int(key): _mean([run["error_rates"] for run in captions], key) for key in rates
        },
        **{key: _mean(captions, key) for key in ("entropy", "dropped", "repeated")},
        "score": {
            "captions": _mean(captions, "bleu") or 0.0,
            "multi30k": _mean(record["multi30k"], "validation_bleu") or 0.0,
        },
    }


def _mean(values: Sequence[Record], key: str) -> float | None:
    known = [value[key] for value in values if value[key] is not None]
    return fmean(known) if known else None
