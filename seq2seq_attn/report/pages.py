"""The report of an evaluation as text for the terminal, as Markdown, and as values for JSON.

An arm is a group of runs that differ only in their seed. A bucket holds the sentence pairs of a
range of lengths. A pooled set has the sentence pairs of all test sets with the same number of
concatenated pairs.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from urllib.parse import quote

from seq2seq_attn.evaluation.results import SetScores
from seq2seq_attn.evaluation.scoring import Scored
from seq2seq_attn.files import JsonObject
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.report.conclusion import clear_note, conclude
from seq2seq_attn.report.tables import (
    ATTENTION_NOTE,
    GOLD_NOTE,
    THIN_NOTE,
    Table,
    attention_table,
    comparison_table,
    escape_markdown,
    gold_table,
    length_table,
    score_table,
    seeds_table,
    summary_table,
)

FORMAT_VERSION = 1
"""version of the format of report.json"""
SEEDS_NOTE = (
    "arms: runs that differ in their seed alone; ± and sd: standard deviation over seeds; "
    "intervals of scores and of kept: of the means, over sentences"
)
_SUMMARY_WIDTH = 100


@dataclass(frozen=True)
class Report:
    """The scores of an evaluation, which methods show as pages and as values for JSON."""

    scored: Scored
    descriptions: Sequence[JsonObject]
    """the description of each system, from `System.describe`"""
    environment: JsonObject
    """versions, hardware, command (`runtime.environment.describe_environment`)"""

    @property
    def sets(self) -> list[SetScores]:
        """Return the scores of each test set, followed by those of the pooled sets."""
        return self.scored.sets

    @property
    def drawn_sets(self) -> list[SetScores]:
        """Return a set for each number of concatenated pairs, whose scores by length are drawn: the
        pooled set, or the only set with this number."""
        drawn = {}
        for scores in self.sets:  # pooled sets come last and replace the sets that they contain
            drawn[scores.num_concatenated] = scores
        return list(drawn.values())

    @cached_property
    def conclusion(self) -> str:
        """Return the conclusion of the evaluation in one or two sentences.

        If sets differ in their number of concatenated pairs, there are two conclusions: for the
        fewest and for the most concatenated pairs.
        """
        drawn = sorted(self.drawn_sets, key=lambda scores: scores.num_concatenated)
        has_attention = [description.get("has_attention") for description in self.descriptions]
        shortest = conclude(drawn[0], has_attention)
        if len(drawn) == 1:
            return shortest
        longest = conclude(drawn[-1], has_attention)
        return f"{drawn[0].name}: {shortest} {drawn[-1].name}: {longest}"

    @cached_property
    def data(self) -> JsonObject:
        """Return the whole report as plain values, for JSON.

        If an arm has several runs, `groups` lists the arms.
        """
        first = self.sets[0]
        values: JsonObject = {
            "format": FORMAT_VERSION,
            "conclusion": self.conclusion,
            "runs": list(self.descriptions),
        }
        if first.is_grouped:
            groups = []
            for arm in first.arms:
                runs = [first.runs[index] for index in arm.runs]
                groups.append({"name": arm.name, "runs": runs, "seeds": list(arm.seeds)})
            values["groups"] = groups
        return values | {
            "languages": asdict(self.scored.languages),
            "length": self.scored.length_values(),
            "resampling": asdict(self.scored.settings.resampling),
            "sets": [scores.to_dict() for scores in self.sets],
            "environment": self.environment,
        }

    @property
    def summary(self) -> str:
        """Return a short text for the terminal: the scores of each test set by the main metric,
        scores by length, the conclusion, and notes on how to read the scores."""
        drawn = self.drawn_sets
        first = drawn[0]
        metric = first.bucket_metrics[0]
        blocks = [summary_table(self.sets, metric).to_text()]
        cautions = list(self._cautions)
        for scores in drawn:
            title = f"{METRICS[metric].title} by length, {scores.name}"
            blocks.append(f"{title}\n{length_table(scores, metric).to_text()}")
            cautions += _count_lines(scores)
        blocks.append("\n".join(cautions))
        blocks.append(
            textwrap.fill(
                self.conclusion, _SUMMARY_WIDTH, break_long_words=False, break_on_hyphens=False
            )
        )
        notes = ["[low, high]: 95 % bootstrap interval"]
        if first.is_grouped:
            notes.append(SEEDS_NOTE)
        if len(first.arms) == 2:  # with more arms, the tables have no differences
            notes.append(
                f"difference, p, kept: against {first.arms[0].name}; kept = share of its score"
            )
        if len(first.arms) > 1:
            notes.append(clear_note(first))
        if any(scores.has_thin_bucket for scores in drawn):
            notes.append(THIN_NOTE)
        notes.append(f"{METRICS[metric].title}: {first.signatures[metric]}")
        blocks.append("\n".join(notes))
        return "\n\n".join(filter(None, blocks))

    @property
    def text(self) -> str:
        """Return the full text for the terminal: for each test set, all scores, the main metric by
        length, and the analysis of attention; then the conclusion, the settings and the
        signatures."""
        blocks = []
        for scores in self.sets:
            blocks.append(f"{scores.name}: {scores.num_pairs:,} sentence pairs")
            blocks.append(score_table(scores).to_text())
            for title, table in _tables(scores, in_detail=False):
                blocks.append(f"{title}\n{table.to_text()}")
            blocks.append("\n".join(_count_lines(scores)))
        blocks.append(self.conclusion)
        blocks.append("\n".join([*self.legend, *self._signatures]))
        return "\n\n".join(filter(None, blocks))

    def markdown(self, plots: Sequence[str] = ()) -> str:
        """Return the report in Markdown. Unlike `text`, the report has every metric by length, and
        the scores of each run.

        Args:
            plots: The paths of plots, relative to the page's folder.
        """
        blocks = ["# Evaluation", escape_markdown(self.conclusion)]
        for scores in self.sets:
            name = escape_markdown(scores.name)
            blocks.append(f"## {name}, {scores.num_pairs:,} sentence pairs")
            blocks.append(score_table(scores).to_markdown())
            for title, table in _tables(scores, in_detail=True):
                blocks += [f"### {escape_markdown(title)}", table.to_markdown()]
            blocks.append(_markdown_list(_count_lines(scores)))
        blocks += [f"![{escape_markdown(name)}]({quote(name)})" for name in plots]
        blocks.append("## How it was measured")
        blocks.append(_markdown_list([*self.legend, *self._signatures, self._provenance]))
        return "\n\n".join(filter(None, blocks)) + "\n"

    @property
    def _provenance(self) -> str:
        """Return the versions, the device and the time of the evaluation as text."""
        environment = self.environment
        version = environment["seq2seq_attn"]
        git = environment.get("git")
        if git:
            version += f", commit {git['commit'][:12]}"
            if git["is_dirty"]:
                version += " with changes"
        packages = environment["packages"]
        return (
            f"seq2seq-attn {version}, sacreBLEU {packages['sacrebleu']}, torch "
            f"{packages['torch']}, {environment['device_name']}, {environment['written_at']}"
        )

    @property
    def legend(self) -> list[str]:
        """Return lines that explain how to read the scores."""
        first = self.sets[0]
        resampling = self.scored.settings.resampling
        lines = []
        for description in self.descriptions:
            if description.get("search"):
                lines.append(f"{description['name']}: {_describe_search(description)}")
        lines += self._cautions
        lines.append(
            f"[low, high]: 95 % bootstrap interval, {resampling.num_resamples:,} resamples, seed "
            f"{resampling.seed}; length in {first.unit} of {self.scored.length_tokenizer}"
        )
        if len(first.arms) > 1:
            lines.append(
                f"difference, p, kept: against {first.arms[0].name}, by paired "
                "bootstrap; kept = share of its score; " + clear_note(first)
            )
        if first.is_grouped:
            lines.append(SEEDS_NOTE)
        if first.whole.attention:
            lines.append(ATTENTION_NOTE)
        if any(scores.has_gold for scores in self.sets):
            lines.append(GOLD_NOTE)
        if any(scores.has_thin_bucket for scores in self.sets):
            lines.append(THIN_NOTE)
        return lines

    @property
    def _cautions(self) -> list[str]:
        """Return reasons to read scores with care: problems of the test sets, systems that
        lower-case their output, and references that are too short for BLEU."""
        lines = []
        for scores in self.sets:
            lines += [f"{scores.name}: {warning}" for warning in scores.warnings]
        for description in self.descriptions:
            if description.get("lowercases"):
                lines.append(
                    f"{description['name']} lower-cases its output, so its cased scores are too "
                    "low; use the lower-cased ones"
                )
        short = []
        for scores in self.sets:
            if scores.whole.is_too_short:
                short.append(scores.name)
                continue
            for row in scores.buckets:
                if row.is_too_short:
                    short.append(f"{scores.name}, {scores.unit} {row.bucket.label}")
        if short:
            lines.append(
                f"fewer than a tenth of the references have four tokens in {'; '.join(short)}: "
                "BLEU counts little else there, and is 0 if none has; see --metric exact or "
                "--metric chrf"
            )
        return lines

    @property
    def _signatures(self) -> list[str]:
        """Return the signature of each metric, with a description of the metric."""
        lines = []
        for name, signature in self.sets[0].signatures.items():
            metric = METRICS[name]
            lines.append(f"{metric.title} ({metric.about}): {signature}")
        return lines


def _describe_search(description: JsonObject) -> str:
    """Return a system's search method, options of the search, and precision as text."""
    settings = []
    for name, value in description["search"].items():
        if name == "max_length_ratio":  # a number without meaning to readers; the JSON has it
            continue
        shown = f"{value:g}" if isinstance(value, float) else value
        settings.append(f"{name.replace('_', ' ')} {shown}")
    precision = description.get("precision", "fp32")
    if precision != "fp32":
        settings.append(precision)
    return ", ".join(settings)


