"""`seq2seq train`, and training from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from seq2seq_attn.cli import options as shared

if TYPE_CHECKING:
    from seq2seq_attn.config import Config
    from seq2seq_attn.run_dir import RunDir


class TrainOptions(shared.ConfigOptions, total=False):
    links: shared.Links
    from_run: Annotated[
        Path,
        shared.option(
            "RUN",
            "Fine-tune a run on --train: its model, tokenizers and vocabularies, with "
            "configs/finetune.yaml.",
            "--from",
        ),
    ]
    run_dir: Annotated[
        Path,
        shared.option("DIR", "Where the run is written.", default="runs/<date>-<config>-s<seed>"),
    ]
    resume: Annotated[
        bool,
        shared.flag(
            "--resume",
            "Continue --run-dir, or the newest unfinished run, exactly where it stopped.",
        ),
    ]
    overwrite: Annotated[bool, shared.flag("--overwrite", "Replace the run in --run-dir.")]
    device: shared.Device
    precision: shared.TrainingPrecision
    seed: Annotated[
        int, shared.option("N", "Seed of weights, batches and dropout.", default="1", min=0)
    ]
    dump_config: Annotated[
        bool, shared.flag("--dump-config", "Print all settings as YAML and exit.")
    ]


@shared.command()
def train(**options: Unpack[TrainOptions]) -> None:
    """Train a model; prepare the data first if needed.

    The default is the multi30k configuration; --train trains on your own text. Ctrl-C saves a state
    from which --resume continues, on a CPU bit for bit.
    """
    from seq2seq_attn.config import dump_config
    from seq2seq_attn.train.session import check_start

    resume, overwrite = options.get("resume", False), options.get("overwrite", False)
    config, run_dir = _load(options, options.get("run_dir"), options.get("from_run"), resume=resume)
    if options.get("dump_config"):
        check_start(config, run_dir, resume=resume, overwrite=overwrite)
        shared.echo(dump_config(config), nl=False)
        return
    from seq2seq_attn.train.loop import train

    run = train(config, run_dir=run_dir, resume=resume, overwrite=overwrite)
    if os.environ.get("RANK", "0") == "0":  # once for all processes of torchrun
        shared.echo(run.path)


def train_model(
    config: str | Path | Sequence[str | Path] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    from_run: str | Path | None = None,
    run_dir: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **text: Unpack[shared.OwnText],
) -> RunDir:
    """Train as `seq2seq train` does. Returns the run, with its directory as `path`.

    >>> train_model(["quickstart", "attention/bilinear"], {"seed": 2, "train.max_epochs": 3})  # doctest: +SKIP
    RunDir('runs/2026-11-22-quickstart+bilinear-s2')

    Args:
        config: packaged configuration or YAML file; later ones override earlier ones. None:
            `multi30k`, or, with `resume`, that of the run.
        settings: single settings by dotted key, as `--set` takes them; None is `null`.
        from_run: fine-tune this run on `train_text`, as `--from` does.
        run_dir: where the run is written; None: `runs/<date>-<configuration>-s<seed>`.
        resume: continue the run in `run_dir`, or the newest unfinished run, exactly where it was
            interrupted.
        overwrite: replace the run in `run_dir`.
        text: your own text, as the command takes it: `train_text`, `valid_text` and `test_text`,
            each a prefix, a table, or a list of source file and target file; `source_language` and
            `target_language`.

    Raises:
        UsageError, UserError: as the command.
    """
    from seq2seq_attn.cli.own_text import from_python
    from seq2seq_attn.train.loop import train

    options = from_python(config, settings, text)
    loaded, path = _load(options, run_dir, from_run, resume=resume)
    return train(loaded, run_dir=path, resume=resume, overwrite=overwrite)


def _load(
    options: shared.ConfigOptions,
    run_dir: str | Path | None,
    from_run: str | Path | None,
    *,
    resume: bool,
) -> tuple[Config, Path | None]:
    """The configuration of a run, and its directory if one is named or resumed."""
    from seq2seq_attn.cli.own_text import find_settings
    from seq2seq_attn.run_dir import RunDir
    from seq2seq_attn.train.session import load_settings, newest_unfinished

    path, start = (None if each is None else Path(each) for each in (run_dir, from_run))
    path = newest_unfinished() if resume and path is None else path
    resumed = path if resume and path is not None and RunDir(path).config_path.exists() else None
    config_names, overrides = find_settings(options, from_run=start, resumed=resumed)
    return load_settings(config_names, overrides, run_dir=path, resume=resume)
