"""Messages for errors of the parser: the option, the value, what is allowed, where to find help."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

_MAX_VALUE = 100


def is_from_parser(error: Exception) -> bool:
    """Whether the error comes from Typer's parser (the module of its exceptions differs between versions)."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def explain_refusal(error: Any, arguments: Sequence[str], *, program: str, commands: Collection[str]) -> str:
    """The parser's error in one line."""
    context = getattr(error, "ctx", None)
    if context is not None:
        path = context.command_path
    else:
        path = f"{program} {arguments[0]}" if arguments and arguments[0] in commands else program
    message = _wrong_value(error, arguments) or _unknown_option(error) or error.format_message().rstrip(".")
    return f"{message}{'' if message.endswith('?') else '.'} See '{path} --help'."


def _wrong_value(error: Any, arguments: Sequence[str]) -> str | None:
    """The option, the value and what is allowed; None for other errors."""
    parameter = getattr(error, "param", None)
    if parameter is None or not hasattr(error, "param_hint"):
        return None
    given = {argument.partition("=")[0] for argument in arguments}
    name = next((option for option in parameter.opts if option in given), parameter.opts[0])
    list_problems: Any = getattr(error.__cause__, "errors", None)
    if list_problems is None:  # a Typer with its own messages
        return f"{name} {_value_of(parameter.opts, arguments)}: {error.message.rstrip('.')}"
    from seq2seq_attn.config.explain import expected, shorten

    problems = list_problems(include_url=False)
    value = problems[0]["input"]
    shown = value if isinstance(value, str) and len(value) <= _MAX_VALUE else shorten(value)
    return f"{name} {shown}: {expected(problems)}"


def _value_of(names: Sequence[str], arguments: Sequence[str]) -> str:
    """The value of an option that was given once, which the parser's error does not name."""
    values = []
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in names and (equals or index + 1 < len(arguments)):
            values.append(value if equals else arguments[index + 1])
    return values[0] if len(values) == 1 else ""


def _unknown_option(error: Any) -> str | None:
    if not hasattr(error, "possibilities"):
        return None
    near = list(error.possibilities or [])
    return f"No such option: {error.option_name}" + (f"; did you mean {' or '.join(near)}?" if near else "")
