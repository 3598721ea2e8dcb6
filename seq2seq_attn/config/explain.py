"""Explain what is wrong with a configuration: the key, the value, what is allowed, the nearest valid key."""

from __future__ import annotations

import difflib
from typing import get_origin

from pydantic import BaseModel, ValidationError

from seq2seq_attn.config.models import Config


def explain(error: ValidationError) -> str:
    """All mistakes in one line."""
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            nearest = _nearest_key(key)
            lines.append(f"unknown configuration key {key!r}" + (f"; did you mean {nearest!r}?" if nearest else ""))
        else:
            message = problem["msg"][0].lower() + problem["msg"][1:]
            lines.append(f"{key}={problem['input']!r}: {message}")
    return "; ".join(lines)


def _nearest_key(key: str) -> str | None:
    keys = _all_keys(Config)
    close = difflib.get_close_matches(key, keys, n=1, cutoff=0.7)
    if close:
        return close[0]
    last = key.rpartition(".")[2]  # the right word in the wrong section
    by_last = {k.rpartition(".")[2]: k for k in reversed(keys)}
    close = difflib.get_close_matches(last, list(by_last), n=1, cutoff=0.7)
    return by_last[close[0]] if close else None


def _all_keys(section: type[BaseModel], prefix: str = "") -> list[str]:
    keys = []
    for name, field in section.model_fields.items():
        annotation = field.annotation
        keys.append(prefix + name)
        if isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, BaseModel):
            keys += _all_keys(annotation, f"{prefix}{name}.")
    return keys
