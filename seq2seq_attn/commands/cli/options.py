"""Options shared by several commands."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from seq2seq_attn.errors import UsageError
from seq2seq_attn.limits import MAX_BEAM_SIZE, MAX_LENGTH_PENALTY, MAX_LENGTH_RATIO


class LengthSide(StrEnum):
    """The values of `--length-of`."""

    SOURCE = "source"
    REFERENCE = "reference"


class LengthUnit(StrEnum):
    """The values of `--length-in`."""

    TOKENS = "tokens"
    CHARACTERS = "characters"


ByLength = Annotated[
    str | None,
    typer.Option(
        metavar="EDGES",
        help="Lower edges of the length buckets, for example 9,12,15, or quantiles:N.",
        show_default="chosen for the corpus",
    ),
]
LengthOf = Annotated[LengthSide, typer.Option(metavar="source|reference", help="The side whose length is counted.")]
LengthIn = Annotated[LengthUnit, typer.Option(metavar="tokens|characters", help="The unit of length.")]


class Metric(StrEnum):
    """The values of `--metric`."""

    BLEU = "bleu"
    BLEU_LOWERCASE = "bleu_lowercase"
    BLEU_TUTORIAL = "bleu_tutorial"
    CHRF = "chrf"
    TER = "ter"
    EXACT = "exact"
    CER = "cer"
    WER = "wer"


class Plots(StrEnum):
    """The values of `--plots`."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"


Concatenate = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        metavar="K",
        help="Concatenate K sentence pairs into one; may be repeated, for one test set per K.",
        show_default="no",
    ),
]
Metrics = Annotated[
    list[Metric] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help=f"{', '.join(Metric)}; may be repeated.",
        show_default="bleu, bleu_lowercase, bleu_tutorial and chrf",
    ),
]


class Format(StrEnum):
    """The values of `--format`."""

    TEXT = "text"
    JSON = "json"


class UnkMode(StrEnum):
    """The values of `--unk`."""

    KEEP = "keep"
    COPY = "copy"
    FORBID = "forbid"


Config = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="NAME|FILE",
        help="Packaged configuration or YAML file; later ones override earlier ones.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, for example model.hidden_size=256; may be repeated."),
]
Train = Annotated[
    list[str] | None,
    typer.Option(
        "--train",
        metavar="FILE",
        help="Your own text: a .tsv, a .jsonl, or a prefix (corpus/train for corpus/train.en and corpus/train.fr); or "
        "the option twice: source file, target file. Without -c, its size decides the settings (configs/own*.yaml).",
    ),
]
Valid = Annotated[
    list[str] | None,
    typer.Option(
        "--valid",
        metavar="FILE",
        help="Validation pairs for --train.",
        show_default="a tenth of --train, at most 1,000",
    ),
]
Test = Annotated[
    list[str] | None, typer.Option("--test", metavar="FILE", help="Test pairs for --train, used by evaluate.")
]
SourceLanguage = Annotated[
    str | None,
    typer.Option(
        metavar="CODE",
        help="Language to translate from.",
        show_default="the config's if set, else from two file names or a table's first line",
    ),
]
TargetLanguage = Annotated[
    str | None,
    typer.Option(
        metavar="CODE",
        help="Language to translate into.",
        show_default="the config's if set, else from two file names or a table's first line",
    ),
]
Links = Annotated[
    str | None,
    typer.Option(
        "--links",
        metavar="FILE|ibm1",
        help="Word alignments of the training pairs, for guided attention: one line per pair, 0-0 1-2 (Pharaoh).",
    ),
]


def _import_variants(modules: list[str] | None) -> list[str] | None:
    """Import the modules while the command line is parsed, so that no command has to."""
    if modules:
        from seq2seq_attn.model.variants import import_variants

        import_variants(modules)
    return modules


Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="Import MODULE; its variant is then available under that name. May be repeated.",
        callback=_import_variants,
    ),
]
Alignment = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The attention's word links, one line per pair: 0-0 1-2 (source-target)."),
]
Attention = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Attention as pictures (.png .svg .pdf), a page (.html) or arrays (.npz)."),
]
Device = Annotated[str | None, typer.Option(metavar="NAME", help="auto, cpu, cuda or cuda:N.", show_default="auto")]
BeamSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MAX_BEAM_SIZE,
        metavar="N",
        help="Hypotheses kept per sentence; 1 is greedy.",
        show_default="the run's",
    ),
]
LengthPenalty = Annotated[
    float | None,
    typer.Option(
        min=-MAX_LENGTH_PENALTY,
        max=MAX_LENGTH_PENALTY,
        metavar="A",
        help="Rank hypotheses by log P / length ** A.",
        show_default="the run's",
    ),
]
MaxLengthRatio = Annotated[
    float | None,
    typer.Option(
        max=MAX_LENGTH_RATIO,
        metavar="R",
        help="At most R target tokens per source token, plus search.max_length_extra.",
        show_default="the run's",
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Sentences or pairs at once; changes speed and memory, not results.",
        show_default="the run's",
    ),
]
TranslationPrecision = Annotated[
    str | None,
    typer.Option("--precision", metavar="NAME", help="auto, fp32, bf16 or int8.", show_default="auto, which is fp32"),
]
TrainingPrecision = Annotated[
    str | None,
    typer.Option("--precision", metavar="NAME", help="auto, fp32, bf16 or fp16.", show_default="auto"),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error, and more of the log.")]


def given(named: Mapping[str, object]) -> dict[str, object]:
    """Without the options that the command line leaves out."""
    return {key: value for key, value in named.items() if value is not None}


def as_settings(named: Mapping[str, object]) -> list[str]:
    """Settings by key, in the form of `--set`. Values are JSON, which YAML reads back unchanged.

    Raises:
        UsageError: a value is neither plain data, a NumPy or torch array, nor a path.
    """
    import json

    from seq2seq_attn.config import shorten

    settings = []
    for key, value in named.items():
        try:
            settings.append(f"{key}={json.dumps(value, default=_plain)}")
        except (TypeError, ValueError):
            raise UsageError(
                f"{key}={shorten(value)}: expected None, numbers, text, paths, or lists and mappings of these"
            ) from None
    return settings


def _plain(value: Any) -> object:
    """A path as text, an array or a number of numpy or torch as numbers. Raises TypeError for other types."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(type(value))


def echo(text: object, *, nl: bool = True) -> None:
    """Print a result; an error such as a full disk names standard output."""
    from seq2seq_attn.files import STDOUT, naming

    with naming(STDOUT):
        typer.echo(text, nl=nl)


def is_terminal() -> bool:
    """Whether stderr is a terminal, so that progress bars make sense."""
    return sys.stderr.isatty()


def check_runs(runs: list[Path] | None) -> list[Path] | None:
    """Read each run's settings while the command line is parsed: a mistyped run is refused before torch is loaded.

    Raises:
        UserError: one is not a run directory.
    """
    if runs:
        from seq2seq_attn.run_dir import RunDir

        for run in runs:
            RunDir(run).config()
    return runs


def only_newest_run() -> list[Path]:
    """The run that finished last, as a list. Raises UserError if there is none."""
    from seq2seq_attn.run_dir import newest_run

    return [newest_run().path]
