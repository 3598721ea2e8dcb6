"""`seq2seq compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Unpack

import typer

from seq2seq_attn.cli import options as shared
from seq2seq_attn.config import with_default


class CompareOptions(shared.ConfigOptions, total=False):
    """The options of the command."""

    vary: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE,...",
            help="A setting and its values, for example attention=additive,bilinear; may be repeated for combinations.",
        ),
    ]
    seeds: Annotated[str, typer.Option(metavar="N-M|N,...", help="Seeds of every variant.", show_default="1-3")]
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for runs and report.", show_default="runs/compare-<config>")
    ]
    at_once: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Runs trained in parallel.", show_default="one per core, one on a GPU"),
    ]
    device: shared.Device
    precision: shared.TrainingPrecision
    imports: shared.Import


@shared.command()
def compare(**options: Unpack[CompareOptions]) -> None:
    """Train variants with several seeds and compare their scores.

    Prints the path of the report. Finished runs are kept and interrupted runs resumed: after Ctrl-C, the same
    command continues.
    """
    from seq2seq_attn.cli.comparison import parse_seeds, plan_runs, train_and_compare
    from seq2seq_attn.cli.own_text import find_settings

    config_names, settings = find_settings(options)
    planned = plan_runs(
        with_default(config_names),
        options.get("vary", []),
        parse_seeds(options.get("seeds", "1-3")),
        settings=settings,
        imports=options.get("imports", []),
        output=options.get("output"),
    )
    shared.echo(train_and_compare(planned, options.get("at_once")))
