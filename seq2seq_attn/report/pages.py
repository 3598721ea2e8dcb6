"""A whole evaluation as one page: text for the terminal, in short and in full, and Markdown for the file."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from seq2seq_attn.evaluation.scores import Resampling, SetScores, bucket_measures
from seq2seq_attn.metrics.bleu import TITLES
from seq2seq_attn.metrics.names import MeasureName
from seq2seq_attn.report.attention_tables import ATTENTION_NOTE, GOLD_NOTE, attention_table, gold_table
from seq2seq_attn.report.conclusion import clear_note
from seq2seq_attn.report.exports import latex_text
from seq2seq_attn.report.tables import (
    THIN_NOTE,
    Table,
    comparison_table,
    escape_markdown,
    has_thin_bucket,
    length_table,
    score_table,
    seeds_table,
    summary_table,
)

SEEDS_NOTE = (
    "arms: runs that differ in their seed alone; ± and sd: standard deviation over seeds; intervals and p: of the "
    "means, over sentences"
)
_SUMMARY_WIDTH = 100


@dataclass(frozen=True)
class Page:
    """The contents of a page."""

    sets: Sequence[SetScores]
    conclusion: str
    unit: str
    """the unit of lengths: `source tokens`"""
    length_tokenizer: str
    resampling: Resampling
    notes: Sequence[str]
    """lines about the runs: how they translated"""
    cautions: Sequence[str]
    """lines about the runs: reasons to read their scores with care"""
    provenance: str
    """commit, versions, date"""


def drawn_sets(sets: Sequence[SetScores]) -> list[SetScores]:
    """The sets to show where there is room for one: for each `num_concatenated` the pooled set, or the only one."""
    return list({scores.num_concatenated: scores for scores in sets}.values())


def terminal_summary(page: Page) -> str:
    """The main measure of each test set, the same by length, the conclusion, and how to read them."""
    drawn = drawn_sets(page.sets)
    measure = _main_measure(drawn[0])
    blocks = [summary_table(page.sets, measure).to_text()]
    for scores in drawn:
        title = f"{TITLES[measure]} by length, {scores.name}"
        blocks.append(f"{title}\n{length_table(scores, measure, unit=page.unit).to_text()}")
    cautions = [*page.cautions, *(line for scores in drawn for line in _count_lines(scores))]
    if cautions:
        blocks.append("\n".join(cautions))
    blocks.append(textwrap.fill(page.conclusion, _SUMMARY_WIDTH, break_long_words=False, break_on_hyphens=False))
    notes = ["[low, high]: 95 % bootstrap interval"]
    arms = drawn[0].arms
    if drawn[0].is_grouped:
        notes.append(SEEDS_NOTE)
    if len(arms) == 2:
        notes.append(f"difference, p, kept: against {arms[0].name}; kept = share of its score")
    if len(arms) > 1:
        notes.append(clear_note(has_seeds=drawn[0].is_grouped))
    if any(has_thin_bucket(scores) for scores in drawn):
        notes.append(THIN_NOTE)
    blocks.append("\n".join([*notes, f"{TITLES[measure]}: {drawn[0].signatures[measure]}"]))
    return "\n\n".join(blocks)


def terminal_page(page: Page) -> str:
    """Scores and BLEU by length of each test set; the attention analysis; the conclusion; settings and signatures."""
    blocks = []
    for scores in page.sets:
        blocks += [f"{scores.name}: {scores.num_pairs:,} sentence pairs", score_table(scores).to_text()]
        tables = [*_score_tables(scores, page.unit, [_main_measure(scores)]), *_attention_tables(scores, page.unit)]
        blocks += [f"{title}\n{table.to_text()}" for title, table in tables]
        if lines := _count_lines(scores):
            blocks.append("\n".join(lines))
    blocks += [page.conclusion, "\n".join([*legend(page), *_signature_lines(page)])]
    return "\n\n".join(blocks)


def markdown_page(page: Page, plots: Sequence[str] = ()) -> str:
    """`terminal_page` as Markdown, with every measure by length, each run by itself, and plots (names of files beside
    the page)."""
    blocks = ["# Evaluation", escape_markdown(page.conclusion)]
    for scores in page.sets:
        blocks += [
            f"## {escape_markdown(scores.name)}, {scores.num_pairs:,} sentence pairs",
            score_table(scores).to_markdown(),
        ]
        for title, table in _detailed_tables(scores, page.unit):
            blocks += [f"### {escape_markdown(title)}", table.to_markdown()]
        if lines := _count_lines(scores):
            blocks.append(_markdown_list(lines))
    blocks += [f"![{escape_markdown(name)}]({quote(name)})" for name in plots]
    blocks += ["## How it was measured"]
    blocks.append(_markdown_list([*legend(page), *_signature_lines(page), page.provenance]))
    return "\n\n".join(blocks) + "\n"


def latex_page(page: Page) -> str:
    """The tables of `markdown_page`, for a paper."""
    tables = []
    for scores in page.sets:
        title = f"{scores.name}, {scores.num_pairs:,} sentence pairs"
        tables.append((title, score_table(scores)))
        tables += [(f"{scores.name}: {title}", table) for title, table in _detailed_tables(scores, page.unit)]
    return latex_text(tables)


def _detailed_tables(scores: SetScores, unit: str) -> list[tuple[str, Table]]:
    """All tables but `score_table`: of the arms, of each run by itself where arms have several, of attention."""
    measures = bucket_measures(list(scores.scores))
    tables = _score_tables(scores, unit, measures)
    if scores.is_grouped:
        runs = scores.ungrouped()
        tables += [("Each run by itself", score_table(runs))]
        tables += [
            (f"{TITLES[measure]} by length, each run by itself", length_table(runs, measure, unit=unit))
            for measure in measures
        ]
    return [*tables, *_attention_tables(scores, unit)]


def _markdown_list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {escape_markdown(line)}" for line in lines)


def _count_lines(scores: SetScores) -> list[str]:
    """Translations that the length limit cut, and unknown source tokens."""
    lines = []
    for name, counts in zip(scores.runs, scores.counts, strict=bool(scores.counts)):
        where = f"{name}, {scores.name}"
        if counts.num_cut:
            lines.append(
                f"{where}: the length limit cut {counts.num_cut:,} of {scores.num_pairs:,} translations; "
                "--max-length-ratio raises it"
            )
        if counts.num_unknown:
            lines.append(f"{where}: {counts.num_unknown:,} source tokens are unknown to this run")
    return lines


def _main_measure(scores: SetScores) -> MeasureName:
    """The measure by length where there is room for one."""
    return bucket_measures(list(scores.scores))[0]


def _score_tables(scores: SetScores, unit: str, measures: Sequence[MeasureName]) -> list[tuple[str, Table]]:
    """Each measure by length, and how far seeds differ where an arm has several."""
    of_means = ", means over seeds" if scores.is_grouped else ""
    tables = [("Seeds", seeds_table(scores))] if scores.is_grouped else []
    for measure in measures:
        title = f"{TITLES[measure]} by length"
        tables.append((title + of_means, length_table(scores, measure, unit=unit)))
        if len(scores.arms) > 2:
            against = f"{title}, against {scores.arms[0].name}{of_means}"
            tables.append((against, comparison_table(scores, measure, unit=unit)))
    return tables


def _attention_tables(scores: SetScores, unit: str) -> list[tuple[str, Table]]:
    tables = []
    if scores.attention is not None:
        tables.append(("Attention by length", attention_table(scores, unit=unit)))
        if (of_gold := gold_table(scores)) is not None:
            tables.append(("Attention against gold links", of_gold))
    return tables


def legend(page: Page) -> list[str]:
    """How to read the scores, one or two sentences per line."""
    resampling = page.resampling
    lines = [
        f"[low, high]: 95 % bootstrap interval, {resampling.num_resamples:,} resamples, seed {resampling.seed}; "
        f"length in {page.unit} of {page.length_tokenizer}"
    ]
    first = page.sets[0]
    if len(first.arms) > 1:
        lines.append(
            f"difference, p, kept: against {first.arms[0].name}, by sacreBLEU's paired bootstrap (the JSON has "
            f"approximate randomization too, run by run); kept = share of its score; "
            + clear_note(has_seeds=first.is_grouped)
        )
    if first.is_grouped:
        lines.append(SEEDS_NOTE)
    if first.attention is not None:
        lines.append(ATTENTION_NOTE)
    if any(gold_table(scores) is not None for scores in page.sets):
        lines.append(GOLD_NOTE)
    if any(has_thin_bucket(scores) for scores in page.sets):
        lines.append(THIN_NOTE)
    return [*page.notes, *page.cautions, *lines]


def _signature_lines(page: Page) -> list[str]:
    return [f"{TITLES[name]}: {signature}" for name, signature in page.sets[0].signatures.items()]
