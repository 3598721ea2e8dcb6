"""A report: scores in, the pages and the values for JSON out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from seq2seq_attn.evaluation.scores import SetScores
from seq2seq_attn.evaluation.scoring import Scored
from seq2seq_attn.evaluation.sets import GERMAN_TO_ENGLISH, Languages
from seq2seq_attn.metrics.bleu import IntArray
from seq2seq_attn.report.conclusion import conclude
from seq2seq_attn.report.exports import csv_text
from seq2seq_attn.report.notes import caution_lines, provenance, search_lines, too_short_lines
from seq2seq_attn.report.pages import Page, drawn_sets, latex_page, markdown_page, terminal_page, terminal_summary

FORMAT_VERSION = 1
"""of report.json"""


@dataclass(frozen=True)
class Report:
    """An evaluation: its scores, the same as values for JSON, and the pages to show."""

    sets: list[SetScores]
    data: dict[str, Any]
    page: Page
    lengths: list[IntArray]
    """the length of each sentence of each set, in the unit that buckets are cut by"""

    @property
    def summary(self) -> str:
        """For the terminal, in short: scores, scores by length, conclusion."""
        return terminal_summary(self.page)

    @property
    def text(self) -> str:
        """For the terminal, in full."""
        return terminal_page(self.page)

    @property
    def csv(self) -> str:
        """A row per score, for spreadsheets and statistics."""
        return csv_text(self.sets)

    @property
    def latex(self) -> str:
        """The tables, for papers."""
        return latex_page(self.page)

    def markdown(self, plots: Sequence[str] = ()) -> str:
        """For a file that lies beside the named plots."""
        return markdown_page(self.page, plots)


def build_report(
    scored: Scored,
    descriptions: Sequence[dict[str, Any]],
    environment: dict[str, Any],
    *,
    languages: Languages = GERMAN_TO_ENGLISH,
) -> Report:
    """The report of scores.

    Args:
        descriptions: of each system, as the values show it.
        environment: versions, hardware, command (`runtime.environment.describe_environment`).
    """
    page = _page(scored, descriptions, environment)
    first = scored.sets[0]
    data = {
        "format": FORMAT_VERSION,
        "conclusion": page.conclusion,
        "runs": list(descriptions),
        **({"groups": [arm.to_dict(first.runs) for arm in first.arms]} if first.is_grouped else {}),
        "languages": asdict(languages),
        "length": scored.length_values(),
        "resampling": asdict(scored.settings.resampling),
        "sets": [scores.to_dict() for scores in scored.sets],
        "environment": environment,
    }
    return Report(scored.sets, data, page, scored.lengths)


def _page(scored: Scored, descriptions: Sequence[dict[str, Any]], environment: dict[str, Any]) -> Page:
    unit = scored.settings.unit
    attentions = [str(description.get("attention", "")) for description in descriptions]
    return Page(
        sets=scored.sets,
        conclusion=_conclusion(drawn_sets(scored.sets), unit, attentions),
        unit=unit,
        length_tokenizer=scored.length_tokenizer,
        resampling=scored.settings.resampling,
        notes=[line for description in descriptions for line in search_lines(description)],
        cautions=[
            *(line for description in descriptions for line in caution_lines(description)),
            *too_short_lines(scored.sets, unit),
        ],
        provenance=provenance(environment),
    )


def _conclusion(drawn: Sequence[SetScores], unit: str, attentions: Sequence[str]) -> str:
    """The conclusions for the fewest and for the most concatenated pairs, if there are several numbers of them."""
    if len(drawn) == 1:
        return conclude(drawn[0], unit=unit, attentions=attentions)
    ordered = sorted(drawn, key=lambda scores: scores.num_concatenated)
    ends = (ordered[0], ordered[-1])
    return " ".join(f"{scores.name}: {conclude(scores, unit=unit, attentions=attentions)}" for scores in ends)
