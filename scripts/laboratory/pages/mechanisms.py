"""Every mechanism on the same bench: docs/attention.md (all figures) and docs/mechanisms.md (which to choose)."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from os.path import relpath
from pathlib import Path
from statistics import fmean
from textwrap import dedent
from typing import Any

from scripts.laboratory.pages.render import (
    DOCS,
    MECHANISMS,
    ROOT,
    Record,
    distinct,
    interval,
    load_records,
    load_yaml,
    mean_sd,
    percent,
    render,
)

CAPTIONS, MULTI30K = "quickstart", "multi30k-short"
"""the config under each row's overlay: of the table, and of its column for Multi30k"""
BASELINE = "attention/additive"
MAX_LOSS = 2.0
"""BLEU below the baseline from which a row needs a reason"""
UNMEASURED: Record = {"captions": [], "multi30k": []}


@dataclass(frozen=True)
class Mechanism:
    """A row: an overlay, `attention/local`, with an option where its name has a suffix, and its record."""

    name: str
    overlay: str
    settings: tuple[str, ...] = ()
    record: Record | None = None

    @property
    def axis(self) -> str:
        """Its folder."""
        return self.overlay.split("/")[0]

    @property
    def anchor(self) -> str:
        """The link to its section."""
        return self.name.replace("/", "")

    @property
    def command(self) -> str:
        """How to train it."""
        return f"seq2seq train -c {CAPTIONS} -c {self.overlay}{''.join(f' --set {one}' for one in self.settings)}"

    @property
    def source_path(self) -> Path:
        """The file of the variant."""
        axis, name = self.overlay.split("/")
        folder = "train/objectives" if axis == "objective" else f"model/{axis}"
        return ROOT / "seq2seq_attn" / load_yaml("mechanisms.yaml")["files"].get(self.overlay, f"{folder}/{name}.py")

    @property
    def source(self) -> str | None:
        """The file as the page links to it; None if the variant has left the package."""
        return relpath(self.source_path, DOCS) if self.source_path.exists() else None

    @property
    def picture(self) -> str | None:
        """Its attention on the example sentence, where it was drawn."""
        path = f"plots/mechanisms/{self.name.replace('/', '-')}.png"
        return path if (DOCS / path).exists() else None

    @property
    def options(self) -> str:
        """The settings of its overlay."""
        lines = (ROOT / "configs" / f"{self.overlay}.yaml").read_text(encoding="utf-8").splitlines()
        return "\n".join(line for line in lines if not line.startswith("#"))

    @cached_property
    def paragraphs(self) -> list[str]:
        """Those of the docstring of its file; none if the variant has left the package."""
        if self.source is None:
            return []
        text = ast.get_docstring(ast.parse(self.source_path.read_text(encoding="utf-8"))) or ""
        return text.split("\n\n")

    @property
    def introduction(self) -> str:
        """The first paragraph, as a single line."""
        return " ".join("".join(self.paragraphs[:1]).split())

    @property
    def question(self) -> str:
        """The question that it answers."""
        first = re.split(r"(?<=[.?])\s|\s\(", self.introduction, maxsplit=1)[0].rstrip(":.") + "."
        return str(load_yaml("mechanisms.yaml")["questions"].get(self.name, first))

    @property
    def explanation(self) -> Iterator[str]:
        """The other paragraphs as Markdown: formulas as code, without shapes and measurements."""
        for is_formula, found in groupby(self.paragraphs[1:], key=lambda text: text.startswith("    ")):
            if is_formula:
                yield "```text\n" + dedent("\n\n".join(found)) + "\n```"
                continue
            for text in found:
                if not text.startswith(("Shapes", "In our measurements")):
                    yield " ".join(text.split()).replace("*", r"\*")

    @property
    def captions(self) -> list[Record]:
        """Runs on captions, one per seed."""
        return list((self.record or UNMEASURED)["captions"])

    @property
    def multi30k(self) -> list[Record]:
        """Runs on Multi30k, one per seed."""
        return list((self.record or UNMEASURED)["multi30k"])

    @property
    def speed(self) -> Record | None:
        """Of training, relative to the baseline."""
        return (self.record or {}).get("speed")

    @property
    def bleu(self) -> list[float]:
        """Of each seed, on captions."""
        return [run["bleu"] for run in self.captions]

    @property
    def multi30k_bleu(self) -> list[float]:
        """Of each seed, on Multi30k's validation set."""
        return [run["validation_bleu"] for run in self.multi30k]

    @property
    def bleu_cell(self) -> str:
        """Mean and deviation; the interval of a single seed."""
        return interval(self.captions[0], "bleu") if len(self.captions) == 1 else mean_sd(self.bleu)

    @property
    def bleu_by_length(self) -> list[float]:
        """The mean of each bucket."""
        buckets = zip(*(run["by_length"] for run in self.captions), strict=True)
        return [fmean(run["bleu"] for run in one) for one in buckets]

    @property
    def error_rates(self) -> dict[int, float]:
        """Shift to alignment error rate; empty without attention to source words."""
        first = self.captions[0]["error_rates"] if self.captions else {}
        shifts = [shift for shift, rate in first.items() if rate is not None]
        return {int(shift): fmean(run["error_rates"][shift] for run in self.captions) for shift in shifts}

    @property
    def best_shift(self) -> str:
        """The lowest error rate, with its shift."""
        if not self.error_rates:
            return ""
        shift = min(self.error_rates, key=lambda one: self.error_rates[one])
        return f"{percent(self.error_rates[shift])} ({f'{shift:+d}' if shift else '0'})"

    def move_error(self, kind: str) -> float | None:
        """The alignment error at words that attention reaches by going on (`next`) or by a `jump`; None if unknown."""
        moves = [run["moves"] for run in self.captions if run.get("moves")]
        return fmean(one[kind]["error_rate"] for one in moves) if moves else None

    def mean(self, key: str) -> float | None:
        """Entropy, or the share of words `dropped` or `repeated`; None without attention to source words."""
        values = [run[key] for run in self.captions if run[key] is not None]
        return fmean(values) if values else None

    def training_cells(self, corpus: str, keys: Sequence[str]) -> list[str]:
        """The values of each seed, then those that the seeds share."""
        runs = self.captions if corpus == "captions" else self.multi30k
        of_seeds = ("seed", "minutes", "validation_bleu", "validation_perplexity")
        return [*(", ".join(str(run[key]) for run in runs) for key in of_seeds), *(shared(runs, key) for key in keys)]


