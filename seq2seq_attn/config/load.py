"""Load configurations from packaged names, YAML files and single settings. Merge, check and dump
configurations."""

import copy
import difflib
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError
from yaml import YAMLError

from seq2seq_attn.config.data import LimitConfig
from seq2seq_attn.config.explain import explain, shorten, unknown_key
from seq2seq_attn.config.model import ModelConfig
from seq2seq_attn.config.run import Config
from seq2seq_attn.config.yaml_text import MAX_DEPTH, dump_yaml, parse_yaml
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import ListedFiles, open_regular, packaged

RUN_CONFIG = "config.yaml"
"""The name of the configuration file in a run directory."""
_MAX_BYTES = 1 << 20
_DEFAULT = "multi30k"
_BASE = "base"
"""The packaged configuration that only holds the defaults. Error messages do not suggest it."""
_REPLACED = ("data.test",)
"""Keys of mappings whose keys the user chooses. A later mapping replaces an earlier mapping, and a
dotted key (`data.test.mine`) is added to it."""
Settings: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]]
"""Values by dotted key, as a mapping or as pairs. A key may occur in several pairs."""
_DEFAULT_VARIANTS: dict[str, str] = {
    axis: section["name"]
    for axis, section in ModelConfig().model_dump().items()
    if isinstance(section, dict) and "options" in section
}
"""The default variant of each section of the model that has options."""

log = logging.getLogger(__name__)


class _Replacing(dict[str, Any]):
    """A mapping that replaces an earlier mapping instead of being merged into it."""


def load_config(
    config_names: Sequence[str | Path] = (), *settings: Settings | Sequence[str]
) -> Config:
    """Merge packaged configurations or YAML files, then single settings, and check the result.

    Later files and settings override earlier files and settings. The name of the configuration is
    the last `name` in a file, followed by the names of later files that set no `name`:
    `quickstart+bilinear`.

    Args:
        config_names: packaged configurations or YAML files.
        settings: single settings, as values by dotted key or as texts `KEY=VALUE`.

    Raises:
        UsageError: a file does not exist or is not a mapping, a key is unknown, or a value is not
            allowed.
    """
    merged: dict[str, Any] = {}
    for config_name in config_names:
        values = read_config(str(config_name))
        if "name" not in values:
            stem = Path(config_name).stem
            values["name"] = f"{merged['name']}+{stem}" if "name" in merged else stem
        merged = merge(merged, values)
    overlay: dict[str, Any] = {}
    for layer in settings:
        for item in layer.items() if isinstance(layer, Mapping) else layer:
            key, value = parse_setting(item) if isinstance(item, str) else item
            overlay = merge(overlay, nest(key, value), is_complete=False)
    return config_from_dict(merge(merged, overlay))


def config_from_dict(values: dict[str, Any]) -> Config:
    """Return the configuration with the settings of a plain mapping. Raises UsageError if a key or
    a value is not valid."""
    # Text that is not UTF-8 could not be written to the configuration of a run.
    try:
        json.dumps(values, ensure_ascii=False, default=str, skipkeys=True).encode()
    except UnicodeEncodeError as error:
        text = error.object[max(0, error.start - 40) : error.end]
        raise UsageError(
            f"{shorten(text)}: not valid text (not UTF-8); rename the file or folder"
        ) from None
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise UsageError(explain(error, values)) from None


def load_run_config(run_dir: ListedFiles) -> Config:
    """Return the full configuration of a run. Raises UserError if the folder is not a run
    directory, or if the configuration is damaged or from another version."""
    path = run_dir.folder / RUN_CONFIG
    if not path.is_file():
        raise UserError(
            f"{path.parent}: not a run directory (no {RUN_CONFIG}); name one that `seq2seq train` "
            "wrote"
        )
    content = run_dir.read(RUN_CONFIG)
    try:
        return config_from_dict(_parse_mapping(content, RUN_CONFIG))
    except UsageError as error:
        raise UserError(f"{path}: not readable by this version of seq2seq-attn: {error}") from None


def dump_config(config: Config) -> str:
    """Return the full configuration as YAML. `load_config` reads the text back unchanged."""
    return dump_yaml(config.model_dump(mode="json"))


def packaged_config_names() -> list[str]:
    """Return the names of all packaged configurations, for example `multi30k` and
    `attention/dot`."""
    root = packaged("configs")
    return sorted(str(path.relative_to(root).with_suffix("")) for path in root.rglob("*.yaml"))


def with_default(config_names: Sequence[str]) -> list[str]:
    """Return `config_names`, with `multi30k` as the first name if the list is empty or consists of
    packaged overlays, which set no `name`. Raises the UsageError of `read_config`."""
    is_complete = any(
        _is_file_name(config_name) or "name" in read_config(config_name)
        for config_name in config_names
    )
    if is_complete:
        return [*config_names]
    log.info(
        f"configuration: {_DEFAULT}, the default; choose another one with -c, or name your own "
        "text with --train"
    )
    return [_DEFAULT, *config_names]


