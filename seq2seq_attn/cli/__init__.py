"""The command line: its commands, the groups of their options in the help, and the errors of
Typer's parser.

A file named by a verb declares the options of a command (`evaluate.py`); the file named by its noun
(`evaluation.py`) does the work.

Nothing heavy is imported before a command runs, so that help is fast. Results go to stdout.
`__main__.py` handles errors and signals.
"""

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from seq2seq_attn import __version__
from seq2seq_attn.cli.compare import compare
from seq2seq_attn.cli.evaluate import evaluate
from seq2seq_attn.cli.export import export
from seq2seq_attn.cli.options import echo
from seq2seq_attn.cli.prepare import prepare
from seq2seq_attn.cli.push import push
from seq2seq_attn.cli.score import score
from seq2seq_attn.cli.serve import serve
from seq2seq_attn.cli.train import train
from seq2seq_attn.cli.translate import translate
from seq2seq_attn.config.explain import expected, shorten
from seq2seq_attn.errors import UsageError

PROGRAM = "seq2seq"
_START = """\b
Start with (minutes, no download):
  seq2seq train -c quickstart
  seq2seq evaluate
  seq2seq translate "Der kleine Hund, den die Frau sieht, schläft heute."
"""
_EXIT_CODES = (
    "Exit codes: 0: success. 2: a mistake in the command line or the configuration. 1: something "
    "else failed (a file, a run directory, the network, memory). 130: Ctrl-C, 143: SIGTERM, 129: "
    "SIGHUP; train saves its state first."
)
_MAX_VALUE = 100
"""characters of a value that is quoted whole"""
GROUPS = {
    "Text": "input split source target reference concatenate train_text valid_text test_text links source_language "
    "target_language data_dir source_dir",
    "Settings": "config vary seeds settings seed dump_config imports",
    "Run": "run from_run run_dir resume overwrite",
    "Search": "ensemble method beam_size n_best length_penalty coverage_penalty no_repeat_ngram max_length_ratio unk "
    "prefix",
    "Samples": "num_samples temperature top_k top_p",
    "Scores": "metric by_length length_of length_in merge_below no_attention",
    "Output": "output weights license private format alignment attention full json report plots csv latex",
    "Server": "host port max_characters",
    "Machine": "at_once reuse_hypotheses device precision batch_size",
    "Other options": "debug help",
}
"""groups of options, in the order of the help; the values are names of the commands' parameters"""


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by `GROUPS`, or by an option's own `rich_help_panel`.
    It does not take a text that begins with a hyphen, such as `-oh no`, for an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raises UsageError for such a text."""
        with_value = {
            name
            for option in self.params
            if not getattr(option, "is_flag", True)
            for name in option.opts
        }
        texts = takewhile(lambda argument: argument != "--", args)
        for before, text in (
            pairwise(("", *texts)) if any(one.name == "texts" for one in self.params) else ()
        ):
            if re.match(r"-[^\s=]*\s", text) and before not in with_value:
                raise UsageError(
                    f"{shorten(text)}: begins with -, as options do; write -- before texts, and a "
                    "space before the value of an option"
                )
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then a section per group."""
        places = {
            name: (group, i)
            for group, names in GROUPS.items()
            for i, name in enumerate(names.split())
        }
        rows: dict[str, list[tuple[int, str, str]]] = {
            "Arguments": [],
            **{group: [] for group in GROUPS},
        }
        for parameter in self.get_params(ctx):
            group, place = places.get(parameter.name, ("Other options", 0))
            if parameter.param_type_name == "argument":
                group = "Arguments"
            elif panel := getattr(parameter, "rich_help_panel", None):
                group, place = panel, len(places)
            names, text = parameter.get_help_record(ctx) or ("", "")
            text = re.sub(
                r"\[default: \((.*)\)(?=[];])", r"[default: \1", text
            )  # a default in words has parentheses
            rows[group].append(
                (place, re.sub(r" <[^ ]+>$", "", names), text)
            )  # without the Python type
        for group, options in rows.items():
            if options:
                with formatter.section(group):
                    formatter.write_dl([(names, text) for _, names, text in sorted(options)])


app = typer.Typer(
    name=PROGRAM,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    help="Neural machine translation with recurrent networks and attention.",
    epilog=f"{_START}\n\n{_EXIT_CODES}",
)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


_COMMANDS = (prepare, train, evaluate, translate, score, compare, export, serve, push)
COMMANDS = [command.__name__ for command in _COMMANDS]

for command in _COMMANDS:
    app.command(cls=GroupedCommand)(command)


def is_from_parser(error: Exception) -> bool:
    """Whether the error comes from Typer's parser."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def explain_parser_error(error: Any, arguments: Sequence[str]) -> str:
    """The parser's error in one line: for a wrong value the option, the value and what is
    allowed."""
    parameter = getattr(error, "param", None)
    path = " ".join([PROGRAM, *(name for name in arguments[:1] if name in COMMANDS)])
    if hasattr(error, "possibilities"):  # an unknown option
        near = list(error.possibilities or [])
        message = f"No such option: {error.option_name}" + (
            f"; did you mean {' or '.join(near)}?" if near else ""
        )
    elif parameter is not None and error.__cause__ is not None:
        used = {argument.partition("=")[0] for argument in arguments}
        name = next((option for option in parameter.opts if option in used), parameter.opts[0])
        problems = error.__cause__.errors(include_url=False)
        value = problems[0]["input"]
        shown = value if isinstance(value, str) and len(value) <= _MAX_VALUE else shorten(value)
        message = f"{name} {shown}: {expected(problems)}"
    else:
        message = error.format_message().rstrip(".")
    return f"{message}{'' if message.endswith('?') else '.'} See '{path} --help'."
