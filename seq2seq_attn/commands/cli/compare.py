"""`seq2seq compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.commands.cli.options import (
    Config,
    Debug,
    Device,
    Import,
    Set,
    SourceLanguage,
    TargetLanguage,
    Test,
    Train,
    TrainingPrecision,
    Valid,
    as_settings,
    echo,
    given,
)

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


def compare(
    train_text: Train = None,
    valid_text: Valid = None,
    test_text: Test = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    config: Config = None,
    vary: Vary = None,
    seeds: Seeds = "1-3",
    settings: Set = None,
    output: Output = None,
    at_once: AtOnce = None,
    device: Device = None,
    precision: TrainingPrecision = None,
    imports: Import = None,
    debug: Debug = False,
) -> None:
    """Train variants with several seeds and compare their scores.

    Prints the path of the report. Finished runs are kept and interrupted runs resumed: after Ctrl-C, the same
    command continues.
    """
    from seq2seq_attn.commands.compare import compare as run_comparison
    from seq2seq_attn.commands.own_text import OwnText, with_own_text

    named = as_settings(given({"train.device": device, "train.precision": precision}))
    text = OwnText(train_text or (), valid_text or (), test_text or (), source_language, target_language)
    config_names, overrides = with_own_text(text, config or [], [*(settings or []), *named])
    report = run_comparison(
        config_names,
        vary=vary or [],
        seeds=seeds,
        settings=overrides,
        imports=imports or [],
        output=output,
        at_once=at_once,
    )
    echo(report)
