"""What Typer's parser shows: help with options in groups and without Python types, and errors in one line."""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise, takewhile
from typing import Any

from typer.core import TyperCommand

from seq2seq_attn.config.explain import expected, shorten
from seq2seq_attn.errors import UsageError

_MAX_VALUE = 100


GROUPS = {
    "Text": "input split source target reference concatenate train_text valid_text test_text links source_language "
    "target_language data_dir source_dir",
    "Settings": "config vary seeds settings seed dump_config imports",
    "Run": "run from_run run_dir resume overwrite",
    "Search": "ensemble method beam_size n_best length_penalty coverage_penalty no_repeat_ngram max_length_ratio unk "
    "prefix shortlist",
    "Samples": "num_samples temperature top_k top_p",
    "Scores": "metric by_length length_of length_in merge_below no_attention",
    "Output": "output weights license private format alignment attention full json report plots csv latex",
    "Server": "host port max_characters",
    "Machine": "at_once reuse_hypotheses device precision batch_size",
    "Other options": "debug help",
}
"""groups of options, in the order of the help; the values are names of the commands' parameters"""


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by `GROUPS`, or by an option's own `rich_help_panel`. It does not take a
    text that begins with a hyphen, such as `-oh no`, for an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raises UsageError for such a text."""
        with_value = {name for option in self.params if not getattr(option, "is_flag", True) for name in option.opts}
        texts = takewhile(lambda argument: argument != "--", args)
        for before, text in pairwise(("", *texts)) if any(one.name == "texts" for one in self.params) else ():
            if re.match(r"-[^\s=]*\s", text) and before not in with_value:
                raise UsageError(
                    f"{shorten(text)}: begins with -, as options do; write -- before texts, and a space before the "
                    "value of an option"
                )
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then a section per group."""
        places = {name: (group, i) for group, names in GROUPS.items() for i, name in enumerate(names.split())}
        rows: dict[str, list[tuple[int, str, str]]] = {"Arguments": [], **{group: [] for group in GROUPS}}
        for parameter in self.get_params(ctx):
            group, place = places.get(parameter.name, ("Other options", 0))
            if parameter.param_type_name == "argument":
                group = "Arguments"
            elif panel := getattr(parameter, "rich_help_panel", None):
                group, place = panel, len(places)
            names, text = parameter.get_help_record(ctx) or ("", "")
            text = re.sub(r"\[default: \((.*)\)(?=[];])", r"[default: \1", text)  # a default in words has parentheses
            rows[group].append((place, re.sub(r" <[^ ]+>$", "", names), text))  # without the Python type
        for group, options in rows.items():
            if options:
                with formatter.section(group):
                    formatter.write_dl([(names, text) for _, names, text in sorted(options)])


def is_from_parser(error: Exception) -> bool:
    """Whether the error comes from Typer's parser."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def explain_parser_error(error: Any, arguments: Sequence[str], *, program: str, commands: Collection[str]) -> str:
    """The parser's error in one line: for a wrong value the option, the value and what is allowed."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    if context is not None:
        path = context.command_path
    else:
        path = f"{program} {arguments[0]}" if arguments and arguments[0] in commands else program
    if hasattr(error, "possibilities"):  # an unknown option
        near = list(error.possibilities or [])
        message = f"No such option: {error.option_name}" + (f"; did you mean {' or '.join(near)}?" if near else "")
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
