"""Load, merge, check and dump configurations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from seq2seq_attn.config.explain import explain, shorten
from seq2seq_attn.config.run import Config
from seq2seq_attn.config.sources import merge, parse_override, read_config
from seq2seq_attn.errors import UsageError


def load_config(config_names: Sequence[str] = (), overrides: Sequence[str] = ()) -> Config:
    """Merge packaged configurations or YAML files (later wins), then `KEY=VALUE` overrides, and check the result.

    The result's name is the last `name` in a file, plus the names of later files without one: `quickstart+bilinear`.

    Raises:
        UsageError: a file does not exist or is not a mapping, a key is unknown, or a value is not allowed.
    """
    merged: dict[str, Any] = {}
    for config_name in config_names:
        values = read_config(config_name)
        if "name" not in values:
            stem = Path(config_name).stem
            values["name"] = f"{merged['name']}+{stem}" if "name" in merged else stem
        merged = merge(merged, values)
    given: dict[str, Any] = {}
    for override in overrides:
        given = merge(given, parse_override(override), is_complete=False)
    return config_from_dict(merge(merged, given))


def config_from_dict(values: dict[str, Any]) -> Config:
    """Check a plain mapping and make it a configuration.

    Raises:
        UsageError: as `load_config`.
    """
    _check_text(values)
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise UsageError(explain(error)) from None


def dump_config(config: Config) -> str:
    """The full configuration as YAML. `load_config` reads it back unchanged."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _check_text(values: object, key: str = "") -> None:
    """Reject text that cannot be UTF-8 (lone surrogates)."""
    if isinstance(values, dict):
        for name, value in values.items():
            _check_text(value, f"{key}.{name}" if key else str(name))
    elif isinstance(values, list):
        for value in values:
            _check_text(value, key)
    elif isinstance(values, str) and ("\0" in values or not _is_unicode(values)):
        raise UsageError(f"{key}={shorten(values)}: not valid text (NUL or not UTF-8); rename the file or folder")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
