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
from seq2seq_attn.config.sources import merge, parse_override
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import STDOUT, naming
from seq2seq_attn.model.variants import SEARCH, import_variants, packaged_variants
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
        help="Your own text: a table (TSV, CSV, JSON, TMX), or a prefix (corpus/train for corpus/train.en and .fr); or "
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
_LANGUAGES = "the config's if set, else as named by files, columns or keys"
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
    import_variants(modules or [])
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


SearchSet = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any option of the search, for example num_groups=5 for diverse; may be repeated (docs/variants.md).",
        rich_help_panel="Search",
    ),
]


def command(*search: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Complete the options of a command: `--import` and `--debug`, which all commands have, and those `search` fields
    of `SearchConfig`, with the type, limits and help of the field; with a `method`, also `--set` for all others. The
    command takes as `**search` what the command line gives."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = dict(inspect.signature(function, eval_str=True).parameters)
        own.pop("search", None)
        kinds = {name: _search_option(name) for name in search}
        kinds |= {"settings": SearchSet} if "method" in search else {}
        kinds |= {"imports": Import, "debug": Debug}
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in kinds.items()
            if name not in own
        ]

        @functools.wraps(function)
        def call(**values: Any) -> None:
            options: dict[str, Any] = {}
            for setting in (values["settings"] or []) if "method" in search else []:
                options = merge(options, parse_override(setting))
            options |= {name: values[name] for name in search if values[name] is not None}
            function(**{name: value for name, value in values.items() if name in own}, **options)

        call.__signature__ = inspect.Signature([*own.values(), *more])  # type: ignore[attr-defined]
        return call

    return decorate


def _search_option(name: str) -> Any:
    field = SearchConfig.model_fields[name]
    annotation: Any = field.annotation
    kind: Any = Annotated[(annotation, *field.metadata)] if field.metadata else annotation
    choices = [value for value in get_args(annotation) if isinstance(value, str)]
    metavar = "|".join(choices) or {int: "N", str: "TEXT"}.get(annotation, "X")
    text = re.sub(r"`(\w+)`", lambda match: f"--{match[1].replace('_', '-')}", field.description or "")
    if name == "method":
        metavar, text = "NAME", f"{', '.join(packaged_variants(SEARCH))}, or a function of your own (--import)."
    panel = "Samples" if name == "seed" else None  # the seed of training is among its settings
    option = typer.Option(metavar=metavar, help=text, show_default="the run's", rich_help_panel=panel)
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
