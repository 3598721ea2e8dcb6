"""Choose settings for a parallel text of the user by its size, languages and characters."""

import logging
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

from seq2seq_attn.config.data import TokenizerConfig
from seq2seq_attn.metrics.bleu import MIN_LONG
from seq2seq_attn.text.corpus import Text
from seq2seq_attn.text.languages import separates_words

SIZES = ((2_000, "own-tiny"), (20_000, "own-small"), (200_000, "own"))
"""Pairs of a limit and a packaged configuration, which is for corpora of fewer pairs.
`own-large` is for all others."""
NUM_PAIRS = 10_000
"""Characters are counted in at most this number of pairs, from the start of the text."""
NUM_LINES = 1_000
"""Words are counted, and tokenized and detokenized as a check, in at most this number of target
lines, from the start of the text."""
SUBWORDS_PER_CHARACTER = 2
"""The minimum size of a subword vocabulary, as a multiple of the number of distinct characters.
Chinese texts have thousands of them."""
MIN_SHARED = 0.5
"""Source and target share a subword vocabulary if at least this share of their letters is the same.
The share is taken of the occurrences of letters on the side with fewer letters."""
MAX_BROKEN = 0.005
"""Words are used as tokens if detokenizing puts a space inside a word in at most this share of the
target lines."""
LONG = 4
"""Number of words in BLEU's longest n-grams. BLEU chooses the best model only if at least the share
`MIN_LONG` of the targets has this many words."""

log = logging.getLogger(__name__)


def choose_config(text: Text, limit: int | None) -> str:
    """Return the name of the packaged configuration for the number of pairs, at most `limit`."""
    num_pairs = sum(1 for _ in text.pairs())
    if limit:
        num_pairs = min(num_pairs, limit)
    name = next((name for size, name in SIZES if num_pairs < size), "own-large")
    log.info("settings: %s, for %s pairs; change them with -c and --set", name, f"{num_pairs:,}")
    return name


def choose_settings(text: Text, tokenizer: TokenizerConfig) -> dict[str, Any]:
    """Return settings that suit a text, in addition to the configuration for its size.

    | text | setting |
    |---|---|
    | few targets have four words | the best model is chosen by chrF, as BLEU counts 4-grams |
    | the source is a vector file | output `softmax`, as vectors have no embeddings for `lexical` |
    | words cannot be split or joined again | tokens are subwords |
    | there are many distinct characters | the subword vocabulary is larger |
    | letters of source and target differ | each side has a subword vocabulary |
    """
    pairs = list(islice(text.pairs(), NUM_PAIRS))
    targets = [target for _, target in pairs[:NUM_LINES]]
    settings: dict[str, Any] = {}
    share = share_of_long(targets, text.languages[-1])
    if share < MIN_LONG:
        why = f"few targets have four words separated by spaces ({100 * share:.0f} %)"
        log.info("validation: chrF chooses the best model, because %s", why)
        settings["train.validation.metric"] = "chrf"
    if text.layout.vector_column is not None:
        settings["model.output.name"] = "softmax"
    name: str = tokenizer.name
    reason = (
        _why_no_words(targets, [*text.layout.texts, text.languages[-1]])
        if name == "spacy"
        else None
    )
    if reason is not None:
        log.info("tokenizer: sentencepiece, because %s", reason)
        name = settings["data.tokenizer.name"] = "sentencepiece"
    if pairs and name == "sentencepiece":
        settings |= _choose_subwords(text, pairs, tokenizer.vocab_size)
    return settings


def share_of_long(targets: Sequence[str], language: str) -> float:
    """Return the share of target lines with at least four words, or 1 if there are no lines. In a
    language without spaces between words, characters are counted instead."""
    has_words = separates_words(language)
    num_long = 0
    for target in targets:
        units = target.split() if has_words else target
        if len(units) >= LONG:
            num_long += 1
    return num_long / len(targets) if targets else 1.0


def _why_no_words(targets: Sequence[str], languages: Sequence[str]) -> str | None:
    """Return the reason why words cannot be tokens, or None if they can.

    Words cannot be tokens if spaCy does not split a language into words, or if detokenizing would
    put spaces inside the words of too many target lines.
    """
    from seq2seq_attn.text.tokenizers.words import breaks_words, spacy_language

    unsplit = []
    for language in languages:
        if spacy_language(language) == "xx" or not separates_words(language):
            unsplit.append(language)
    if unsplit:
        return f"spaCy does not split {' and '.join(unsplit)} into words"
    share = breaks_words(languages[-1], targets)
    if share <= MAX_BROKEN:
        return None
    return f"detokenizing would put spaces inside words in {100 * share:.1f} % of the target lines"


def _choose_subwords(
    text: Text, pairs: Sequence[tuple[str, str]], vocab_size: int
) -> dict[str, Any]:
    """Return settings for the size of the subword vocabulary, and for whether source and target
    share it."""
    source = Counter[str]()
    target = Counter[str]()
    for source_line, target_line in pairs:
        source.update(source_line)
        target.update(target_line)
    if text.layout.vector_column == 0:
        # source lines are names of vector files, which are not tokenized
        source = target
    source_letters = _letters(source)
    target_letters = _letters(target)
    num_shared = (source_letters & target_letters).total()
    is_joint = num_shared >= MIN_SHARED * min(source_letters.total(), target_letters.total())
    num_characters = len(source | target) if is_joint else max(len(source), len(target))
    settings: dict[str, Any] = {
        "data.tokenizer.vocab_size": max(vocab_size, SUBWORDS_PER_CHARACTER * num_characters)
    }
    if not is_joint:
        log.info("tokenizer: a vocabulary of subwords for each side, because their letters differ")
        settings["data.tokenizer.joint"] = False
    return settings


def _letters(characters: Counter[str]) -> Counter[str]:
    """Return the counts of the characters that are letters."""
    letters = {}
    for character, count in characters.items():
        if character.isalpha():
            letters[character] = count
    return Counter(letters)
