"""Explain mistakes in a configuration: the key, the value, what is allowed, the nearest valid key."""

import difflib
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from seq2seq_attn.config.run import Config

_MAX_PROBLEMS = 3
_MAX_KEY = 80
_HINTS = {
    "data.train": "a prefix (PREFIX.de and PREFIX.en), a table (TSV, CSV, JSON, TMX), or [source file, target file]",
    "data.valid": "a prefix (PREFIX.de and PREFIX.en), a table (TSV, CSV, JSON, TMX), or [source file, target file]",
    "data.test": "write data.test: {NAME: PREFIX}, for example --set data.test.mine=corpus/test",
    "data.extra": "a list of texts, each named like data.train, for example [corpus/back-translated]",
    "data.source_languages": "a list of language codes, for example [de,fr,cs]",
    "data.limit": "a number of pairs, or {train: N, valid: M, test: K}",
    "options": "write options: {OPTION: value}, with a number, text, true, false, null or a list of those as value",
    "train.objectives": "write train.objectives: {NAME: {weight: 1}}",
    "train.optimizer.betas": "two numbers, for example [0.9, 0.999]",
}
"""Hints for keys whose type alone says too little."""
_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "path": "a path",
    "list": "a list",
    "dict": "a mapping",
    "tuple": "a list",
    "none": "null",
}
"""By the first word of pydantic's error type."""
_LIMITS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 100
_short.maxlevel, _short.maxlist, _short.maxdict = 2, 4, 4


def explain(error: ValidationError) -> str:
    """The mistakes in one line, at most the first few."""
    problems_by_key: dict[str, list[Mapping[str, Any]]] = {}
    for problem in error.errors(include_url=False):
        problems_by_key.setdefault(_dotted(problem["loc"]), []).append(problem)
    texts = []
    for key, problems in problems_by_key.items():
        if problems[0]["type"] in ("extra_forbidden", "invalid_key"):
            texts.append(unknown_key(key))
        else:
            section = key.rpartition(".")[0]
            names = (key, section, key.rpartition(".")[2], section.rpartition(".")[2])
            hint = next((_HINTS[name] for name in names if name in _HINTS), None)
            texts.append(explain_value(key, problems, hint))
    more = len(texts) - _MAX_PROBLEMS
    return "; ".join(texts[:_MAX_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def explain_value(key: str, problems: Sequence[Mapping[str, Any]], hint: str | None = None) -> str:
    """`KEY=VALUE: expected ...` from pydantic's errors for a value, one per type that the value may have. `hint`
    says what is expected if the type is wrong."""
    value = problems[0]["input"]
    if hint is None or any(not _is_type_error(problem) for problem in problems):
        hint = expected(problems)
    elif not hint.startswith("write "):
        hint = f"expected {hint}"
    shown = "no value given" if value is None else shorten(value)
    return f"{shorten_key(key)}: {shown}; {hint}" if value is None else f"{shorten_key(key)}={shown}: {hint}"


def expected(problems: Sequence[Mapping[str, Any]]) -> str:
    """`expected ...` from pydantic's errors for a value, one per type that the value may have."""
    limits = [problem for problem in problems if not _is_type_error(problem)]
    return f"expected {' or '.join(dict.fromkeys(_expected(problem) for problem in limits or problems))}"


def unknown_key(key: str) -> str:
    """The message for an unknown key, with the nearest valid key."""
    nearest = _nearest_key(key) if len(key) <= _MAX_KEY else None
    shown = repr(shorten_key(key))
    return f"unknown configuration key {shown}" + (f"; did you mean {nearest!r}?" if nearest else "")


def shorten(value: object) -> str:
    """A value as it is written, shortened if it is long."""
    return str(value).lower() if isinstance(value, bool) else _short.repr(value)


def shorten_key(key: str) -> str:
    """A key, cut where it is long."""
    return key if len(key) <= _MAX_KEY else f"{key[:_MAX_KEY]}..."


def _is_type_error(problem: Mapping[str, Any]) -> bool:
    return problem["type"] not in _LIMITS and problem["type"] != "finite_number"


def _expected(problem: Mapping[str, Any]) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in _LIMITS:
        words, name = _LIMITS[kind]
        limit = context[name]
        return f"{words} {limit:,}" if isinstance(limit, int) else f"{words} {limit:g}"
    if kind == "value_error" and " is not one of " in str(context["error"]):  # from Typer, about choices
        return f"one of {str(context['error']).partition(' is not one of ')[2].rstrip('.')}"
    if kind == "literal_error":
        return str(context["expected"])
    if kind in ("model_type", "model_attributes_type"):
        return "a section of settings"
    return _EXPECTED.get(kind.partition("_")[0], "another value")


def _dotted(parts: tuple[int | str, ...]) -> str:
    """A dotted key, without the type that pydantic appends where several are allowed."""
    section: Any = Config
    names = []
    rest = list(parts)
    while rest:
        part = rest.pop(0)
        names.append(str(part))
        field = section.model_fields.get(part)
        if field is None:
            break
        section = field.annotation
        if get_origin(section) is dict and rest and _is_section(get_args(section)[1]):
            names.append(str(rest.pop(0)))  # a mapping of names to sections
            section = get_args(section)[1]
        elif not _is_section(section):
            # keep the key of a mapping or the index in a list; names of types follow
            names += [str(name) for name in rest[:1]] if get_origin(section) in (dict, tuple) else []
            break
    return ".".join(names)


def _nearest_key(key: str) -> str | None:
    if key.startswith("train.objectives."):  # names that the user chooses
        return None
    keys = all_keys()
    close = difflib.get_close_matches(key, keys, n=1, cutoff=0.7)
    if close:
        return close[0]
    last = key.rpartition(".")[2]  # the right word in the wrong section
    by_last = {k.rpartition(".")[2]: k for k in reversed(keys)}
    close = difflib.get_close_matches(last, list(by_last), n=1, cutoff=0.7)
    return by_last[close[0]] if close else None


def all_keys(section: type[BaseModel] = Config, prefix: str = "") -> list[str]:
    """Every valid key, including sections."""
    keys = []
    for name, field in section.model_fields.items():
        keys.append(prefix + name)
        annotation: Any = field.annotation
        if _is_section(annotation):
            keys += all_keys(annotation, f"{prefix}{name}.")
    return keys


def _is_section(annotation: object) -> bool:
    return isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, BaseModel)
