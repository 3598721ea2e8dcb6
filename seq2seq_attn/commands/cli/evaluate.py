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
        Path | None, typer.Option(metavar="FILE", help="Instead of a split: sentences to translate, one a line.")
    ] = None,
    reference: Annotated[Path | None, typer.Option(metavar="FILE", help="The translations of --source.")] = None,
    stitch: Stitch = None,
    metric: Metrics = None,
    by_length: ByLength = None,
    length_of: LengthOf = Side.SOURCE,
    merge_below: Annotated[
        int, typer.Option(min=0, metavar="N", help="Join a bucket of fewer pairs to its smaller neighbour.")
    ] = 0,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    max_length_ratio: MaxLengthRatio = None,
    batch_size: BatchSize = None,
    reuse_hypotheses: Annotated[
        bool,
        typer.Option("--reuse-hypotheses", help="Take saved translations if the same model made them in the same way."),
    ] = False,
    no_attention: Annotated[
        bool, typer.Option("--no-attention", help="Leave out entropy, coverage and alignment of the attention.")
    ] = False,
    json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the report goes.", show_default="report[.FILE].json of the run"),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md|.html",
            help="Where the page to read goes; .html holds sentences and attention too.",
            show_default="beside the JSON",
        ),
    ] = None,
    device: Device = None,
    precision: TranslationPrecision = None,
    imports: Import = None,
    debug: Debug = False,
) -> None:
    """Translate test sets and score runs, side by side.

    BLEU and chrF with their signatures, and BLEU by sentence length with intervals; several runs are compared with the
    first, and those that differ in their seed alone as one. What attention does is judged too, on gold links if any.
    """
    from seq2seq_attn.commands.evaluate import evaluate as run_evaluation
    from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES
    from seq2seq_attn.model.variants import import_variants
    from seq2seq_attn.run_dir import newest_run

    import_variants(imports or [])
    found = run_evaluation(
        runs or [newest_run().path],
        splits=split or [],
        source=source,
        reference=reference,
        stitch=stitch or [],
        measures=[one.value for one in dict.fromkeys(metric)] if metric else DEFAULT_MEASURES,
        by_length=by_length,
        length_of=length_of.value,
        merge_below=merge_below,
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_length_ratio=max_length_ratio,
        batch_size=batch_size,
        json_path=json,
        report_path=report,
        device=device or "auto",
        precision=precision or "auto",
        reuse_hypotheses=reuse_hypotheses,
        judge_attention=not no_attention,
        show_progress=is_terminal(),
    )
    typer.echo(found.text)
