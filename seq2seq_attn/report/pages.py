"""A whole evaluation as one page: text for the terminal, Markdown for the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seq2seq_attn.evaluation.scores import Resampling, SetScores, bucket_measures
from seq2seq_attn.metrics.bleu import TITLES, MeasureName
from seq2seq_attn.report.arm_tables import arm_comparison_table, arm_length_table, arm_score_table
from seq2seq_attn.report.attention_tables import ATTENTION_NOTE, GOLD_NOTE, attention_table, gold_table
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
    """Scores and BLEU by length of each test set, of arms where runs are grouped; what attention did; then how all was
    made."""
    blocks = []
    for scores in page.sets:
        blocks.append(f"{scores.name}: {scores.num_pairs:,} sentence pairs")
        tables = _arm_tables(scores, page.unit, _first(scores))
        if not scores.arms:
            blocks.append(score_table(scores).to_text())
            tables = _length_tables(scores, page.unit, _first(scores))
        blocks += [f"{title}\n{table.to_text()}" for title, table in [*tables, *_attention_tables(scores, page.unit)]]
    blocks.append("\n".join([*legend(page), *_signature_lines(page)]))
    return "\n\n".join(blocks)


def markdown_page(page: Page, plots: Sequence[str] = ()) -> str:
    """The same with every measure by length, each run by itself too, and plots (file names beside this file)."""
    blocks = ["# Evaluation"]
    for scores in page.sets:
        blocks += [f"## {scores.name}, {scores.num_pairs:,} sentence pairs", score_table(scores).to_markdown()]
        measures = bucket_measures(list(scores.scores))
        tables = _arm_tables(scores, page.unit, measures) + _length_tables(scores, page.unit, measures)
        for title, table in [*tables, *_attention_tables(scores, page.unit)]:
            blocks += [f"### {title}", table.to_markdown()]
    blocks += [f"![{name}]({name})" for name in plots]
    blocks += ["## How it was measured"]
    lines = [*legend(page), *_signature_lines(page), page.provenance]
    blocks.append("\n".join(f"- {line}" for line in lines))
    return "\n\n".join(blocks) + "\n"


def _first(scores: SetScores) -> list[MeasureName]:
    """What stands for all that was measured by length, where there is room for one."""
    return bucket_measures(list(scores.scores))[:1]


def _length_tables(scores: SetScores, unit: str, measures: Sequence[MeasureName]) -> list[tuple[str, Table]]:
    tables = []
    for measure in measures:
        tables.append((f"{TITLES[measure]} by length", length_table(scores, measure, unit=unit)))
        if len(scores.systems) > 2 and not scores.arms:  # the arms have a comparison of their own
            against = f"{TITLES[measure]} by length, against {scores.systems[0]}"
            tables.append((against, comparison_table(scores, measure, unit=unit)))
    return tables


def _arm_tables(scores: SetScores, unit: str, measures: Sequence[MeasureName]) -> list[tuple[str, Table]]:
    if not scores.arms:
        return []
    tables = [("Arms: means over seeds", arm_score_table(scores))]
    for measure in measures:
        tables.append((f"{TITLES[measure]} by length, means over seeds", arm_length_table(scores, measure, unit=unit)))
        if len(scores.arms) > 1:
            against = f"{TITLES[measure]} by length, means against {scores.arms[0].name}"
            tables.append((against, arm_comparison_table(scores, measure, unit=unit)))
    return tables


def _attention_tables(scores: SetScores, unit: str) -> list[tuple[str, Table]]:
    tables = []
    if scores.attention is not None:
        tables.append(("Attention by length", attention_table(scores, unit=unit)))
        if (of_gold := gold_table(scores)) is not None:
            tables.append(("Attention against gold links", of_gold))
    return tables


def legend(page: Page) -> list[str]:
    """How to read the scores, a sentence or two a line."""
    drawn = page.resampling
    lines = [
        f"[low, high]: 95 % bootstrap interval, {drawn.num_resamples:,} resamples, seed {drawn.seed}; "
        f"length in {page.unit} of {page.length_tokenizer}"
    ]
    first = page.sets[0]
    if len(first.systems) > 1:
        name = first.arms[0].name if first.arms else first.systems[0]
        lines.append(
            f"difference, p, kept: against {name}, by sacreBLEU's paired bootstrap (the JSON has approximate "
            "randomisation too); kept = share of its score"
        )
    if first.arms:
        lines.append(
            "arms: runs that differ in their seed alone; ± and sd: standard deviation over seeds; intervals and p: of "
            "the means, over sentences"
        )
    if first.attention is not None:
        lines.append(ATTENTION_NOTE)
    if any(gold_table(scores) is not None for scores in page.sets):
        lines.append(GOLD_NOTE)
    if any(has_thin_bucket(scores) for scores in page.sets):
        lines.append(THIN_NOTE)
    return [*page.notes, *lines]


def _signature_lines(page: Page) -> list[str]:
    return [f"{TITLES[name]}: {signature}" for name, signature in page.sets[0].signatures.items()]
