"""docs/mechanisms.md: which mechanism answers which question, with a formula, a picture and what we measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os.path import relpath
from pathlib import Path

from scripts.harness.pages import table
from scripts.harness.records import ROOT
from scripts.mechanism_bench.plan import (
    AXES,
    BASELINE_ROW,
    CAPTIONS,
    NOT_IN_BENCH,
    Row,
    every_mechanism,
    formula,
    introduction,
    parts_of_baseline,
    question,
)
from scripts.mechanism_bench.summary import Summary, percent, spread

DOCS = ROOT / "docs"
TITLES = {
    "attention": "Attention: where to look",
    "normalizer": "Normalizers: from scores to weights",
    "encoder": "Encoders: what is looked at",
    "cell": "Cells: what carries the state",
    "decoder": "Decoders: when to look",
    "output": "Outputs: how the next word is predicted",
    "objective": "Objectives: what attention is taught",
}
INTRODUCTION = f"""\
# Mechanisms, and which to choose

Written by `scripts/mechanisms` from docstrings, `docs/records/mechanisms` and trained runs. Every mechanism is an
overlay for any config: `seq2seq train -c {CAPTIONS} -c attention/coverage`. Overlays of different axes combine. A row
with a suffix, such as `additive-160`, is an overlay with an option, which its section names. All figures, and how they
were measured: [attention.md](attention.md).

Each picture shows a run of `{CAPTIONS}` with that overlay, seed 1, at work on the same German sentence. Its verb
(`gezeigt`, "showed") comes last, after a relative clause. A row is a word of the translation, and a darker cell is more
attention to the source word above it.

**If you do not know where to begin**, keep the defaults: `additive` attention, `softmax` weights, `bigru` encoder,
`bahdanau` decoder, `softmax` output. Then change one of them and compare, with several seeds:

```bash
seq2seq compare -c {CAPTIONS} --vary attention=additive,coverage --seeds 1-3
```"""


def render_guide(found: Mapping[str, Summary]) -> str:
    """The page."""
    parts = [INTRODUCTION]
    for axis in AXES:
        rows = rows_of(axis)
        cells = [[f"[`{row.name}`](#{anchor(row)})", question(row), bleu(row, found)] for row in rows]
        parts += [f"## {TITLES[axis]}", "\n".join(table(["row", "question", "BLEU"], cells, align="---"))]
        for row in rows:
            parts += section(row, found)
    return "\n\n".join(parts) + "\n"


def rows_of(axis: str) -> list[Row]:
    """The mechanisms of an axis, those of the baseline first."""
    return [row for row in every_mechanism() if row.overlay.startswith(f"{axis}/")]


def anchor(row: Row) -> str:
    """The link to a row's section."""
    return row.name.replace("/", "")


def section(row: Row, found: Mapping[str, Summary]) -> Iterator[str]:
    """A row: question, source, formula, figures, picture."""
    yield f"### {row.name}"
    yield f"*{question(row)}*"
    if row.suffix:
        yield f"[`{row.overlay}`](#{anchor(Row(row.overlay))}) with `{row.settings[0]}`."
    else:
        yield introduction(row)
        if written := formula(row):
            yield f"```text\n{written}\n```"
    yield f"{measured(row, found)} File: [`{row.source_path.name}`]({link(row.source_path)})."
    if row.picture_path.exists():
        yield f"![Attention of {row.name}]({link(row.picture_path)})"


def link(path: Path) -> str:
    """A path as the page links to it."""
    return relpath(path, DOCS)


def bleu(row: Row, found: Mapping[str, Summary]) -> str:
    """A row's BLEU, that of the baseline for its parts."""
    one = found.get((BASELINE_ROW if row in parts_of_baseline() else row).name)
    return "" if one is None else spread(one.bleu)


def measured(row: Row, found: Mapping[str, Summary]) -> str:
    """The measurements in a sentence."""
    if row in parts_of_baseline():
        return f"A part of `{CAPTIONS}`: its figures are those of [`{BASELINE_ROW.name}`](#{anchor(BASELINE_ROW)})."
    if row.name in NOT_IN_BENCH:
        return NOT_IN_BENCH[row.name]
    one = found.get(row.name)
    if one is None or not one.bleu:
        return f"Not measured yet; `scripts/mechanisms --rows {row.name}` trains it."
    base = found.get(BASELINE_ROW.name)
    compared = f" (`{BASELINE_ROW.name}`: {spread(base.bleu)})" if base and base.bleu and row != BASELINE_ROW else ""
    seeds = f"{len(one.bleu)} seed{'s' * (len(one.bleu) > 1)}"
    facts = [f"{spread(one.bleu)} BLEU{compared}, {seeds}"]
    if one.error_rates:
        facts.append(f"alignment error rate {percent(min(one.error_rates.values()))} at the best shift")
    if (entropy := one.mean("entropy")) is not None:
        facts.append(f"entropy {entropy:.2f} nats")
    if one.speed and row != BASELINE_ROW:
        facts.append(f"training speed {one.speed['ratio']:.2f} of `{BASELINE_ROW.name}`'s")
    return f"Measured: {'; '.join(facts)}."
