"""Turn `--train TEXT` and related options into a configuration: corpus, languages, and settings for its size."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from seq2seq_attn.cli.options import as_settings, given
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.config.section import Section
from seq2seq_attn.config.sources import read_config
from seq2seq_attn.data.own_text import check_headers
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.metrics.bleu import MIN_LONG, Measure
from seq2seq_attn.text.corpus import count_lines
from seq2seq_attn.text.parallel import KINDS, Spec, check_suffixes, find_languages, find_text
from seq2seq_attn.text.parallel_files import Text
from seq2seq_attn.text.tokenizers.base import VECTORS

SIZES = ((2_000, "own-tiny"), (20_000, "own-small"), (200_000, "own"))
"""A configuration for corpora of fewer pairs than each limit; `own-large` for larger ones."""
NUM_SUBWORDS, SUBWORDS_PER_CHARACTER = 1_000, 2
"""The size of a subword vocabulary is at least the first, and at least the second times the number of distinct
characters, of which Chinese has thousands."""
NUM_LINES_TO_TRY, MAX_BROKEN = 1_000, 0.1
"""words are the tokens if at most this share of the first so many target lines gets a space inside a word"""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OwnText:
    """The options as given on the command line."""

    train: Sequence[str] | None = None
    valid: Sequence[str] | None = None
    test: Sequence[str] | None = None
    source_language: str | None = None
    target_language: str | None = None


def with_own_text(
    text: OwnText, config_names: Sequence[str], overrides: Sequence[str], *, is_resumed: bool = False
) -> tuple[list[str], list[str]]:
    """Add the options to the `config_names` and `overrides` of `load_config`: corpus, languages, a name such as
    `own-en-fr`, and, unless a configuration sets a name, the configuration for a corpus of this size. A resumed run
    has name and settings already.

    Raises:
        UsageError: `--valid` or `--test` without `--train`, too many files, languages that the file names do not
            give or that contradict them, or a name close to that of an existing file.
        UserError: a file does not exist or cannot be read.
    """
    text = replace(text, source_language=_code(text.source_language), target_language=_code(text.target_language))
    languages = {"data.source_language": text.source_language, "data.target_language": text.target_language}
    if not text.train:
        _check_alone(text)
        if text.source_language is not None:
            _check_source_language(text.source_language, load_config(config_names, overrides))
        return list(config_names), [*overrides, *as_settings(given(languages))]
    config = load_config(config_names, overrides)
    options = {"train": text.train, "valid": text.valid, "test": text.test}
    specs = {name: _spec(f"--{name}", value, len(config.data.sources)) for name, value in options.items() if value}
    *source_languages, target = _languages(specs["train"], text, config)
    for spec in specs.values():
        check_suffixes(spec, *source_languages, target)
    texts = [find_text(spec, *source_languages, target) for spec in specs.values()]
    check_headers(texts)
    corpus = {"data.corpus": "files", "data.train": specs["train"], "data.valid": specs.get("valid")}
    tests = {"data.test.test": specs["test"]} if "test" in specs else {}
    source = "+".join(source_languages)
    languages = {"data.target_language": target}
    languages |= {"data.source_language": source} if not config.data.source_languages else {}
    config_names, overrides = list(config_names), [*overrides, *as_settings(given({**corpus, **tests, **languages}))]
    if is_resumed:
        return config_names, overrides
    fallback: dict[str, object] = {}
    if not any("name" in read_config(name) for name in config_names):
        config_names.insert(0, _suitable_config(texts[0], config.data.limit.train))
        targets = [line for _, line in islice(texts[0].pairs(), NUM_LINES_TO_TRY)]
        fallback = _metric_for(targets) | _output_for(source_languages)
        if not _is_set(config, "data.tokenizer.name"):
            fallback |= _tokenizer_for(load_config(config_names), texts[0], targets, *source_languages, target)
        fallback = {key: value for key, value in fallback.items() if not _is_set(config, key)}
    head, *overlays = load_config(config_names).name.split("+")
    name = {"name": "+".join([f"{head}-{source}-{target}", *overlays])}
    return config_names, [*as_settings(name | fallback), *overrides]


def _check_alone(text: OwnText) -> None:
    """Raises UsageError if there is a text for validation or test without one for training."""
    for option, value in (("--valid", text.valid), ("--test", text.test)):
        if value:
            raise UsageError(
                f"{option} {value[0]}: needs --train TEXT; with a configuration that names data.train, set data.valid "
                "or data.test"
            )


def _code(language: str | None) -> str | None:
    """A code of two letters in lower case, as in a header."""
    return language.lower() if language and len(language) == 2 else language


def _spec(option: str, values: Sequence[str], num_sources: int) -> Spec:
    if len(values) > num_sources + 1:
        files = "twice: source, target" if num_sources == 1 else f"{num_sources + 1} times: the sources, the target"
        raise UsageError(f"{option}: {len(values)} values; give one prefix or table, or the option {files}")
    if not all(values):
        raise UsageError(f"{option} '': an empty name; expected {KINDS}")
    names = [os.path.expanduser(value) for value in values]
    return names[0] if len(names) == 1 else names


def _languages(train: Spec, text: OwnText, config: Config) -> tuple[str, ...]:
    """As given by options or configuration, else as read from the files, which is logged. The target comes last."""
    if config.data.source_languages:
        if text.source_language is not None:
            _check_source_language(text.source_language, config)
        return *config.data.sources, text.target_language or config.data.target_language
    chosen = config.data.model_fields_set
    source = text.source_language or (config.data.source_language if "source_language" in chosen else None)
    target = text.target_language or (config.data.target_language if "target_language" in chosen else None)
    languages = find_languages(train, source, target)
    if None in (source, target):
        log.info(
            "languages: %s -> %s, from the training text; change with --source-language, --target-language", *languages
        )
    return languages


def _check_source_language(language: str, config: Config) -> None:
    """Raises UsageError if the configuration names the sources in `data.source_languages`, which comes first."""
    if config.data.source_languages:
        raise UsageError(f"--source-language {language}: data.source_languages has the sources; leave this out")


def _is_set(section: Section, key: str) -> bool:
    """Whether a configuration file or `--set` gives the value of a key."""
    name, _, rest = key.partition(".")
    return name in section.model_fields_set and (not rest or _is_set(getattr(section, name), rest))


def _suitable_config(text: Text, limit: int | None) -> str:
    num_pairs = count_lines(text.paths[0])  # an estimate, as a table may have a header and blank lines
    if not num_pairs:
        raise UserError(f"{' and '.join(map(str, text.paths))}: no sentence pair; the file is empty")
    num_pairs = min(limit or num_pairs, num_pairs)
    name = next((name for size, name in SIZES if num_pairs < size), "own-large")
    log.info("settings: %s, for %s lines of text; change them with -c and --set", name, f"{num_pairs:,}")
    return name


def _metric_for(targets: Sequence[str]) -> dict[str, object]:
    """Choose the best model by chrF where few targets have four words: BLEU's largest n-grams are in those alone."""
    share = Measure("bleu", targets).statistics(targets).share_long if targets else 1.0
    if share >= MIN_LONG:
        return {}
    few = f"few targets have four words separated by spaces ({100 * share:.0f} %)"
    why = few if share else "no target has four words separated by spaces"
    log.info("validation: chrF chooses the best model, because %s", why)
    return {"train.validation.metric": "chrf"}


