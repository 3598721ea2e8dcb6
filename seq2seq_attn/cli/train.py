"""`seq2seq prepare` and `seq2seq train`."""

import os
from pathlib import Path
from typing import Annotated, Unpack

import typer

from seq2seq_attn.cli import options as shared
from seq2seq_attn.config import dump_config


class PrepareOptions(shared.ConfigOptions, total=False):
    corpus: Annotated[
        str,
        typer.Argument(metavar="multi30k|captions", help="A corpus by name.", show_default=False),
    ]
    links: shared.Links
    data_dir: Annotated[
        Path,
        shared.option(
            "DIR", "Folder for data; to train from it, set data.data_dir.", default="data"
        ),
    ]
    source_dir: Annotated[
        Path, shared.option("DIR", "Folder with the corpus's files, instead of downloading them.")
    ]


@shared.command()
def prepare(**options: Unpack[PrepareOptions]) -> None:
    """Read, check and tokenize a corpus; print an audit.

    The default corpus is multi30k. A corpus is reused if the same text was prepared with the same
    settings before.
    """
    from seq2seq_attn.api import train as train_api
    from seq2seq_attn.data.audit import audit_report

    arguments = shared.python_arguments(options)
    shared.echo(audit_report(train_api.prepare(**arguments)))


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
        shared.option(
            "DIR",
            "Where the run is written.",
            "--run-dir",
            "--run",
            default="runs/<date>-<config>-s<seed>",
        ),
    ]
    resume: Annotated[
        bool,
        shared.flag(
            "--resume",
            "Continue --run-dir, or the newest unfinished run, from its last saved state.",
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
    from which --resume continues. On a CPU, the resumed run is the same bit for bit.
    """
    from seq2seq_attn.api.train import find_run, train_model
    from seq2seq_attn.train.session import check_start

    arguments = shared.python_arguments(options)
    if arguments.pop("dump_config", False):
        # `find_run` needs `resume` to find the configuration, but has no argument `overwrite`.
        overwrite = arguments.pop("overwrite", False)
        config, run_dir = find_run(**arguments)
        check_start(config, run_dir, resume=options.get("resume", False), overwrite=overwrite)
        shared.echo(dump_config(config), nl=False)
        return
    run = train_model(**arguments)
    if os.environ.get("RANK", "0") == "0":  # once for all processes of torchrun
        shared.echo(run.path)
