"""The files that an evaluation leaves: JSON, a page to read, plots, tables for spreadsheets and papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path

from seq2seq_attn.errors import UsageError
from seq2seq_attn.evaluation.scores import bucket_measures
from seq2seq_attn.evaluation.sets import EvaluationSet, concatenated_name
from seq2seq_attn.evaluation.translations import SystemTexts
from seq2seq_attn.files import check_distinct, check_writable, file_identity, link_target, write_json, write_text
from seq2seq_attn.metrics.bleu import LOWER_IS_BETTER
from seq2seq_attn.report.html import html_report
from seq2seq_attn.report.pages import Report
from seq2seq_attn.report.plots import plot_by_length, plot_retention
from seq2seq_attn.translate.figure import PlotFormat


def plot_path(beside: Path, kind: str, image: PlotFormat = "png", *, num_concatenated: int = 1) -> Path:
    """The plot beside a report: `report.valid.json` has `bleu-by-length.valid.png`."""
    stem = f".{beside.stem}"
    suffix = stem.removeprefix(".report") if f"{stem}.".startswith(".report.") else stem
    return beside.with_name(f"{concatenated_name(f'{kind}-by-length{suffix}', num_concatenated)}.{image}")


@dataclass(frozen=True)
class ReportFiles:
    """Where the parts of a report go; None: that part is not written."""

    json: Path | None = None
    page: Path | None = None
    """to read: `.md` is Markdown, `.html` holds sentences and attention too"""
    plots: PlotFormat | None = None
    """plots in this format, beside the first of the other files"""

    csv: Path | None = None
    """a row per score"""
    latex: Path | None = None
    """tables for papers"""
    is_in_run_dir: bool = False
    """whether they lie in a run directory, which may be a stranger's: a link there is replaced, not written through"""

    @property
    def is_named(self) -> bool:
        """Whether a file was named at all; otherwise the report goes to the run directory."""
        return any(self._paths)

    @property
    def is_html(self) -> bool:
        """Whether sentences and attention are wanted."""
        return self.page is not None and self.page.suffix == ".html"

    def check(self, inputs: Sequence[Path] = ()) -> None:
        """Check that every file can be written, before the evaluation starts.

        Args:
            inputs: files that are read, and must not be replaced.

        Raises:
            UsageError: a page that ends neither in .md nor in .html, two parts in one file, or a part in an input.
            UserError: a file that cannot be written.
        """
        if self.page is not None and self.page.suffix not in (".md", ".html"):
            raise UsageError(
                f"--report {str(self.page)!r}: name a file that ends in .md (Markdown) or .html (with attention)"
            )
        outputs = {option: (file_identity(path), str(path)) for option, path in self._named.items()}
        check_distinct(outputs, {file_identity(path) for path in inputs})
        for path in self._paths:
            check_writable(path if self.is_in_run_dir else link_target(path))

    def write(self, report: Report, sets: Sequence[EvaluationSet], systems: Sequence[SystemTexts]) -> list[Path]:
        """Write everything; `sets` and `systems` are what the HTML page shows. Returns what was written."""
        plots, is_named = self._write_plots(report), not self.is_in_run_dir
        if self.json is not None:
            write_json(self.json, report.data, is_named=is_named)
        if self.page is not None:
            links = [relpath(plot, self.page.parent) for plot in plots]
            page = html_report(report, sets, systems) if self.is_html else report.markdown(links)
            write_text(self.page, page, is_named=is_named)
        if self.csv is not None:
            write_text(self.csv, report.csv, is_named=is_named)
        if self.latex is not None:
            write_text(self.latex, report.latex, is_named=is_named)
        return [*self._paths, *plots]

    @property
    def _named(self) -> dict[str, Path]:
        """The files by the options that name them."""
        named = {"--json": self.json, "--report": self.page, "--csv": self.csv, "--latex": self.latex}
        return {option: path for option, path in named.items() if path is not None}

    @property
    def _paths(self) -> list[Path]:
        return list(self._named.values())

    def _write_plots(self, report: Report) -> list[Path]:
        """A plot of the scores by length, and of several runs one of the share that each keeps; of several test sets
        the pooled one is drawn."""
        if self.plots is None or not self._paths:
            return []
        written = []
        for drawn in report.drawn_sets:
            measure = bucket_measures(list(drawn.scores))[0]
            plots: dict[str, Callable[..., None]] = {measure: plot_by_length}
            if len(drawn.arms) > 1 and measure not in LOWER_IS_BETTER:
                plots["retention"] = plot_retention
            for kind, plot in plots.items():
                written.append(plot_path(self._paths[0], kind, self.plots, num_concatenated=drawn.num_concatenated))
                plot(written[-1], drawn, measure=measure, unit=report.unit)
        return written
