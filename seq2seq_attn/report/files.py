"""Write the files of a report: JSON, a page to read, plots and CSV.

An arm is a group of runs that differ only in their seed. A bucket holds the sentence pairs of a
range of lengths. The pooled set has the sentence pairs of all test sets. With
`evaluate --concatenate K`, a pair of a test set consists of `num_concatenated` = K pairs of the
corpus, so that scores on longer texts can be compared with scores on single sentences.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from os.path import relpath
from pathlib import Path

from seq2seq_attn.errors import UsageError
from seq2seq_attn.evaluation.results import ArmScore, SetScores
from seq2seq_attn.evaluation.test_sets import concatenated_name
from seq2seq_attn.files import JsonObject, check_outputs, write_json, write_text
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.report.pages import Report
from seq2seq_attn.report.plots import plot_by_length
from seq2seq_attn.translate.figure import PlotFormat


def plot_path(
    beside: Path, kind: str, image: PlotFormat = "png", *, num_concatenated: int = 1
) -> Path:
    """Return the path of a plot beside a report's file.

    The plot beside `report.valid.json` is, for example, `bleu-by-length.valid.png`. For test sets
    with 3 concatenated pairs, it is `bleu-by-length.valid.x3.png`.
    """
    suffix = f".{beside.stem}"
    if beside.stem.partition(".")[0] == "report":
        suffix = suffix.removeprefix(".report")
    name = concatenated_name(f"{kind}-by-length{suffix}", num_concatenated)
    return beside.with_name(f"{name}.{image}")


def check_report_files(files: Mapping[str, Path], inputs: Sequence[Path] = ()) -> None:
    """Check the files that a user names for a report.

    Args:
        files: The files by kind: `json`, `report` or `csv`.

    Raises:
        UsageError: The suffix of the page is not .md or .html, two files are the same, or a file is
            also an input.
        UserError: A file cannot be written.
    """
    page = files.get("report")
    if page is not None and page.suffix not in (".md", ".html"):
        raise UsageError(
            f"--report {str(page)!r}: name a file that ends in .md (Markdown) or .html (with "
            "attention)"
        )
    check_outputs({f"--{kind}": path for kind, path in files.items()}, inputs)


def write_report_files(
    report: Report,
    files: Mapping[str, Path],
    plots: PlotFormat | None,
    page: Callable[[], str],
    *,
    is_named: bool = True,
) -> list[Path]:
    """Write the files of a report, and return their paths.

    Args:
        files: The files by kind: `json`, `report` (a page to read, .md or .html) and `csv` (a
            row per score).
        plots: The format of plots, which are written beside the first file. None writes no plots.
        page: A function that returns the HTML page.
        is_named: Whether the user named the files. Otherwise, the files are in a run directory,
            which may come from a stranger, so a symbolic link is replaced instead of followed.
    """
    pictures = []
    if plots and files:
        pictures = _write_plots(report, next(iter(files.values())), plots)
    for kind, path in files.items():
        if kind == "json":
            write_json(path, report.data, is_named=is_named)
            continue
        if kind == "csv":
            text = csv_text(report.sets)
        elif path.suffix == ".html":
            text = page()
        else:
            text = report.markdown([relpath(picture, path.parent) for picture in pictures])
        write_text(path, text, is_named=is_named)
    return [*files.values(), *pictures]


def _write_plots(report: Report, beside: Path, image: PlotFormat) -> list[Path]:
    """Write plots of scores by length, and return their paths.

    There is a plot for each number of concatenated pairs. If several test sets have this number,
    the plot shows the pooled set instead of them. If there are several arms, a second plot shows
    each arm's score divided by the first arm's score.
    """
    written = []
    for scores in report.drawn_sets:
        metric = scores.bucket_metrics[0]
        kinds = [metric]
        # The plot of quotients is named retention: the share of the score that an arm keeps. An
        # error rate is not a score to keep.
        if len(scores.arms) > 1 and not METRICS[metric].is_lower_better:
            kinds.append("retention")
        for kind in kinds:
            path = plot_path(beside, kind, image, num_concatenated=scores.num_concatenated)
            plot_by_length(path, scores, metric, as_retention=kind == "retention")
            written.append(path)
    return written


def csv_text(sets: Sequence[SetScores]) -> str:
    """Return the scores as CSV: a row for each test set, bucket, metric, and run or arm.

    The whole set has rows too. Arms have rows if an arm has several runs. A cell is empty if its
    value does not exist, for example the p-value of the first arm.
    """
    rows = []
    for scores in sets:
        arm_names = [arm.name for arm in scores.arms]
        for part in (scores.whole, *scores.buckets):
            cells = _bucket_cells(scores, part.bucket)
            rows += _score_rows(cells, "run", scores.runs, part.run_scores)
            # If every arm has one run, rows of arms would repeat the rows of runs.
            if scores.is_grouped:
                rows += _score_rows(cells, "arm", arm_names, part.scores)
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _bucket_cells(scores: SetScores, bucket: Bucket) -> JsonObject:
    """Return the cells that all rows of a bucket, or of the whole set, have in common."""
    is_whole = bucket is scores.whole.bucket
    return {
        "test_set": _without_formula(scores.name),
        "num_concatenated": scores.num_concatenated,
        "length": bucket.label,
        # The whole set has no lower end, although `lower` of its bucket is 0.
        "lower": None if is_whole else bucket.lower,
        "upper": bucket.upper,
        "num_pairs": len(bucket),
        "is_thin": bucket.is_thin,
    }


def _score_rows(
    cells: JsonObject, kind: str, names: Sequence[str], by_metric: Mapping[str, list[ArmScore]]
) -> list[JsonObject]:
    """Return a row for each metric and each run or arm. Each row begins with `cells`."""
    rows = []
    for metric, scores in by_metric.items():
        for name, score in zip(names, scores, strict=True):
            labels = {"measure": metric, "kind": kind, "name": _without_formula(name)}
            rows.append({**cells, **labels, **_score_cells(score)})
    return rows


def _without_formula(text: str) -> str:
    """Put a quote before text that a spreadsheet would take for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _score_cells(score: ArmScore) -> dict[str, float | None]:
    """Return the values of a score by column; None for values that do not exist."""
    cells = {
        "num_seeds": len(score.values),
        "score": score.interval.value,
        "sd": score.deviation,
        "low": score.interval.low,
        "high": score.interval.high,
    }
    for name in ("difference", "p_value", "p_corrected"):
        cells[name] = getattr(score.bootstrap, name, None)
    for column, name in (("kept", "value"), ("kept_low", "low"), ("kept_high", "high")):
        cells[column] = getattr(score.retention, name, None)
    return cells
