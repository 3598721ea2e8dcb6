"""`seq2seq compare`."""

from pathlib import Path
from typing import Annotated, Unpack

from seq2seq_attn.cli import options as shared
from seq2seq_attn.config import with_default


class CompareOptions(shared.ConfigOptions, total=False):
    vary: Annotated[
        list[str],
        shared.option(
            "KEY=VALUE,...",
            "A setting and its values, for example attention=additive,bilinear; may be repeated "
            "for combinations.",
        ),
    ]
    seeds: Annotated[str, shared.option("N-M|N,...", "Seeds of every variant.", default="1-3")]
    output: Annotated[
        Path, shared.option("DIR", "Folder for runs and report.", default="runs/compare-<config>")
    ]
    at_once: Annotated[
        int,
        shared.option(
            "N", "Runs trained in parallel.", default="one per core, one on a GPU", min=1
        ),
    ]
    device: shared.Device
    precision: shared.TrainingPrecision
    imports: shared.Import


@shared.command()
def compare(**options: Unpack[CompareOptions]) -> None:
    """Train variants with several seeds and compare their scores.

    Prints the path of the report. Finished runs are kept and interrupted runs resumed: after
    Ctrl-C, the same command continues.
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
