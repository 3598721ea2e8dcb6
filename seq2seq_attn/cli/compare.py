"""`seq2seq compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.cli import options
from seq2seq_attn.cli.options import as_settings, given
from seq2seq_attn.config import with_default

Vary = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE,...",
        help="A setting and its values, for example attention=additive,bilinear; may be repeated for combinations.",
    ),
]
Seeds = Annotated[str, typer.Option(metavar="N-M|N,...", help="Seeds of every variant.")]
Output = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder for runs and report.", show_default="runs/compare-<config>")
]
AtOnce = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Runs trained in parallel.", show_default="one per core, one on a GPU"),
]


@options.command()
def compare(
    train_text: options.Train = None,
    valid_text: options.Valid = None,
    test_text: options.Test = None,
    source_language: options.SourceLanguage = None,
    target_language: options.TargetLanguage = None,
    config: options.Config = None,
    vary: Vary = None,
    seeds: Seeds = "1-3",
    settings: options.Set = None,
    output: Output = None,
    at_once: AtOnce = None,
    device: options.TrainingDevice = None,
    precision: options.TrainingPrecision = None,
    imports: options.Import = None,
) -> None:
    """Train variants with several seeds and compare their scores.

    Prints the path of the report. Finished runs are kept and interrupted runs resumed: after Ctrl-C, the same
    command continues.
    """
    from seq2seq_attn.cli.comparison import parse_seeds, plan_runs, train_and_compare
    from seq2seq_attn.cli.own_text import OwnText, with_own_text

    named = as_settings(given({"train.device": device, "train.precision": precision}))
    text = OwnText(train_text, valid_text, test_text, source_language, target_language)
    config_names, overrides = with_own_text(text, config or [], [*(settings or []), *named])
    planned = plan_runs(
        with_default(config_names),
        vary or [],
        parse_seeds(seeds),
        settings=overrides,
        imports=imports or [],
        output=output,
    )
    options.echo(train_and_compare(planned, at_once))