def _markdown_list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {escape_markdown(line)}" for line in lines)


def _count_lines(scores: SetScores) -> list[str]:
    """Return lines that count translations cut by the length limit, and unknown source tokens."""
    lines: list[str] = []
    if not scores.counts:  # no model made the translations
        return lines
    for name, counts in zip(scores.runs, scores.counts, strict=True):
        where = f"{name}, {scores.name}"
        if counts.num_cut:
            lines.append(
                f"{where}: the length limit cut {counts.num_cut:,} of {scores.num_pairs:,} "
                "translations; --max-length-ratio raises it"
            )
        if counts.num_unknown_source_tokens:
            lines.append(
                f"{where}: {counts.num_unknown_source_tokens:,} source tokens are unknown to this "
                "run"
            )
    return lines


def _tables(scores: SetScores, *, in_detail: bool) -> list[tuple[str, Table]]:
    """Return the tables that follow the table of scores, each with a title: the spread over seeds
    if an arm has several runs, scores by length, and attention.

    Args:
        in_detail: Whether to show every metric by length, not only the main metric, and, if an arm
            has several runs, also the scores of each run.
    """
    metrics = scores.bucket_metrics if in_detail else scores.bucket_metrics[:1]
    means = ", means over seeds" if scores.is_grouped else ""
    tables = [("Seeds", seeds_table(scores))] if scores.is_grouped else []
    for metric in metrics:
        title = f"{METRICS[metric].title} by length"
        tables.append((title + means, length_table(scores, metric)))
        if len(scores.arms) > 2:
            against = f"{title}, against {scores.arms[0].name}{means}"
            tables.append((against, comparison_table(scores, metric)))
    if in_detail and scores.is_grouped:
        runs = scores.ungrouped()
        tables.append(("Each run by itself", score_table(runs)))
        for metric in metrics:
            title = f"{METRICS[metric].title} by length, each run by itself"
            tables.append((title, length_table(runs, metric)))
    if scores.whole.attention:
        tables.append(("Attention by length", attention_table(scores)))
    if scores.has_gold:
        tables.append(("Attention against gold links", gold_table(scores)))
    return tables
