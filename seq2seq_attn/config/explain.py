"""Write error messages for mistakes in a configuration. A message has the key, the value, what is
allowed, and the nearest valid key."""

import difflib
import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from seq2seq_attn.config.run import Config

_MAX_PROBLEMS = 3
_MAX_KEY = 80
_MAX_NUMBERS = 10
_TEXT = (
    "a prefix (PREFIX.de and PREFIX.en), a table (TSV, CSV, JSON, TMX, XLIFF, PO), or [source "
    "file, target file]"
)
_HINTS = {
    "data.train": _TEXT,
    "data.valid": _TEXT,
    "data.test": "write data.test: {NAME: PREFIX}, for example --set data.test.mine=corpus/test",
    "data.extra": "a list of texts, each named like data.train, for example "
    "[corpus/back-translated]",
    "data.source_languages": "a list of language codes, for example [de,fr,cs]",
    "data.limit": "a number of pairs, or {train: N, valid: M, test: K}",
    "options": "write options: {OPTION: value}, with a number, text, true, false, null or a list "
    "of those as value",
    "train.objectives": "write train.objectives: {NAME: {weight: 1}}",
    "train.optimizer.betas": "two numbers, for example [0.9, 0.999]",
}
"""The allowed values of keys for which pydantic's error message says too little. An entry is for a
key, for the last name of a key, or for a section."""

_short = reprlib.Repr()
_short.maxlevel = 2
_short.maxlist = _short.maxdict = 4
_short.maxstring = _short.maxlong = _short.maxother = 100


def explain(error: ValidationError, values: Mapping[str, Any]) -> str:
    """Return the mistakes in a configuration as one line, at most the first `_MAX_PROBLEMS`."""
    problems_by_key: dict[str, list[Mapping[str, Any]]] = {}
    for problem in error.errors(include_url=False):
        is_unknown = problem["type"] in ("extra_forbidden", "invalid_key")
        parts = problem["loc"] if is_unknown else _key_parts(problem["loc"], values)
        problems_by_key.setdefault(".".join(map(str, parts)), []).append(problem)
    texts = [_explain_key(key, problems) for key, problems in problems_by_key.items()]
    more = len(texts) - _MAX_PROBLEMS
    return "; ".join(texts[:_MAX_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def _explain_key(key: str, problems: Sequence[Mapping[str, Any]]) -> str:
    """Return the message for an unknown key or for a wrong value.

    The hint for a value is the entry in `_HINTS` for the key, for its section, for the last name of
    the key, or for the last name of the section. The first entry in this order is used.
    """
    if problems[0]["type"] in ("extra_forbidden", "invalid_key"):
        return unknown_key(key)
    section, _, last = key.rpartition(".")
    names = (key, section, last, section.rpartition(".")[2])
    hint = next((_HINTS[name] for name in names if name in _HINTS), None)
    return explain_value(key, problems, hint)


def _key_parts(location: Sequence[int | str], values: Any) -> Sequence[int | str]:
    """Return the keys and indices of a location in `values`. Where several types are allowed,
    pydantic appends the name of a type to the location; this name is left out."""
    for length, part in enumerate(location):
        try:
            values = values[part]
        except (IndexError, KeyError, TypeError):
            return location[:length]
    return location


def explain_value(key: str, problems: Sequence[Mapping[str, Any]], hint: str | None) -> str:
    """Return the message `KEY=VALUE: expected ...` for a wrong value.

    `problems` are pydantic's errors for the value, one for each type that is allowed. `hint` says
    what is expected and is used if the value has a wrong type rather than a number out of range.
    """
    value = problems[0]["input"]
    if hint is None or any(map(_is_limit, problems)):
        hint = expected(problems)
    elif not hint.startswith("write "):
        hint = f"expected {hint}"
    return f"{shorten_key(key)}={shorten(value)}: {hint}"


def expected(problems: Sequence[Mapping[str, Any]]) -> str:
    """Return `expected ...` for a wrong value. `problems` are pydantic's errors for the value, one
    for each type that is allowed."""
    limits = [problem for problem in problems if _is_limit(problem)]
    return f"expected {' or '.join(dict.fromkeys(map(_expected, limits or problems)))}"


def _is_limit(problem: Mapping[str, Any]) -> bool:
    """Return whether the value has the right type but exceeds a limit."""
    return str(problem["type"]).startswith(("finite_number", "greater_than", "less_than"))


def _expected(problem: Mapping[str, Any]) -> str:
    """Return the allowed values from the message of an error, without the other words of the
    message."""
    message = str(problem["msg"])
    if " is not one of " in message:  # an error of Typer about choices
        return f"one of {message.partition(' is not one of ')[2].rstrip('.')}"
    if problem["type"] == "missing":
        return "a value"
    match = re.match(r"Input should be (.+?)(?:,? (?:unable|got|or instance) .*)?$", message)
    if match is None:
        return "another value"
    text = match[1].replace("valid dictionary", "mapping of settings")
    return f"a number {text}" if text.startswith(("greater", "less")) else text


def unknown_key(key: str) -> str:
    """Return the message for an unknown key, with the nearest valid key."""
    message = f"unknown configuration key {shorten_key(key)!r}"
    nearest = _nearest_key(key) if len(key) <= _MAX_KEY else None
    return f"{message}; did you mean {nearest!r}?" if nearest else message


def shorten(value: object) -> str:
    """Return a value for messages, as YAML writes it. Long values are shortened."""
    if isinstance(value, bool | None):
        return json.dumps(value)
    return _short.repr(value)


def plural(number: int, noun: str) -> str:
    """Return a number and a noun for messages: `1 line`, `1,200 lines`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def name_numbers(noun: str, numbers: Sequence[int]) -> str:
    """Return a noun and its numbers for messages: `line 1`, `lines 1, 3 and 7`. After
    `_MAX_NUMBERS` numbers, the remaining numbers are counted: `lines 1, 3, 7 and 12 more`."""
    *shown, last = map(str, numbers[:_MAX_NUMBERS])
    num_more = len(numbers) - _MAX_NUMBERS
    if num_more > 0:
        shown.append(last)
        last = f"{num_more:,} more"
    return f"{noun}s {', '.join(shown)} and {last}" if shown else f"{noun} {last}"


def shorten_key(key: str) -> str:
    """Return a key for messages, cut off after `_MAX_KEY` characters."""
    return key if len(key) <= _MAX_KEY else f"{key[:_MAX_KEY]}..."


def _nearest_key(key: str) -> str | None:
    """Return the valid key that is most similar to a key, or None if no key is similar."""
    if key.startswith("train.objectives."):  # the user chooses the names of objectives
        return None
    keys = all_keys()
    by_last = {candidate.rpartition(".")[2]: candidate for candidate in reversed(keys)}
    candidates = by_last | {candidate: candidate for candidate in keys}
    for name in (key, key.rpartition(".")[2]):  # the name may be right and the section wrong
        for close in difflib.get_close_matches(name, candidates, n=1, cutoff=0.7):
            return candidates[close]
    return None


def all_keys(section: type[BaseModel] = Config, prefix: str = "") -> list[str]:
    """Return every valid key, including the keys of sections."""
    keys = []
    for name, field in section.model_fields.items():
        keys.append(prefix + name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += all_keys(kind, f"{prefix}{name}.")
    return keys
