"""Options that several commands share, and the decorator that gives a command its options."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, get_args, get_type_hints

import typer

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.config.load import merge, nest, parse_setting
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import STDOUT
from seq2seq_attn.leftovers import naming
from seq2seq_attn.model.variants import SEARCH, import_variants, packaged_variants
from seq2seq_attn.text.normalize import visible

Format = Literal["text", "json"]
SETTINGS = {
    "columns": "data.columns",
    "links": "data.links",
    "data_dir": "data.data_dir",
    "source_dir": "data.source_dir",
    "device": "train.device",
    "precision": "train.precision",
    "seed": "seed",
}
"""The configuration keys of options that set a single setting."""
_LANGUAGES = "the config's if set, else as named by files, columns or keys"


def option(metavar: str, help: str, *names: str, default: str | bool = True, **more: Any) -> Any:
    """Declare an option with a value. The help shows `default`."""
    return typer.Option(*names, metavar=metavar, help=help, show_default=default, **more)


def runs_argument(metavar: str = "RUN", help: str = "Run directories.") -> Any:
    """Declare the argument for run directories, which are checked while the command line is
    parsed."""
    return typer.Argument(
        metavar=metavar, help=help, show_default="the run that finished last", callback=open_runs
    )


def flag(name: str, help: str) -> Any:
    """Declare an option without a value."""
    return typer.Option(name, help=help)


class TextOptions(TypedDict, total=False):
    """Options that describe a parallel text of the user."""

    train_text: Annotated[
        list[str],
        option(
            "FILE",
            "Your own text: a table (TSV, CSV, JSON, TMX, XLIFF, PO), or a prefix (corpus/train "
            "for corpus/train.en and .fr); or the option twice: source file, target file. Without "
            "-c, its size decides the settings (configs/own*.yaml).",
            "--train",
        ),
    ]
    valid_text: Annotated[
        list[str],
        option(
            "FILE",
            "Validation pairs for --train.",
            "--valid",
            default="a tenth of --train, at most 1,000",
        ),
    ]
    test_text: Annotated[
        list[str], option("FILE", "Test pairs for --train, used by evaluate.", "--test")
    ]
    columns: Annotated[
        str,
        option(
            "SOURCE,TARGET",
            "The columns of tables, by number (1,2) or by name.",
            default="named by the first line",
        ),
    ]
    source_language: Annotated[
        str, option("CODE", "Language to translate from.", default=_LANGUAGES)
    ]
    target_language: Annotated[
        str, option("CODE", "Language to translate into.", default=_LANGUAGES)
    ]


class ConfigOptions(TextOptions, total=False):
    """Options that determine a configuration: files, settings, and a parallel text of the user."""

    config: Annotated[
        list[str],
        option(
            "NAME|FILE",
            "Packaged configuration, such as demo, or YAML file; later ones override earlier ones.",
            "--config",
            "-c",
        ),
    ]
    settings: Annotated[
        list[str],
        option(
            "KEY=VALUE",
            "A setting, such as model.hidden_size=256 or train.max_minutes=20; may be repeated.",
            "--set",
        ),
    ]


Links = Annotated[
    str,
    option(
        "FILE|ibm1",
        "Word alignments of the training pairs, for guided attention: one line per pair, 0-0 1-2 "
        "(Pharaoh).",
    ),
]
Alignment = Annotated[
    Path, option("FILE", "The attention's word links, one line per pair: 0-0 1-2 (source-target).")
]
Attention = Annotated[
    list[Path],
    option(
        "FILE",
        "Attention as pictures (.png .svg .pdf), a page (.html) or arrays (.npz); may be repeated.",
    ),
]
Glossary = Annotated[
    Path,
    option(
        "FILE",
        "Terms, one per line: source term, tab, target term. A line with a source term is "
        "translated with its target term.",
    ),
]
Device = Annotated[str, option("NAME", "auto, cpu, cuda or cuda:N.", default="auto")]
TranslationPrecision = Annotated[
    str, option("NAME", "auto, fp32, bf16 or int8.", "--precision", default="auto, which is fp32")
]
TrainingPrecision = Annotated[
    str,
    option(
        "NAME",
        "auto, fp32, bf16 or fp16.",
        "--precision",
        default="bf16 where it is fast",
    ),
]


def _import_variants(modules: list[str] | None) -> list[str] | None:
    """Import the modules of `--import` while the command line is parsed, so that their variants are
    available to every command."""
    import_variants(modules or [])
    return modules


Import = Annotated[
    list[str],
    option(
        "MODULE",
        "Import MODULE; its variant is then available under that name. May be repeated.",
        "--import",
        callback=_import_variants,
        is_eager=True,
    ),
]
Debug = Annotated[bool, flag("--debug", "Show the traceback of an error, and more of the log.")]
SearchSet = Annotated[
    list[str],
    option(
        "KEY=VALUE",
        "Any option of the search, for example num_groups=5 for diverse; may be repeated "
        "(docs/mechanisms.md).",
        "--set",
        rich_help_panel="Search",
    ),
]


def command(*, search: Sequence[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that turns a function into a command of the command line.

    The command has `--import`, `--debug` and the options that the function declares: as parameters
    annotated for Typer, or as `**options: Unpack[OPTIONS]` with the options in the typed dictionary
    `OPTIONS`. The function is called with only the options that are present on the command line.

    Args:
        search: fields of `SearchConfig` that become options of the command, with their types,
            limits and docstrings. If `method` is among the fields, the option `--set` takes all
            other options of the search.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        declared = _declared_parameters(function)
        added = {
            "imports": Import,
            "debug": Debug,
            **{name: _search_option(name) for name in search},
        }
        if "method" in search:
            added["settings"] = SearchSet
        parameters = declared | {name: _parameter(name, option) for name, option in added.items()}

        @functools.wraps(function)
        def call(**values: Any) -> None:
            present = {name: value for name, value in values.items() if value is not None}
            passed = {name: present[name] for name in (*declared, *search) if name in present}
            if "method" in search:
                from_set = _parse_search(present.get("settings", []))
                misplaced = sorted(declared.keys() & from_set)
                if misplaced:
                    raise UsageError(
                        f"--set {misplaced[0]}: an option of the command, not of the search"
                    )
                passed = from_set | passed  # an option wins over --set
            function(**passed)

        signature = inspect.Signature(list(parameters.values()))
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return decorate


def _declared_parameters(function: Callable[..., None]) -> dict[str, inspect.Parameter]:
    """Return the options that a command's function declares as parameters or in its typed
    dictionary."""
    declared = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if name == "options":
            [dictionary] = get_args(parameter.annotation)  # OPTIONS of `Unpack[OPTIONS]`
            for key, option in get_type_hints(dictionary, include_extras=True).items():
                declared[key] = _parameter(key, option)
        else:
            declared[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    return declared


def _parse_search(texts: Sequence[str]) -> dict[str, Any]:
    """Parse the texts of `--set` into options of the search."""
    options: dict[str, Any] = {}
    for text in texts:
        options = merge(options, nest(*parse_setting(text)))
    return options


def python_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the options of a command to arguments of its function in `seq2seq_attn.api`.

    The argument `settings` has the texts of `--set`, followed by the options in `SETTINGS`.
    """
    settings = list(options.get("settings", []))
    arguments: dict[str, Any] = {}
    for name, value in options.items():
        if name in SETTINGS:
            settings.append((SETTINGS[name], value))
        else:
            arguments[name] = value
    return arguments | {"settings": settings}


