"""`seq2seq evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.commands.cli.options import (
    BatchSize,
    BeamSize,
    ByLength,
    Debug,
    Device,
    Import,
    LengthOf,
    LengthPenalty,
    MaxLengthRatio,
    Metrics,
    Plots,
    Side,
    Stitch,
    TranslationPrecision,
    is_terminal,
)


def evaluate(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="Run directories.", show_default="the run that finished last"),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Part of the runs' corpus; may be repeated.", show_default="its test sets"),
    ] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead of a split: sentences to translate, one per line.")
    ] = None,
    reference: Annotated[Path | None, typer.Option(metavar="FILE", help="The translations of --source.")] = None,
    stitch: Stitch = None,
    metric: Metrics = None,
    by_length: ByLength = None,
    length_of: LengthOf = Side.SOURCE,
    merge_below: Annotated[
        int, typer.Option(min=0, metavar="N", help="Join a bucket of fewer pairs to its smaller neighbor.")
    ] = 0,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    max_length_ratio: MaxLengthRatio = None,
    batch_size: BatchSize = None,
    reuse_hypotheses: Annotated[
        bool,
        typer.Option("--reuse-hypotheses", help="Take saved translations if the same model made them in the same way."),
    ] = False,
    ensemble: Annotated[
        bool, typer.Option("--ensemble", help="Also score all runs as one model: the mean of their probabilities.")
    ] = False,
    no_attention: Annotated[
        bool, typer.Option("--no-attention", help="Leave out entropy, coverage and alignment of the attention.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Show every measure and test set, and what the attention does.")
    ] = False,
    json: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where all numbers go; translations then lie beside it.", show_default="in the run"
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md|.html",
            help="Where the page to read goes; .html holds sentences and attention too.",
            show_default="in the run",
        ),
    ] = None,
    plots: Annotated[
        Plots | None,
        typer.Option(
            metavar="|".join(Plots),
            help="Plots in this format, beside the report.",
            show_default="png in the run; none elsewhere",
        ),
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Where a table with one row per score goes.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Where tables for papers go (booktabs).")] = None,
    device: Device = None,
    precision: TranslationPrecision = None,
    imports: Import = None,
    debug: Debug = False,
) -> None:
    """Translate test sets and score runs, side by side.

    Prints BLEU and BLEU by sentence length with intervals, and what they show; the report has every measure with its
    signature, and what the attention does. Several runs are compared with the first; those that differ in their seed
    alone count as one. Where a file is named, no run is written to.
    """
    from seq2seq_attn.commands.evaluate import EvaluationRequest
    from seq2seq_attn.commands.evaluate import evaluate as run_evaluation
    from seq2seq_attn.evaluation.runs import Decoding
    from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES, MeasureName
    from seq2seq_attn.model.variants import import_variants
    from seq2seq_attn.report.build import Settings
    from seq2seq_attn.report.files import ReportFiles
    from seq2seq_attn.run_dir import newest_run
    from seq2seq_attn.search.options import SearchOptions

    import_variants(imports or [])
    chosen: list[MeasureName] = [one.value for one in dict.fromkeys(metric or [])]
    measures = tuple(chosen) or DEFAULT_MEASURES
    search = SearchOptions.given(
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_length_ratio=max_length_ratio,
        batch_size=batch_size,
    )
    found = run_evaluation(
        EvaluationRequest(
            runs or [newest_run().path],
            splits=split or [],
            source=source,
            reference=reference,
            stitch=stitch or [],
            settings=Settings(by_length, length_of.value, measures, merge_below=merge_below),
            decoding=Decoding(
                search,
                device or "auto",
                precision or "auto",
                reuse_hypotheses,
                is_terminal(),
            ),
            files=ReportFiles(json, report, plots.value if plots else None, csv, latex),
            ensemble=ensemble,
            judge_attention=not no_attention,
        )
    )
    if full:
        typer.echo(found.text)
    else:
        typer.echo(f"{found.summary}\n--full shows every measure, every test set and what the attention does")
