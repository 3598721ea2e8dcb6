"""Build a configuration from configuration files, single settings, and a parallel text of the user.

"Source" means the side to translate from. A sentence may have several sources, one per language.
"""

import logging
import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from seq2seq_attn.api.own_text import (
    choose_batch_size,
    choose_budget,
    choose_config,
    choose_settings,
    choose_validations,
    warn_about_unspaced_targets,
)
from seq2seq_attn.api.text_counts import count_text
from seq2seq_attn.config import Config, DataConfig, load_config, shorten
from seq2seq_attn.config.load import RUN_CONFIG, Settings, read_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import list_names
from seq2seq_attn.run import Run
from seq2seq_attn.text.corpus import KINDS, Spec, Text, find_text
from seq2seq_attn.text.languages import CODE, CODES_BY_NAME, short_code

Names = str | Path | Sequence[str | Path]
"""The name of a file, or the names of several files."""
ConfigNames = Names | None
"""Packaged configurations or YAML files. A later file overrides an earlier file."""

LIMITS = ("train.max_epochs", "train.max_updates")
"""settings that limit the duration of training"""

log = logging.getLogger(__name__)


class OwnText(TypedDict, total=False):
    """The user's parallel text: training, validation and test pairs, and the two languages.

    Each of the three texts is a prefix, a table, or a list of source file and target file.
    """

    train_text: Names
    valid_text: Names
    test_text: Names
    source_language: str
    target_language: str


class Layers(NamedTuple):
    """Configuration files, and settings that override the files. Later layers override earlier
    layers."""

    config_names: list[str]
    settings: list[Settings]

    def load(self, *more: Settings) -> Config:
        """Merge the layers, and more settings after them, into a configuration. Raises the
        UsageError of `load_config`."""
        return load_config(self.config_names, *self.settings, *more)


def find_layers(
    config: ConfigNames,
    settings: Settings | None,
    text: OwnText,
    *,
    from_run: Path | None = None,
    resumed: Path | None = None,
    varied: Settings | None = None,
) -> Layers:
    """Return the layers of a configuration: the files, the settings, and settings for the text.

    A text adds its languages and a name such as `own-en-fr` to the settings. If no configuration
    file sets a name, the packaged configuration for a corpus of this size becomes the first file.

    Args:
        config: configuration files.
        settings: single settings, which override the files.
        text: the user's parallel text, if there is one.
        from_run: a run to fine-tune. Its configuration has a name, languages and settings.
        resumed: a run to resume. Its configuration has a name, languages and settings.
        varied: settings that the caller will vary, with any of their values.

    Raises:
        UsageError: a configuration does not exist; `--from`, `--valid` or `--test` is given without
            `--train`; there are too many files; the text does not name its languages, or it
            contradicts the languages in the options; or the name of a text resembles the name of
            an existing file.
        UserError: a file does not exist or cannot be read.
    """
    layers = Layers(list_names(config or ()), [varied or {}, settings or {}])
    if from_run is not None:
        layers.settings.insert(0, {"data.vocab_from": from_run, "train.start_from": from_run})
        if "train_text" not in text:
            raise UsageError(f"--from {from_run}: expected --train TEXT, the text to tune it on")
        if resumed is None:
            layers.config_names[:0] = [str(from_run / RUN_CONFIG), "finetune"]
    loaded = layers.load()
    data = loaded.data if resumed is None else Run(resumed).config.data
    source, target = _find_languages(text, data)
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


def _find_languages(text: OwnText, data: DataConfig) -> tuple[str | None, str | None]:
    """Return the languages that the options name. Raises UsageError if `source_language`
    contradicts the configuration."""
    source = _lower_code(text.get("source_language"))
    if source and data.source_languages:
        raise UsageError(
            f"--source-language {source}: data.source_languages has the sources; leave this out"
        )
    return source, _lower_code(text.get("target_language"))


def _lower_code(code: str | None) -> str | None:
    """Return the code of a language that is named by an English name, or in upper case (`EN`).

    A code of more than two letters, such as `deu_Latn`, is returned unchanged, because it has to
    equal the name of a file or column, including upper case.
    """
    if code:
        name = code.lower()
        if short_code(code) in (name, CODES_BY_NAME.get(name)):
            return short_code(code)
    return code


def _find_specs(text: OwnText) -> dict[str, Spec]:
    """Return the names of the texts by setting, for example `data.train`. Raises UsageError if a
    name is empty or the training text is missing."""
    specs: dict[str, Spec] = {}
    for key, names in (
        ("data.train", text.get("train_text")),
        ("data.valid", text.get("valid_text")),
        ("data.test.test", text.get("test_text")),
    ):
        if not names:
            continue
        paths = list(map(os.path.expanduser, list_names(names)))
        if not text.get("train_text") or not all(paths):
            raise UsageError(
                f"{key}={shorten(paths)}: expected --train TEXT and the names of files: {KINDS}"
            )
        specs[key] = paths[0] if len(paths) == 1 else paths
    return specs


def _find_training_text(
    spec: Spec, source: str | None, target: str | None, data: DataConfig
) -> Text:
    """Locate the training text and return it with its languages.

    A language of the options (`source`, `target`) comes first, then a language that the
    configuration sets, then the language that the names of files or columns tell.
    """
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
    check_languages(train.languages)
    return train


def check_languages(languages: Sequence[str]) -> None:
    """Warn about languages that may be mistakes: a misspelt English name, and one language on
    both sides. Both may be right: a name may be any label, and a text may be rewritten."""
    for code in map(short_code, languages):
        similar = get_close_matches(code, CODES_BY_NAME, n=1, cutoff=0.8)
        if similar and not CODE.fullmatch(code):
            log.warning("%s: an unknown language; did you mean %s?", code, *similar)
    if len({*languages}) < len(languages):
        log.warning("source and target are in one language: %s", languages[-1])


def _describe_text(train: Text, specs: dict[str, Spec], data: DataConfig) -> dict[str, Any]:
    """Return the settings in the section `data` that name the texts and their languages."""
    settings: dict[str, Any] = {"data.corpus": "files", **specs}
    settings["data.target_language"] = train.languages[-1]
    if not data.source_languages:
        settings["data.source_language"] = train.languages[0]
    return settings


def _fit_to_text(layers: Layers, train: Text, config: Config) -> None:
    """Add a name with the text's languages, and settings that suit the text, to `layers`. The
    user's settings override them.

    If no configuration file sets a name, the packaged configuration for a corpus of this size comes
    first, and `choose_settings` chooses tokenizers, limits on lengths and the metric. The size of
    batches is always chosen, and the number of updates unless a file or a setting limits epochs or
    updates. `config` is the configuration from the user's files and settings alone.
    """
    names = layers.config_names
    is_set = config.flat(exclude_unset=True)
    counts = count_text(train, config.data.limit.train)
    chosen: dict[str, Any] = {}
    if not any("name" in read_config(name) for name in names):
        names.insert(0, choose_config(counts))  # also changes `layers`
        data = layers.load().data
        chosen = choose_settings(counts, data, has_tokens="data.tokenizer.name" in is_set)
    configured = Layers(names, [chosen, is_set, *layers.settings]).load()
    tokenizer = configured.data.tokenizer
    warn_about_unspaced_targets(counts.target, tokenizer)
    batch = configured.train.batch
    if "train.batch.size" not in is_set:
        chosen["train.batch.size"] = choose_batch_size(counts, tokenizer, batch)
        batch = batch.model_copy(update={"size": chosen["train.batch.size"]})
    has_limit = any(is_set.get(key) for key in LIMITS)
    if not has_limit:
        chosen |= choose_budget(counts, tokenizer, batch)
    else:
        chosen |= choose_validations(counts, tokenizer, batch, is_set.get("train.max_updates"))
        if "train.validation.patience" not in is_set:
            log.info(
                "training: patience is off, because train.max_updates or train.max_epochs is set; "
                "train.validation.patience=N ends training after N validations without a better "
                "score"
            )
    # A setting of the user takes the place of the chosen one.
    for key, value in is_set.items():
        suggested = chosen.pop(key, None)
        if suggested not in (None, value):
            log.info("%s: %s, as set, instead of %s", key, value, suggested)
    *sources, target = train.languages
    # The names of overlays stay at the end: `own+bilinear` becomes `own-de-en+bilinear`.
    head, *overlays = load_config(names).name.split("+")
    source_codes = "+".join(sources)
    chosen["name"] = "+".join([f"{head}-{source_codes}-{target}", *overlays])
    layers.settings.insert(0, chosen)