def read_config(config_name: str, *, extended_by: Sequence[Path] = ()) -> dict[str, Any]:
    """Read a packaged configuration or a YAML file, and merge it over the configurations that it
    `extends`.

    Args:
        config_name: a packaged name or a path that ends in `.yaml` or `.yml`.
        extended_by: the files that extend this file, directly or through other files.

    Raises:
        UsageError: the file does not exist, is not a mapping in YAML, or extends itself.
    """
    what = f"config {shorten(config_name)}"
    path = _path_of(config_name, what)
    try:
        with open_regular(path) as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{what}: cannot be read ({error.strerror})") from None
    values = _parse_mapping(content, what)
    if any(path.samefile(other) for other in extended_by):
        raise UsageError(
            f"{what}: extends itself through {' -> '.join(map(str, (*extended_by, path)))}"
        )
    extends = values.pop("extends", [])
    parents = [extends] if isinstance(extends, str) else extends
    if not isinstance(parents, list) or not all(isinstance(parent, str) for parent in parents):
        raise UsageError(
            f"{what}: extends={shorten(extends)}: expected a packaged name, a .yaml file, or a "
            "list of them"
        )
    base: dict[str, Any] = {}
    for parent in parents:
        # the parent is a path relative to this file, or a packaged name
        is_beside = _is_file_name(config_name) and _is_file_name(parent)
        parent_name = str(path.parent / parent) if is_beside else parent
        base = merge(base, read_config(parent_name, extended_by=(*extended_by, path)))
    if "name" in base:
        # this name holds unless the file sets a name
        base = {**base, "name": f"{base['name']}+{path.stem}"}
    return merge(base, values)


def merge(
    base: dict[str, Any],
    overlay: dict[str, Any],
    *,
    is_complete: bool = True,
    default: str | None = None,
) -> dict[str, Any]:
    """Return the settings of `base`, overridden by the settings of `overlay`.

    Sections are merged, but an empty mapping and a mapping with a key in `_REPLACED` replace the
    mapping in `base`. The options of a section belong to the variant that the section names. They
    are dropped from `base` if `overlay` names another variant.

    Args:
        base: the settings that are overridden.
        overlay: the settings that override `base`.
        is_complete: whether the options of a `base` without a name belong to the `default` variant.
            When overrides are merged with each other, these options belong to the variant that
            `overlay` names instead.
        default: the default variant of the section.
    """
    merged = copy.copy(base)
    for key, value in overlay.items():
        old = merged.get(key)
        if key == "limit" and isinstance(old, int):  # a number limits the pairs of every text
            old = dict.fromkeys(LimitConfig.model_fields, old)
        if isinstance(old, dict) and isinstance(value, dict) and not isinstance(value, _Replacing):
            value = merge(old, value, is_complete=is_complete, default=_DEFAULT_VARIANTS.get(key))
        merged[key] = value
    former = base.get("name", default)
    has_variant = "options" in base and (is_complete or "name" in base)
    if has_variant and overlay.get("name", former) != former:
        merged["options"] = overlay.get("options", {})
    return merged


def parse_setting(text: str) -> tuple[str, Any]:
    """Return the key and the value of a text `KEY=VALUE`. The value is parsed as YAML. If it is not
    valid YAML, the value is the text itself. Raises UsageError if the key or value is missing."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key or not value.strip():
        raise UsageError(
            f"--set {shorten(text)}: expected KEY=VALUE, for example --set model.hidden_size=256, "
            "or KEY=null for none"
        )
    try:
        return key, parse_yaml(value)
    except YAMLError:
        return key, value


def nest(key: str, value: Any) -> dict[str, Any]:
    """Return a setting with a dotted key as nested mappings: `{"a": {"b": 1}}` for `a.b` and 1.
    Raises UsageError if the key has more than `MAX_DEPTH` names."""
    names = key.split(".")
    if len(names) > MAX_DEPTH:
        raise UsageError(unknown_key(key))
    nested = _mark_replacing(plain(value), key)
    for name in reversed(names):
        nested = {name: nested}
    values: dict[str, Any] = nested
    return values


def plain(value: Any) -> Any:
    """Convert values of NumPy, torch and pathlib to plain Python values, also inside mappings and
    lists."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.tolist() if hasattr(value, "tolist") else value


def _parse_mapping(content: bytes, what: str) -> dict[str, Any]:
    """Return the settings in the content of a file. Raises UsageError if the content is not a
    mapping in YAML. `what` is the name of the file in error messages."""
    if len(content) > _MAX_BYTES:
        raise UsageError(
            f"{what}: larger than {_MAX_BYTES >> 20} MiB; expected a configuration file"
        )
    try:
        values = parse_yaml(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: not UTF-8 (byte {error.object[error.start]:#04x})") from None
    except YAMLError as error:
        raise UsageError(f"{what}: not readable YAML ({error})") from None
    if not isinstance(values, dict) or not values:
        raise UsageError(
            f"{what}: expected a mapping of keys to values, at least a `name`, got "
            f"{shorten(values)}"
        )
    return {key: _mark_replacing(value, str(key)) for key, value in values.items()}


def _mark_replacing(value: Any, key: str) -> Any:
    """Return the value of a key, with each mapping that replaces an earlier mapping as a
    `_Replacing`."""
    if not isinstance(value, dict):
        return value
    mapping = {name: _mark_replacing(inner, f"{key}.{name}") for name, inner in value.items()}
    return mapping if mapping and key not in _REPLACED else _Replacing(mapping)


def _is_file_name(config_name: str) -> bool:
    return config_name.endswith((".yaml", ".yml"))


def _path_of(config_name: str, what: str) -> Path:
    """Return the path of a YAML file or packaged configuration. Raises UsageError if there is no
    packaged configuration of this name."""
    if _is_file_name(config_name):
        return Path(config_name)
    names = packaged_config_names()
    if config_name in names:
        return packaged("configs") / f"{config_name}.yaml"
    nearest = difflib.get_close_matches(config_name[:300], names, n=1)
    whole = [name for name in names if "/" not in name and name != _BASE]
    folders = sorted({name[: name.index("/") + 1] for name in names if "/" in name})
    hint = f"packaged ones are {', '.join(whole)}, and overlays under {', '.join(folders)}"
    if nearest:
        hint = f"did you mean {nearest[0]!r}?"
    raise UsageError(f"{what}: no packaged config of that name and not a .yaml file; {hint}")
