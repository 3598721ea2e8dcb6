"""`seq2seq train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.cli import options
from seq2seq_attn.cli.options import as_settings, given

RunDirectory = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where the run is written.", show_default="runs/<date>-<config>-s<seed>"),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue --run-dir, or the newest unfinished run, exactly where it stopped.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the run in --run-dir.")]
Seed = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Seed of weights, batches and dropout.", show_default="1")
]
DumpConfig = Annotated[bool, typer.Option("--dump-config", help="Print all settings as YAML and exit.")]


@options.command()
def train(
    train_text: options.Train = None,
    valid_text: options.Valid = None,
    test_text: options.Test = None,
    links: options.Links = None,
    source_language: options.SourceLanguage = None,
    target_language: options.TargetLanguage = None,
    config: options.Config = None,
    settings: options.Set = None,
    run_dir: RunDirectory = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: options.TrainingDevice = None,
    precision: options.TrainingPrecision = None,
    seed: Seed = None,
    dump_config: DumpConfig = False,
) -> None:
    """Train a model; prepare the data first if needed.

    The default is the multi30k configuration; --train trains on your own text. Ctrl-C saves a state from which --resume
    continues, on a CPU bit for bit.
    """
    from seq2seq_attn.cli.own_text import OwnText, with_own_text
    from seq2seq_attn.config import dump_config as dump
    from seq2seq_attn.run_dir import RunDir
    from seq2seq_attn.train.start import check_start, load_settings

    named = {"train.device": device, "train.precision": precision, "seed": seed, "data.links": links}
    overrides = [*(settings or []), *as_settings(given(named))]
    text = OwnText(train_text, valid_text, test_text, source_language, target_language)
    is_resumed = resume and (run_dir is None or RunDir(run_dir).config_path.exists())
    config_names, overrides = with_own_text(text, config or [], overrides, is_resumed=is_resumed)
    resolved, run_dir = load_settings(config_names, overrides, run_dir=run_dir, resume=resume)
    if dump_config:
        check_start(resolved, run_dir, resume=resume, overwrite=overwrite)
        options.echo(dump(resolved), nl=False)
        return
    from seq2seq_attn.train.loop import train as run_training

    options.echo(run_training(resolved, run_dir=run_dir, resume=resume, overwrite=overwrite).path)
