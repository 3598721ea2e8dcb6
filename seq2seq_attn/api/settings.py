"""Make a configuration of files, settings, and a text of the user's own."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from seq2seq_attn.api.own_text import choose_config, choose_settings
from seq2seq_attn.config import Config, DataConfig, load_config, shorten
from seq2seq_attn.config.load import RUN_CONFIG, Settings, read_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.run import Run
from seq2seq_attn.text.corpus import KINDS, Spec, Text, find_text

ConfigNames = str | Path | Sequence[str | Path] | None
"""A packaged configuration or YAML file, or several; later ones win."""

log = logging.getLogger(__name__)


class OwnText(TypedDict, total=False):
    """A text of the user's own: each split is a prefix, a table, or a list of source file and
    target file."""

    train_text: str | Path | Sequence[str | Path]
    valid_text: str | Path | Sequence[str | Path]
    test_text: str | Path | Sequence[str | Path]
    source_language: str
    target_language: str


class Layers(NamedTuple):
    """What a configuration is made of: files, and settings on top of them. Later ones win."""

    config_names: list[str]
    settings: list[Settings]

    def load(self) -> Config:
        """The configuration. Raises UsageError as `load_config`."""
        return load_config(self.config_names, *self.settings)


def find_layers(
    config: ConfigNames,
    settings: Settings | None,
    text: OwnText,
    *,
    from_run: Path | None = None,
    resumed: Path | None = None,
) -> Layers:
    """The layers of a configuration. A text adds its languages, a name such as `own-en-fr`, and,
    unless a configuration sets a name, the configuration for a corpus of this size. A run to be
    tuned (`from_run`) or `resumed` has name, languages and settings already.

    Raises:
        UsageError: there is no such configuration; `--from`, `--valid` or `--test` without
            `--train`, too many files, languages that the text does not name or that contradict it,
            or a name close to that of an existing file.
        UserError: a file does not exist or cannot be read.
    """
    layers = Layers(_list_names(config), [settings or {}])
    if from_run is not None:
        layers.settings.append({"data.vocab_from": from_run, "train.start_from": from_run})
        if "train_text" not in text:
            raise UsageError(f"--from {from_run}: expected --train TEXT, the text to tune it on")
        if resumed is None:
            layers.config_names[:0] = [str(from_run / RUN_CONFIG), "finetune"]
    loaded = layers.load()
    data = loaded.data if resumed is None else Run(resumed).config.data
    source = _lower_code(text.get("source_language"))
    target = _lower_code(text.get("target_language"))
    if source and data.source_languages:
        raise UsageError(
            f"--source-language {source}: data.source_languages has the sources; leave this out"
        )
    specs = _find_specs(text)
    if not specs:
        languages = {"data.source_language": source, "data.target_language": target}
        layers.settings.append({key: code for key, code in languages.items() if code})
        return layers
    train = _find_training_text(specs["data.train"], source, target, data)
    layers.settings.append(_describe_text(train, specs, data))
    if from_run is None and resumed is None:
        _fit_to_text(layers, train, loaded)
    return layers


def _list_names(config: ConfigNames) -> list[str]:
    if config is None:
        return []
    names = [config] if isinstance(config, str | Path) else config
    return [str(name) for name in names]


def _lower_code(code: str | None) -> str | None:
    return code.lower() if code and len(code) == 2 else code


def _find_specs(text: OwnText) -> dict[str, Spec]:
    """The named text of each split, by its setting. Raises UsageError: a name is empty, or there is
    no training text."""
    specs: dict[str, Spec] = {}
    for key, names in (
        ("data.train", text.get("train_text")),
        ("data.valid", text.get("valid_text")),
        ("data.test.test", text.get("test_text")),
    ):
        if not names:
            continue
        listed = [names] if isinstance(names, str | Path) else names
        paths = [os.path.expanduser(name) for name in listed]
        if not text.get("train_text") or not all(paths):
            raise UsageError(
                f"{key}={shorten(paths)}: expected --train TEXT and the names of files: {KINDS}"
            )
        specs[key] = paths[0] if len(paths) == 1 else paths
    return specs


def _find_training_text(
    spec: Spec, source: str | None, target: str | None, data: DataConfig
) -> Text:
    """The training text, in the named languages, else those that the configuration sets, else those
    that the text names."""
    is_set = data.model_fields_set
    if source is None and "source_language" in is_set:
        source = data.source_language
    if target is None and (data.source_languages or "target_language" in is_set):
        target = data.target_language
    sources: list[str | None] = [*data.source_languages] or [source]
    train = find_text(spec, *sources, target, columns=data.columns)
    if None in (*sources, target):
        languages = " -> ".join(train.languages)
        log.info("languages: %s; change with --source-language, --target-language", languages)
    return train


def _describe_text(train: Text, specs: dict[str, Spec], data: DataConfig) -> dict[str, Any]:
    """The settings of data that name a text and its languages."""
    settings: dict[str, Any] = {"data.corpus": "files", **specs}
    settings["data.target_language"] = train.languages[-1]
    if not data.source_languages:
        settings["data.source_language"] = train.languages[0]
    return settings


def _fit_to_text(layers: Layers, train: Text, config: Config) -> None:
    """Put a name for the text's languages and the settings that suit the text below the settings of
    the user, unless a configuration has a name of its own."""
    names = layers.config_names
    chosen: dict[str, Any] = {}
    if not any("name" in read_config(name) for name in names):
        names.insert(0, choose_config(train, config.data.limit.train))
        is_set = config.flat(exclude_unset=True)
        for key, value in choose_settings(train, layers.load().data.tokenizer).items():
            if key not in is_set:
                chosen[key] = value
    *sources, target = train.languages
    head, *overlays = load_config(names).name.split("+")
    chosen["name"] = "+".join([f"{head}-{'+'.join(sources)}-{target}", *overlays])
    layers.settings.insert(0, chosen)
