"""Options shared by several commands, and what commands do with options."""

from __future__ import annotations

import functools
import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from seq2seq_attn.config import SearchConfig, shorten
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import STDOUT, naming
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.text.normalize import visible

Format = Literal["text", "json"]

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
_LANGUAGES = "the config's if set, else from two file names or a table's first line"
SourceLanguage = Annotated[
    str | None, typer.Option(metavar="CODE", help="Language to translate from.", show_default=_LANGUAGES)
]
TargetLanguage = Annotated[
    str | None, typer.Option(metavar="CODE", help="Language to translate into.", show_default=_LANGUAGES)
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
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Attention as pictures (.png .svg .pdf), a page (.html) or arrays (.npz); may be repeated.",
    ),
]
Device = Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda or cuda:N.")]
TrainingDevice = Annotated[
    str | None, typer.Option("--device", metavar="NAME", help="auto, cpu, cuda or cuda:N.", show_default="auto")
]
TranslationPrecision = Annotated[
    str,
    typer.Option("--precision", metavar="NAME", help="auto, fp32, bf16 or int8.", show_default="auto, which is fp32"),
]
TrainingPrecision = Annotated[
    str | None,
    typer.Option("--precision", metavar="NAME", help="auto, fp32, bf16 or fp16.", show_default="auto"),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error, and more of the log.")]


def command(*search: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Complete the options of a command: `--import` and `--debug`, which all commands have, and those `search` fields
    of `SearchOptions`, with the type, limits, help and default of the field. The command takes the latter as
    `**search`; an option that the command line leaves out is None."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = dict(inspect.signature(function, eval_str=True).parameters)
        own.pop("search", None)
        kinds = {**{name: _search_option(name) for name in search}, "imports": Import, "debug": Debug}
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in kinds.items()
            if name not in own
        ]

        @functools.wraps(function)
        def call(**values: object) -> None:
            function(**{name: value for name, value in values.items() if name in own or name in search})

        call.__signature__ = inspect.Signature([*own.values(), *more])  # type: ignore[attr-defined]
        return call

    return decorate


_METAVARS = ((int, "N"), (str, "TEXT"))


def _search_option(name: str) -> Any:
    field = SearchOptions.model_fields[name]
    kind: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    choices = [value for value in get_args(field.annotation) if isinstance(value, str)]
    default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
    option = typer.Option(
        metavar="|".join(choices) or next((name for kind, name in _METAVARS if field.annotation is kind), "X"),
        help=re.sub(r"`(\w+)`", lambda match: f"--{match[1].replace('_', '-')}", field.description or ""),
        show_default="the run's" if name in SearchConfig.model_fields else default or False,
        rich_help_panel="Samples" if name == "seed" else None,  # the seed of training is among its settings
    )
    return Annotated[kind | None, option]


def given(named: Mapping[str, object]) -> dict[str, object]:
    """Without the options that the command line leaves out."""
    return {key: value for key, value in named.items() if value is not None}


def as_settings(named: Mapping[str, object]) -> list[str]:
    """Settings by key, in the form of `--set`. Values are JSON, which YAML reads back unchanged.

    Raises:
        UsageError: a value is neither plain data, a NumPy or torch array, nor a path.
    """
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
    with naming(STDOUT):
        typer.echo(visible(str(text)), nl=nl)


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
