"""Load, merge, check and dump configurations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from seq2seq_attn.config.explain import explain
from seq2seq_attn.config.models import Config
from seq2seq_attn.config.sources import merge, parse_value, read_source
from seq2seq_attn.errors import UsageError


def load_config(sources: Sequence[str] = (), overrides: Sequence[str] = ()) -> Config:
    """Merge packaged names or YAML files, later wins, then `KEY=VALUE` overrides, and check the result. Where none of
    them says `name`, it is the last file's.

    Raises:
        UsageError: a file that is not there or is not a mapping, an unknown key (with the nearest valid one), a value
            outside what its key allows.
    """
    merged: dict[str, Any] = {}
    for source in sources:
        merged = merge(merged, read_source(source))
    if sources and "name" not in merged:
        merged["name"] = Path(sources[-1]).stem
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {override!r}: expected KEY=VALUE, for example --set model.hidden_size=256")
        merged = merge(merged, _nest(key.strip(), parse_value(text)))
    return config_from_dict(merged)


def config_from_dict(values: dict[str, Any]) -> Config:
    """Check a plain mapping against the models.

    Raises:
        UsageError: as `load_config`.
    """
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise UsageError(explain(error)) from None


def dump_config(config: Config) -> str:
    """The full resolved configuration as YAML; `load_config` of it gives the same configuration."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _nest(dotted: str, value: Any) -> dict[str, Any]:
    for part in reversed(dotted.split(".")):
        value = {part: value}
    nested: dict[str, Any] = value
    return nested
