"""A whole evaluation as one page: text for the terminal, Markdown for the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seq2seq_attn.metrics.bleu import TITLES, MeasureName
from seq2seq_attn.report.scores import BUCKET_MEASURES, Resampling, SetScores
from seq2seq_attn.report.tables import THIN_NOTE, Table, comparison_table, has_thin_bucket, length_table, score_table


@dataclass(frozen=True)
class Page:
    """What a page is made from."""

    sets: Sequence[SetScores]
    unit: str
    """what lengths are counted in: `source tokens`"""
    length_tokenizer: str
    resampling: Resampling
    notes: Sequence[str]
    """lines about the runs: how they translated, what to mind"""
    provenance: str
    """commit, versions, date"""


def terminal_page(page: Page) -> str:
    """Scores and BLEU by length of each test set, then how they were made."""
    blocks = []
    for scores in page.sets:
        blocks += [f"{scores.name}: {scores.num_pairs:,} sentence pairs", score_table(scores).to_text()]
        blocks += [f"{title}\n{table.to_text()}" for title, table in _length_tables(scores, page.unit, ["bleu"])]
    blocks.append("\n".join([*legend(page), *_signature_lines(page)]))
    return "\n\n".join(blocks)


def markdown_page(page: Page, plots: Sequence[str] = ()) -> str:
    """The same with every measure by length, and plots (file names beside this file)."""
    blocks = ["# Evaluation"]
    for scores in page.sets:
        blocks += [f"## {scores.name}, {scores.num_pairs:,} sentence pairs", score_table(scores).to_markdown()]
        for title, table in _length_tables(scores, page.unit):
            blocks += [f"### {title}", table.to_markdown()]
    blocks += [f"![{name}]({name})" for name in plots]
    blocks += ["## How it was measured"]
    lines = [*legend(page), *_signature_lines(page), page.provenance]
    blocks.append("\n".join(f"- {line}" for line in lines))
    return "\n\n".join(blocks) + "\n"


def _length_tables(
    scores: SetScores, unit: str, measures: Sequence[MeasureName] = BUCKET_MEASURES
) -> list[tuple[str, Table]]:
    tables = []
    for measure in measures:
        if measure in scores.scores:
            tables.append((f"{TITLES[measure]} by length", length_table(scores, measure, unit=unit)))
            if len(scores.systems) > 2:
                against = f"{TITLES[measure]} by length, against {scores.systems[0]}"
                tables.append((against, comparison_table(scores, measure, unit=unit)))
    return tables


def legend(page: Page) -> list[str]:
    """How to read the scores, a sentence or two a line."""
    drawn = page.resampling
    lines = [
        f"[low, high]: 95 % bootstrap interval, {drawn.num_resamples:,} resamples, seed {drawn.seed}; "
        f"length in {page.unit} of {page.length_tokenizer}"
    ]
    if len(page.sets[0].systems) > 1:
        first = page.sets[0].systems[0]
        lines.append(
            f"difference, p, kept: against {first}, by paired bootstrap (the JSON has approximate randomisation too); "
            "kept = share of its score"
        )
    if any(has_thin_bucket(scores) for scores in page.sets):
        lines.append(THIN_NOTE)
    return [*page.notes, *lines]


def _signature_lines(page: Page) -> list[str]:
    return [f"{TITLES[name]}: {signature}" for name, signature in page.sets[0].signatures.items()]