def _output_for(source_languages: Sequence[str]) -> dict[str, object]:
    """`lexical`, which the configurations have, reads the embeddings of source tokens: vectors have none."""
    return {"model.output.name": "softmax"} if VECTORS in source_languages else {}


def _tokenizer_for(config: Config, text: Text, targets: Sequence[str], *languages: str) -> dict[str, object]:
    """Use subwords instead of words for languages without a spaCy tokenizer, and for a target whose words could not be
    joined to text again."""
    if config.data.tokenizer.name != "spacy":
        return {}
    from seq2seq_attn.text.tokenizers.words import breaks_words, spacy_language

    unknown = [language for language in languages if language != VECTORS and spacy_language(language) == "xx"]
    if unknown:
        log.info("tokenizer: sentencepiece, because spaCy has no tokenizer for %s", " and ".join(unknown))
    else:
        if (share := breaks_words(languages[-1], targets)) <= MAX_BROKEN:
            return {}
        why = "detokenizing would put spaces inside words in %.0f %% of the target lines"
        log.info(f"tokenizer: sentencepiece, because {why}", 100 * share)
    characters = {character for pair in text.pairs() for line in pair for character in line}
    size = max(NUM_SUBWORDS, SUBWORDS_PER_CHARACTER * len(characters))
    return {"data.tokenizer.name": "sentencepiece", "data.tokenizer.vocab_size": size, "data.vocab.min_frequency": 1}
