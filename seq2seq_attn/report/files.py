"""The files that an evaluation leaves: JSON, a page to read, plots, a CSV row per score, and tables
in LaTeX."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any

from seq2seq_attn.errors import UsageError
from seq2seq_attn.evaluation.results import BucketScores, SetScores
from seq2seq_attn.evaluation.test_sets import concatenated_name
from seq2seq_attn.files import check_outputs, write_json, write_text
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.report.pages import Report
from seq2seq_attn.report.plots import plot_by_length
from seq2seq_attn.report.tables import Table, length_table, score_table
from seq2seq_attn.text.normalize import is_latin, normalize
from seq2seq_attn.translate.figure import PlotFormat

COLUMNS = (
    *(
        "test_set",
        "num_concatenated",
        "length",
        "lower",
        "upper",
        "num_pairs",
        "is_thin",
        "measure",
    ),
    *("kind", "name", "num_seeds", "score", "sd", "low", "high"),
    *("difference", "p_value", "kept", "kept_low", "kept_high"),
)

_LATEX = {
    **{char: f"\\{char}" for char in "{}$&#%_"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "±": r"$\pm$",
}


def plot_path(
    beside: Path, kind: str, image: PlotFormat = "png", *, num_concatenated: int = 1
) -> Path:
    """The plot beside a report: `report.valid.json` has `bleu-by-length.valid.png`."""
    stem = f".{beside.stem}"
    suffix = stem.removeprefix(".report") if f"{stem}.".startswith(".report.") else stem
    return beside.with_name(
        f"{concatenated_name(f'{kind}-by-length{suffix}', num_concatenated)}.{image}"
    )


def check_report_files(files: Mapping[str, Path], inputs: Sequence[Path] = ()) -> None:
    """`check_outputs` for the files that a user names for a report, as for `write_report_files`.
    Raises UsageError also for a page that ends neither in .md nor in .html."""
    page = files.get("report")
    if page is not None and page.suffix not in (".md", ".html"):
        raise UsageError(
            f"--report {str(page)!r}: name a file that ends in .md (Markdown) or .html (with "
            "attention)"
        )
    check_outputs({f"--{part}": path for part, path in files.items()}, inputs)


def write_report_files(
    report: Report,
    files: Mapping[str, Path],
    plots: PlotFormat | None,
    page: Callable[[], str],
    *,
    is_named: bool = True,
) -> list[Path]:
    """Write the parts of a report. Returns what was written.

    Args:
        files: by part: `json`, `report` (a page to read, .md or .html), `csv` (a row per score),
            `latex` (tables for papers).
        plots: plots in this format, beside the first of the files.
        page: makes the HTML page.
        is_named: whether the user named the files; otherwise they lie in a run directory, which may
            be a stranger's: a link there is replaced, not written through.
    """
    written = _write_plots(report, next(iter(files.values())), plots) if plots and files else []
    for part, path in files.items():
        if part == "json":
            write_json(path, report.data, is_named=is_named)
            continue
        if part == "report":
            text = (
                page()
                if path.suffix == ".html"
                else report.markdown([relpath(p, path.parent) for p in written])
            )
        else:
            text = csv_text(report.sets) if part == "csv" else latex_text(report)
        write_text(path, text, is_named=is_named)
    return [*files.values(), *written]


def _write_plots(report: Report, beside: Path, image: PlotFormat) -> list[Path]:
    """A plot of the scores by length, and of several runs one of the share that each keeps; of
    several test sets the pooled one is drawn."""
    written = []
    for scores in report.drawn_sets:
        metric = scores.bucket_metrics[0]
        kinds = [metric]
        if len(scores.arms) > 1 and not METRICS[metric].is_lower_better:
            kinds.append("retention")
        for kind in kinds:
            written.append(plot_path(beside, kind, image, num_concatenated=scores.num_concatenated))
            plot_by_length(
                written[-1], scores, metric=metric, unit=report.unit, as_share=kind == "retention"
            )
    return written


def csv_text(sets: Sequence[SetScores]) -> str:
    """A row for each test set, length bucket (and all lengths), metric, and run or arm; empty cells
    are not known."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for scores in sets:
        about = {"test_set": scores.name, "num_concatenated": scores.num_concatenated}
        for part in (scores.whole, *scores.buckets):
            bounds = part.bucket.to_dict()
            where = {"length": bounds.pop("label"), **bounds}
            if part is scores.whole:
                where["lower"] = None
            for values in _score_rows(scores, part):
                # a spreadsheet would take text that begins like this for a formula
                cells = (about | where | values).items()
                writer.writerow(
                    {
                        key: f"'{c}" if isinstance(c, str) and c[:1] in ("=", "+", "-", "@") else c
                        for key, c in cells
                    }
                )
    return out.getvalue()