def shared(runs: Sequence[Record], key: str) -> str:
    """The different values of some runs."""
    return distinct(run[key] for run in runs)


def mechanisms() -> dict[str, Mechanism]:
    """By name, axis after axis: the baseline and its parts first, then those with a record or an overlay in `configs/`.
    A variant that has left the package stays by its record."""
    texts = load_yaml("mechanisms.yaml")
    found = {}
    for axis in texts["axes"]:
        for path in (ROOT / "configs" / axis).glob("*.yaml"):
            row = Mechanism(f"{axis}/{path.stem}", f"{axis}/{path.stem}")
            if row.source is not None:
                found[row.name] = row
    for record in load_records(MECHANISMS).values():
        _, _, _, _, _, overlay, *settings = shlex.split(record["command"])
        found[record["row"]] = Mechanism(record["row"], overlay, tuple(settings[1::2]), record)
    axes, first = list(texts["axes"]), (BASELINE, *texts["parts_of_baseline"])
    order = sorted(found.values(), key=lambda row: (axes.index(row.axis), row.name not in first, row.overlay, row.name))
    return {row.name: row for row in order}


def loss_and_reason(row: Mechanism, baseline: Mechanism) -> tuple[float, str] | None:
    """By how much BLEU a row is below the baseline, and why, where that is more than `MAX_LOSS`."""
    loss = fmean(baseline.bleu) - fmean(row.bleu) if row.bleu else 0.0
    reasons: Mapping[str, str] = load_yaml("mechanisms.yaml")["reasons"]
    return (loss, reasons.get(row.name, "the cause is not known")) if loss > MAX_LOSS else None


def mechanism_pages() -> Iterator[tuple[Path, str]]:
    """Both pages."""
    rows = mechanisms()
    bench = [row for row in rows.values() if row.captions]
    values: dict[str, Any] = {
        "rows": rows,
        "bench": bench,
        "baseline": rows[BASELINE],
        "texts": load_yaml("mechanisms.yaml"),
        "runs": [run for row in bench for run in row.captions],
        "speeds": [row.speed for row in bench if row.speed],
        "losses": [(row, loss) for row in bench if (loss := loss_and_reason(row, rows[BASELINE]))],
        "on_captions": sorted(bench, key=lambda row: -fmean(row.bleu)),
        "on_multi30k": sorted((row for row in bench if row.multi30k), key=lambda row: -fmean(row.multi30k_bleu)),
        "loss_of": lambda row: loss_and_reason(row, rows[BASELINE]),
        "shared": shared,
        "captions": CAPTIONS,
        "multi30k": MULTI30K,
        "max_loss": MAX_LOSS,
    }
    yield DOCS / "attention.md", render("attention.md.j2", **values)
    yield DOCS / "mechanisms.md", render("mechanisms.md.j2", **values)
