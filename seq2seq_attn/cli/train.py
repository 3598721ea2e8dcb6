"""`seq2seq train`, and training from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2seq_attn.cli import options
from seq2seq_attn.cli.options import as_settings, given

if TYPE_CHECKING:
    from seq2seq_attn.run_dir import RunDir

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
    from seq2seq_attn.train.session import check_start, load_settings

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


def train_model(
    config: str | Path | Sequence[str | Path] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    run_dir: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> RunDir:
    """Train as `seq2seq train` does. Returns the run, with its directory as `path`.

    >>> train_model(["quickstart", "attention/bilinear"], {"seed": 2, "train.max_epochs": 3})  # doctest: +SKIP
    RunDir('runs/2026-11-22-quickstart+bilinear-s2')

    Args:
        config: packaged configuration or YAML file; later ones override earlier ones. None: `multi30k`, or, with
            `resume`, that of the run.
        settings: single settings by dotted key, as `--set` takes them; None is `null`.
        run_dir: where the run is written; None: `runs/<date>-<configuration>-s<seed>`.
        resume: continue the run in `run_dir`, or the newest unfinished run, exactly where it was interrupted.
        overwrite: replace the run in `run_dir`.

    Raises:
        UsageError, UserError: as the command.
    """
    from seq2seq_attn.train.loop import train as run_training
    from seq2seq_attn.train.session import load_settings

    config_names = [str(one) for one in ([config] if isinstance(config, str | Path) else config or [])]
    where = None if run_dir is None else Path(run_dir)
    resolved, where = load_settings(config_names, as_settings(settings or {}), run_dir=where, resume=resume)
    return run_training(resolved, run_dir=where, resume=resume, overwrite=overwrite)