def _score_rows(scores: SetScores, part: BucketScores) -> Iterator[dict[str, Any]]:
    """The scores of the runs, then those of the arms where these have several runs."""
    arm_names = [arm.name for arm in scores.arms]
    kinds = [
        ("run", scores.runs, part.run_scores),
        *([("arm", arm_names, part.scores)] if scores.is_grouped else []),
    ]
    for kind, names, by_metric in kinds:
        for metric, metric_scores in by_metric.items():
            for name, score in zip(names, metric_scores, strict=True):
                interval, test, kept = score.interval, score.bootstrap, score.retention
                values = {"num_seeds": len(score.values), "sd": score.deviation}
                values |= {"score": interval.value, "low": interval.low, "high": interval.high}
                if test is not None:
                    values |= {"difference": test.difference, "p_value": test.p_value}
                if kept is not None:
                    values |= {"kept": kept.value, "kept_low": kept.low, "kept_high": kept.high}
                yield {"measure": metric, "kind": kind, "name": name, **values}


def latex_text(report: Report) -> str:
    r"""A file to `\input`, in UTF-8, in booktabs' style: the scores of each set, and by length
    where there is room for one set."""
    signatures = report.sets[0].signatures
    metric = report.sets[0].bucket_metrics[0]
    notes = "; ".join(
        f"{METRICS[name].title} {signature}" for name, signature in signatures.items()
    )
    blocks = ["% needs \\usepackage{booktabs}"]
    for scores in report.sets:
        caption = f"{scores.name}, {scores.num_pairs:,} sentence pairs. {notes}."
        blocks.append(_latex_table(f"scores-{scores.name}", caption, score_table(scores)))
    for scores in report.drawn_sets:
        caption = f"{METRICS[metric].title} by length, {scores.name}. {signatures[metric]}."
        table = length_table(scores, metric, unit=report.unit)
        blocks.append(_latex_table(f"lengths-{scores.name}", caption, table))
    return "\n".join(blocks)


def escape_latex(text: str) -> str:
    """Text that stays text in LaTeX; a character that its standard fonts lack becomes its number,
    U+65E5."""
    escaped = []
    for char in normalize(text):
        if char in _LATEX:
            escaped.append(_LATEX[char])
        elif char.isascii():
            escaped.append(char if char.isprintable() else " ")
        else:
            escaped.append(char if is_latin(char) and char < "\u0180" else f"U+{ord(char):04X}")
    return "".join(escaped)


def _latex_table(label: str, caption: str, table: Table) -> str:
    # The hyphens of numbers become minus signs.
    header, *rows = (
        [
            re.sub(r"(?<![\w.])-(?=\d)", "$-$", "--" if cell == "-" else escape_latex(cell))
            for cell in line
        ]
        for line in (table.header, *table.rows)
    )
    # A row that begins with a bracket would be read as an option of the row before.
    lines = [" & ".join([f"{{{row[0]}}}", *row[1:]]) + r" \\" for row in rows]
    columns = "l" + "r" * (len(header) - 1)
    return "\n".join(
        [
            r"\begin{table}[htbp]",
            r"\centering",
            rf"\caption{{{escape_latex(caption)}}}",
            rf"\label{{tab:{re.sub(r'[^a-z0-9]+', '-', label.lower())}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(header) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )
