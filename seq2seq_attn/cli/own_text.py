"""Turn the options of a command into a configuration: of a text its languages, and settings for its
size."""

import logging
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

from seq2seq_attn.cli.options import ConfigOptions, OwnText
from seq2seq_attn.config import Config, load_config, shorten
from seq2seq_attn.config.load import RUN_CONFIG, as_overrides, load_run_config, read_config
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.metrics.bleu import MIN_LONG, Measure
from seq2seq_attn.text.corpus import KINDS, Spec, Text, find_text
from seq2seq_attn.text.languages import separates_words
from seq2seq_attn.text.tokenizers.base import NONE, VECTORS

SIZES = ((2_000, "own-tiny"), (20_000, "own-small"), (200_000, "own"))
"""A configuration for corpora of fewer pairs than each limit; `own-large` for larger ones."""
NUM_PAIRS_TO_COUNT, SUBWORDS_PER_CHARACTER, MIN_SHARED = 10_000, 2, 0.5
"""A subword vocabulary has at least so many times the distinct characters of the first pairs:
Chinese has thousands. Both sides share one if at least this share of their letters are the same."""
NUM_LINES_TO_TRY, MAX_BROKEN = 1_000, 0.005
"""words are the tokens if at most this share of the first so many target lines gets a space inside
a word"""

_KEYS = {
    "links": "data.links",
    "data_dir": "data.data_dir",
    "source_dir": "data.source_dir",
    "device": "train.device",
    "precision": "train.precision",
    "seed": "seed",
}
"""options that stand for a setting"""

log = logging.getLogger(__name__)


def find_settings(
    options: ConfigOptions, *, from_run: Path | None = None, resumed: Path | None = None
) -> tuple[list[str], list[str]]:
    """The options of a command as `config_names` and `overrides` of `load_config`. A text adds its
    languages, a name such as `own-en-fr`, and, unless a configuration sets a name, the
    configuration for a corpus of this size; a run to be tuned (`from_run`) has name, languages and
    settings. So has a run that is `resumed`.

    Raises:
        UsageError: as `_check_tuning`, `--valid` or `--test` without `--train`, too many files,
            languages that the text does not name or that contradict it, or a name close to that of
            an existing file.
        UserError: a file does not exist or cannot be read.
    """
    config_names = [*options.get("config", [])]
    named = {_KEYS[name]: value for name, value in options.items() if name in _KEYS}
    overrides = [*options.get("settings", []), *as_overrides(named)]
    if from_run is not None:
        overrides += as_overrides({"data.vocab_from": from_run, "train.start_from": from_run})
        if resumed is None:
            _check_tuning(from_run, options)
            config_names = [str(from_run / RUN_CONFIG), "finetune", *config_names]
    codes = (options.get("source_language"), options.get("target_language"))
    source, target = (code.lower() if code and len(code) == 2 else code for code in codes)
    config = load_config(config_names, overrides)
    data = config.data if resumed is None else load_run_config(resumed).data
    chosen = data.model_fields_set
    if source and data.source_languages:
        raise UsageError(
            f"--source-language {source}: data.source_languages has the sources; leave this out"
        )
    specs = _find_specs(options)
    if not specs:
        languages = {"data.source_language": source, "data.target_language": target}
        return config_names, [
            *overrides,
            *as_overrides({key: code for key, code in languages.items() if code}),
        ]
    source = source or (data.source_language if "source_language" in chosen else None)
    if data.source_languages or "target_language" in chosen:
        target = target or data.target_language
    wanted: tuple[str | None, ...] = (
        (*data.source_languages, target) if data.source_languages else (source, target)
    )
    train = find_text(specs["data.train"], *wanted)
    if None in wanted:
        log.info(
            "languages: %s; change with --source-language, --target-language",
            " -> ".join(train.languages),
        )
    *sources, target = train.languages
    languages = {"data.target_language": target}
    if not data.source_languages:
        languages["data.source_language"] = sources[0]
    overrides += as_overrides({"data.corpus": "files", **languages, **specs})
    if resumed is not None or from_run is not None:
        return config_names, overrides
    is_complete = any("name" in read_config(name) for name in config_names)
    settings = {} if is_complete else _choose_settings(train, config, config_names, overrides)
    head, *overlays = load_config(config_names).name.split("+")
    settings["name"] = "+".join([f"{head}-{'+'.join(sources)}-{target}", *overlays])
    return config_names, [*as_overrides(settings), *overrides]


def _check_tuning(run: Path, options: ConfigOptions) -> None:
    """Raises UsageError if there is no text to tune a run on, no such run, or it translates other
    languages."""
    if "train_text" not in options:
        raise UsageError(f"--from {run}: expected --train TEXT, the text to tune it on")
    try:
        data = load_run_config(run).data
    except UserError as error:
        raise UsageError(f"--from {error}") from None
    for side, language in (("source", data.source_name), ("target", data.target_language)):
        code = options.get(f"{side}_language", language)
        if code != language:
            raise UsageError(
                f"--{side}-language {code}: --from {run} has {language}; leave this out"
            )


def _find_specs(options: ConfigOptions) -> dict[str, Spec]:
    """The text of each split that the command line names, by key."""
    train = options.get("train_text")
    named = {
        "data.train": train,
        "data.valid": options.get("valid_text"),
        "data.test.test": options.get("test_text"),
    }
    specs: dict[str, Spec] = {}
    for key, names in named.items():
        if not names:
            continue
        if not (train and all(names)):
            raise UsageError(
                f"{key}={shorten(names)}: expected --train TEXT and the names of files: {KINDS}"
            )
        paths = [*map(os.path.expanduser, [names] if isinstance(names, str) else names)]
        specs[key] = paths[0] if len(paths) == 1 else paths
    return specs


def _choose_settings(
    text: Text, config: Config, config_names: list[str], overrides: list[str]
) -> dict[str, object]:
    """Put the configuration for a text of this size first. Returns what the text needs besides,
    unless it is set: chrF to choose the best model where few targets have four words, as BLEU's
    largest n-grams are in those alone; `softmax` for vectors, which have no embeddings for
    `lexical`; and subwords as many as the characters ask for, in a vocabulary per side if these
    differ."""
    num_pairs = min(sum(1 for _ in text.pairs()), config.data.limit.train or sys.maxsize)
    config_names.insert(0, next((name for size, name in SIZES if num_pairs < size), "own-large"))
    log.info(
        "settings: %s, for %s pairs; change them with -c and --set",
        config_names[0],
        f"{num_pairs:,}",
    )
    settings: dict[str, object] = {}
    pairs = [*islice(text.pairs(), NUM_PAIRS_TO_COUNT)]
    targets = [target for _, target in pairs[:NUM_LINES_TO_TRY]]
    language = text.languages[-1]
    share = (
        Measure("bleu", targets, target_language=language).statistics(targets).share_long
        if targets
        else 1.0
    )
    if share < MIN_LONG:
        why = f"few targets have four words separated by spaces ({100 * share:.0f} %)"
        log.info("validation: chrF chooses the best model, because %s", why)
        settings["train.validation.metric"] = "chrf"
    if VECTORS in text.languages:
        settings["model.output.name"] = "softmax"
    tokenizer = load_config(config_names, overrides).data.tokenizer
    if tokenizer.name == "spacy" and (reason := _why_no_words(targets, text.languages)):
        log.info("tokenizer: sentencepiece, because %s", reason)
        settings["data.tokenizer.name"] = "sentencepiece"
    if pairs and "sentencepiece" in (tokenizer.name, settings.get("data.tokenizer.name")):
        sides = [*map(Counter, map("".join, zip(*pairs, strict=True)))][
            text.languages[0] == VECTORS :
        ]
        letters = [
            Counter({character: side[character] for character in side if character.isalpha()})
            for side in sides
        ]
        is_joint = (letters[0] & letters[-1]).total() >= MIN_SHARED * min(
            each.total() for each in letters
        )
        num_characters = len(sides[0] | sides[-1]) if is_joint else max(map(len, sides))
        settings["data.tokenizer.vocab_size"] = max(
            tokenizer.vocab_size, SUBWORDS_PER_CHARACTER * num_characters
        )
        if not is_joint:
            log.info(
                "tokenizer: a vocabulary of subwords for each side, because their letters differ"
            )
            settings["data.tokenizer.joint"] = False
    chosen = config.flat(exclude_unset=True)
    return {key: value for key, value in settings.items() if key not in chosen}


def _why_no_words(targets: Sequence[str], languages: Sequence[str]) -> str | None:
    """Why words would not do: spaCy does not split a language into words, or those of the target
    could not be joined again."""
    from seq2seq_attn.text.tokenizers.words import breaks_words, spacy_language

    texts = [language for language in languages if language not in (NONE, VECTORS)]
    if whole := [
        language
        for language in texts
        if spacy_language(language) == "xx" or not separates_words(language)
    ]:
        return f"spaCy does not split {' and '.join(whole)} into words"
    if (share := breaks_words(languages[-1], targets)) > MAX_BROKEN:
        return (
            f"detokenizing would put spaces inside words in {100 * share:.1f} % of the target lines"
        )
    return None


def from_python(
    config: str | Path | Sequence[str | Path] | None,
    settings: Mapping[str, Any] | None,
    text: OwnText,
) -> ConfigOptions:
    """The arguments of a Python function as the options of a command."""
    names = [config] if isinstance(config, str | Path) else config or []
    values: Mapping[str, Any] = text
    texts = {
        key: str(x) if isinstance(x, str | Path) else [*map(str, x)] for key, x in values.items()
    }
    return {
        "config": [*map(str, names)],
        "settings": as_overrides(settings or {}),
        **cast(OwnText, texts),
    }
