"""The command line: its commands, the groups of their options in the help, and the errors of
Typer's parser.

Each other file of this folder declares the options of a command, calls a function of
`seq2seq_attn.api` and prints the result to stdout. Slow modules are imported when a command runs,
so that help is fast. `__main__.py` handles errors and signals.
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from seq2seq_attn import __version__
from seq2seq_attn.cli.compare import compare
from seq2seq_attn.cli.evaluate import evaluate
from seq2seq_attn.cli.export import export, push
from seq2seq_attn.cli.options import echo
from seq2seq_attn.cli.score import score
from seq2seq_attn.cli.serve import serve
from seq2seq_attn.cli.train import prepare, train
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
GROUPS = {
    "Text": "input document field split source target reference hypotheses concatenate train_text "
    "valid_text test_text links columns source_language target_language data_dir source_dir",
    "Settings": "config vary seeds settings seed dump_config imports",
    "Run": "run from_run run_dir resume overwrite",
    "Search": "ensemble method beam_size n_best length_penalty coverage_penalty no_repeat_ngram "
    "max_length_ratio unk prefix glossary split_sentences",
    "Samples": "num_samples temperature top_k top_p",
    "Scores": "metric by_length length_of length_in no_attention",
    "Output": "output weights license private format alignment attention full json report plots "
    "csv",
    "Server": "host port max_characters allow_host allow_origin",
    "Machine": "at_once reuse_hypotheses device precision batch_size",
    "Other options": "debug help",
}
"""the options in each group, by the names of the commands' parameters. Groups and options are in
the order of the help."""


class GroupedCommand(TyperCommand):
    """A command whose help lists options in groups.

    The group of an option is its `rich_help_panel`, or else its entry in `GROUPS`. For commands
    with arguments TEXT, a TEXT that begins with a hyphen, such as `-oh no`, is an error: Typer
    would read it as the option `-o`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raises UsageError if a TEXT begins with a hyphen."""
        if any(parameter.name == "texts" for parameter in self.params):
            self._check_texts(args)
        return super().parse_args(ctx, args)

    def _check_texts(self, args: Sequence[str]) -> None:
        """Raise UsageError if an argument before `--` begins with a hyphen, contains a space, and
        is not the value of an option."""
        with_value = set()
        for parameter in self.params:
            # Arguments have no attribute `is_flag`. Like flags, they have no name before a value.
            if not getattr(parameter, "is_flag", True):
                with_value.update(parameter.opts)
        previous = ""
        for argument in takewhile(lambda argument: argument != "--", args):
            if re.match(r"-[^\s=]*\s", argument) and previous not in with_value:
                raise UsageError(
                    f"{shorten(argument)}: begins with -, as options do; write -- before a text, "
                    "or a space between an option and its value"
                )
            previous = argument

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for the arguments, then a section for each group of options."""
        sections: dict[str, list[Any]] = {"Arguments": [], **{group: [] for group in GROUPS}}
        for parameter in self.get_params(ctx):
            sections[_find_section(parameter)].append(parameter)
        for group, parameters in sections.items():
            if parameters:
                with formatter.section(group):
                    formatter.write_dl([_help_record(parameter, ctx) for parameter in parameters])


def _find_section(parameter: Any) -> str:
    """Return the name of the help section that lists a parameter."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    if parameter.rich_help_panel is not None:
        return str(parameter.rich_help_panel)
    for group, names in GROUPS.items():
        if parameter.name in names.split():
            return group
    return "Other options"


def _help_record(parameter: Any, ctx: Any) -> tuple[str, str]:
    """Return the names of an option and its help text.

    The Python type behind the names is removed, and so are the parentheses that Typer puts around
    a default in words.
    """
    names, text = parameter.get_help_record(ctx) or ("", "")
    names = re.sub(r" <[^ ]+>$", "", names)
    return names, re.sub(r"\[default: \((.*)\)(?=[];])", r"[default: \1", text)


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


COMMANDS = {
    command.__name__: command
    for command in (prepare, train, evaluate, translate, score, compare, export, serve, push)
}
for command in COMMANDS.values():
    app.command(cls=GroupedCommand)(command)


def is_from_parser(error: Exception) -> bool:
    """Return whether the error comes from Typer's parser."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def explain_parser_error(error: Any, arguments: Sequence[str]) -> str:
    """Return the message of a parser error as one line, with a pointer to the help of the command.
    For a wrong value, the message has the option, the value, and what is allowed."""
    parameter = getattr(error, "param", None)
    message = error.format_message().rstrip(".")
    if parameter is not None and error.__cause__ is not None:
        # The cause is an error of pydantic, which lists the problems of the value.
        problems = error.__cause__.errors(include_url=False)
        message = f"{parameter.opts[0]} {problems[0]['input']}: {expected(problems)}"
    if "extra argument" in message and arguments[0] in ("train", "compare"):
        message += "; name a text with --train"
    program = PROGRAM
    if arguments and arguments[0] in COMMANDS:
        program = f"{PROGRAM} {arguments[0]}"
    end = "" if message.endswith("?") else "."
    return f"{message}{end} See '{program} --help'."