def _parameter(name: str, kind: Any) -> inspect.Parameter:
    """Return a keyword parameter for an option: `kind` is the type of the option, annotated with
    limits and the declaration for Typer. The default None means that the option is not on the
    command line."""
    annotation, *limits, option = get_args(kind)
    if limits:
        annotation = Annotated[(annotation, *limits)]
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[annotation | None, option],
    )


def _search_option(name: str) -> Any:
    """Declare the option for a field of `SearchConfig`, with the field's type, limits and help."""
    field = SearchConfig.model_fields[name]
    annotation: Any = field.annotation
    # The help shows the values of a `Literal`, or else a word for the type.
    choices = [value for value in get_args(annotation) if isinstance(value, str)]
    metavar = "|".join(choices) or {int: "N", str: "TEXT"}.get(annotation, "X")
    # The description names fields, as `beam_size`. The help names options, as --beam-size.
    help = field.description or ""
    help = re.sub(r"`(\w+)`", lambda match: f"--{match[1].replace('_', '-')}", help)
    if name == "method":
        metavar = "NAME"
        help = f"{', '.join(packaged_variants(SEARCH))}, or a function of your own (--import)."
    # `GROUPS` lists `seed` under "Settings" because of `train`, whose option has the same name.
    panel = "Samples" if name == "seed" else None
    option = typer.Option(
        metavar=metavar, help=help, show_default="the run's", rich_help_panel=panel
    )
    return Annotated[(annotation, *field.metadata, option)]


def echo(text: object, *, nl: bool = True) -> None:
    """Print a result, with a line end if `nl`. If printing fails, for example because the disk is
    full, the message of the error names standard output."""
    with naming(STDOUT):
        typer.echo(visible(str(text)), nl=nl)


def open_runs(names: list[Path] | None) -> Any:
    """Open the runs and return a list of `Run`, or None if no run is named.

    Runs are opened while the command line is parsed, so that a mistyped run is reported before
    torch is imported. Raises the UserError of `Run.open`.
    """
    if not names:
        return None
    from seq2seq_attn.run import open_runs

    return open_runs(names)
