"""YAML files, packaged configurations and `KEY=VALUE` texts as plain mappings, merged."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import yaml

from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import packaged


def packaged_config_names() -> list[str]:
    """The names `-c` takes: `multi30k`, `tutorial`, `attention/dot`, ..."""
    root = packaged("configs")
    return sorted(str(path.relative_to(root).with_suffix("")) for path in root.rglob("*.yaml"))


def read_source(source: str, seen: tuple[str, ...] = ()) -> dict[str, Any]:
    """A packaged configuration or a YAML file, on top of those that it `extends`.

    Raises:
        UsageError: there is no such file, or it is not a mapping in YAML.
    """
    if source in seen:
        raise UsageError(f"config {source!r}: extends itself through {' -> '.join((*seen, source))}")
    path = Path(source)
    is_file_name = path.suffix in (".yaml", ".yml")
    if not is_file_name:
        names = packaged_config_names()
        if source not in names:
            nearest = difflib.get_close_matches(source, names, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"packaged configs are {', '.join(names)}"
            raise UsageError(f"config {source!r}: no packaged config of that name and not a .yaml file; {hint}")
        path = packaged("configs") / f"{source}.yaml"
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"config {source!r}: no such file") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"config {source!r}: not readable YAML ({' '.join(str(error).split())})") from None
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise UsageError(f"config {source!r}: expected a mapping of keys to values, got {type(values).__name__}")
    parents = values.pop("extends", [])
    base: dict[str, Any] = {}
    for parent in [parents] if isinstance(parents, str) else parents:
        # a file named beside this one, or a packaged name
        beside = path.parent / parent
        resolved = str(beside) if is_file_name and beside.suffix in (".yaml", ".yml") else parent
        base = merge(base, read_source(resolved, (*seen, source)))
    return merge(base, values)


def merge(base: dict[str, Any], overlay: dict[str, Any]) -> dict[str, Any]:
    """`base` with the values of `overlay`, section by section."""
    merged = dict(base)
    for key, value in overlay.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    # A variant's options belong to that variant: naming another one drops the options merged so far.
    if "options" in base and overlay.get("name", base.get("name")) != base.get("name"):
        merged["options"] = overlay.get("options", {})
    return merged


def parse_value(text: str) -> Any:
    """The value of a `KEY=VALUE` override: YAML, or the text itself if it is none."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    if isinstance(value, str):
        try:
            return float(value)  # YAML 1.1 reads 1e-3 as a string
        except ValueError:
            return value
    return value
