"""Choose settings for a parallel text of the user by a few counts of the text.

`choose_config` chooses the packaged configuration, `choose_settings` the tokens, the limits and the
metric, and `choose_batch_size` and `choose_budget` the batches, the number of updates and the
validations. If the user limits updates or epochs, `choose_validations` takes the place of
`choose_budget`. They log their choices and the reasons.
"""

import logging
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from seq2seq_attn.api.text_counts import Counts, Side
from seq2seq_attn.config import plural, shorten
from seq2seq_attn.config.data import DataConfig, TokenizerConfig
from seq2seq_attn.config.train import BatchConfig
from seq2seq_attn.metrics.bleu import MIN_LONG
from seq2seq_attn.text.languages import separates_words

SIZES = ((50_000, "own-tiny"), (250_000, "own-small"), (2_500_000, "own"))
"""Numbers of target words, and packaged configurations. The configuration of a text of sentences is
the first one whose number is larger than the text's number of target words. `own-large` is for
texts that are larger than all these numbers. The limits count words, not pairs: on 17,650
pairs of Europarl's long sentences, `own` scores 15.5 BLEU, and `own-small` 11.0.

In `own-tiny`, tokens are words: with 2,000 pairs, English to Swedish, words had 14.4 BLEU, and
subwords 10.4."""
NUM_LINES = 1_000
"""The maximum number of target lines that are tokenized and detokenized to check words as tokens.
"""
MAX_SPELLED = 60
"""If one side is spelled and the other side is sentences, both sides are split into characters
provided that the sentences have at most this number of characters on average."""
SUBWORDS_PER_CHARACTER = 2
"""The minimum size of a subword vocabulary, as a multiple of the number of distinct characters.
Chinese texts have thousands of distinct characters."""
MIN_SHARED = 0.5
"""Source and target share a subword vocabulary if at least this share of the letters on the side
with fewer letters is also on the other side. A letter that occurs n times counts n times."""
MAX_BROKEN = 0.005
"""Words are used as tokens if detokenizing changes the spaces in at most this share of the target
lines."""
LONG = 4
"""Number of words in BLEU's longest n-grams. BLEU chooses the best model only if at least the share
`MIN_LONG` of the targets has this number of words, or of characters in languages without spaces
between words."""
MAX_DROPPED = 0.02
"""`data.max_length` and `data.max_length_ratio` are raised if they would drop a larger share of the
pairs."""
LONGEST = 400
"""`data.max_length` is raised to at most this number of tokens, because of memory and time."""
UPDATES = 125
"""Number of updates per cube root of the number of target tokens: 8,200 for the 29,000 pairs of
Multi30k, 3,400 for 3,600 words and their sounds."""
SENTENCE_UPDATES = 8_000
"""Minimum number of updates if targets are sentences. With 500 pairs of Multi30k, 8,000 updates
score 15.5 BLEU, and 2,280 score 14.0."""
BATCH_TOKENS = 1.24
"""Number of target tokens in a batch per square root of the number of target tokens."""
MIN_BATCH = 16
MAX_BATCH = 128
MIN_EPOCHS = 8
"""Minimum number of epochs, which matters for texts of more than 300,000 pairs."""
NUM_VALIDATIONS = 20
PATIENCE = 7
"""Number of validations without a better score after which training ends."""

_TOKENS = {"spelled": "characters", "symbols": "spaces", "sentences": "sentencepiece"}
"""The tokenizers by the kind of lines. If targets are sentences, the configuration has the
tokenizer."""
_KINDS = {
    "spelled": "single words or names",
    "symbols": "words from a closed list",
    "sentences": "sentences",
}
"""descriptions of the kinds of lines in messages"""

log = logging.getLogger(__name__)


def choose_config(counts: Counts) -> str:
    """Return the name of the packaged configuration that suits the number of target words
    (`SIZES`), or `own-small` if targets are not sentences."""
    num_words = counts.estimate_tokens("spaces")
    name = next((name for limit, name in SIZES if num_words < limit), "own-large")
    if counts.target.kind != "sentences":
        name = "own-small"
    size = f"{plural(counts.num_pairs, 'pair')} with {num_words:,.0f} target words in all"
    log.info(
        f"settings: {name}, for {size}; source lines are {_KINDS[counts.source.kind]}, and target "
        f"lines are {_KINDS[counts.target.kind]}; change the settings with -c and --set"
    )
    return name


def choose_settings(counts: Counts, data: DataConfig, *, has_tokens: bool) -> dict[str, Any]:
    """Return settings that suit a text, in addition to the configuration for its size.

    | text | setting |
    |---|---|
    | the source is a file of vectors | output `softmax`: `lexical` needs source embeddings |
    | target lines are spelled, or symbols | `cer` or `wer` chooses the best model |
    | few target sentences have four words | chrF chooses the best model: BLEU counts 4-grams |
    | lines of a side are spelled, or symbols | the tokenizers in `_TOKENS` |
    | words cannot be split or joined again | tokens are subwords |
    | there are many distinct characters | the subword vocabulary is larger |
    | letters of source and target differ | each side has its own subword vocabulary |
    | the limits on lengths would drop many pairs | the limits are raised |

    Args:
        counts: counts of the text; `Kind` explains spelled lines and symbols.
        data: the settings without these choices.
        has_tokens: whether the user has set the tokenizer.
    """
    target = counts.target
    settings: dict[str, Any] = {}
    if data.layout.vector_column is not None:
        settings["model.output.name"] = "softmax"
    settings["train.validation.metric"] = _choose_metric(target)
    tokenizer = data.tokenizer
    if not has_tokens:
        name, target_name = _choose_tokens(counts, data)
        settings["data.tokenizer.name"] = name
        settings["data.tokenizer.target"] = target_name
        tokenizer = tokenizer.model_copy(update={"name": name, "target": target_name})
    if not target.lines:
        return settings  # a text without lines has no characters and no lengths to count
    if tokenizer.name == "sentencepiece":
        settings |= _choose_subwords(counts, tokenizer.vocab_size)
    return settings | _raise_limits(counts, tokenizer, data)


def choose_batch_size(counts: Counts, tokenizer: TokenizerConfig, batch: BatchConfig) -> int:
    """Return the size of a micro-batch in the unit of `batch`.

    An update reads about `BATCH_TOKENS` times as many target tokens as the square root of their
    number. Its number of pairs is a power of two between `MIN_BATCH` and `MAX_BATCH`.
    """
    num_tokens = counts.estimate_tokens(tokenizer.target or tokenizer.name)
    pairs_per_update = BATCH_TOKENS * counts.num_pairs / math.sqrt(num_tokens)
    nearest: int = 2 ** round(math.log2(pairs_per_update))
    size = min(max(nearest, MIN_BATCH), MAX_BATCH) / batch.accumulate
    if batch.unit == "tokens":
        size *= num_tokens / counts.num_pairs
    return max(1, round(size))


def choose_budget(counts: Counts, tokenizer: TokenizerConfig, batch: BatchConfig) -> dict[str, Any]:
    """Return settings for the number of updates and for the validations.

    Updates grow as the cube root of the number of target tokens, and batches as its square root: in
    small texts, each pair is read more often, and batches are smaller. There are at least
    `MIN_EPOCHS` epochs and, if targets are sentences, at least `SENTENCE_UPDATES` updates.
    """
    tokens = tokenizer.target or tokenizer.name
    num_tokens = counts.estimate_tokens(tokens)
    pairs_per_update = _count_pairs_per_update(counts, tokenizer, batch)
    min_updates = MIN_EPOCHS * counts.num_pairs / pairs_per_update
    if counts.target.kind == "sentences":
        min_updates = max(min_updates, SENTENCE_UPDATES)
    updates = max(UPDATES * num_tokens ** (1 / 3), min_updates)
    # The last update is followed by the last validation.
    updates_per_validation = math.ceil(updates / NUM_VALIDATIONS)
    num_updates = updates_per_validation * NUM_VALIDATIONS
    num_epochs = num_updates * pairs_per_update / counts.num_pairs
    unit = "characters" if tokens == "characters" else "words"
    log.info(
        f"training: {num_updates:,} updates of {pairs_per_update:.0f} pairs ({num_epochs:.0f} "
        f"epochs), for {num_tokens:,.0f} target {unit}; it ends early after {PATIENCE} of "
        f"{NUM_VALIDATIONS} validations without a better score; change with --set "
        "train.max_updates, train.batch.size, train.validation.patience"
    )
    return {
        "train.max_epochs": None,
        "train.max_updates": num_updates,
        "train.validation.every_updates": updates_per_validation,
        "train.validation.patience": PATIENCE,
    }


def choose_validations(
    counts: Counts, tokenizer: TokenizerConfig, batch: BatchConfig, max_updates: int | None
) -> dict[str, Any]:
    """Return settings for the validations where the user limits how long training takes.

    With `max_updates`, there are at most `NUM_VALIDATIONS` validations, and at most one per epoch.
    Otherwise there is one per epoch. `train.max_epochs` is None, which lifts the limit of the
    packaged configuration; a limit that the user has set overrides it.
    """
    pairs_per_update = _count_pairs_per_update(counts, tokenizer, batch)
    log.info(
        "training: %.0f pairs per update; change with --set train.batch.size", pairs_per_update
    )
    settings: dict[str, Any] = {"train.max_epochs": None}
    if max_updates:
        updates_per_epoch = math.ceil(counts.num_pairs / pairs_per_update)
        every_updates = max(updates_per_epoch, math.ceil(max_updates / NUM_VALIDATIONS))
        settings["train.validation.every_updates"] = every_updates
    return settings


def _count_pairs_per_update(
    counts: Counts, tokenizer: TokenizerConfig, batch: BatchConfig
) -> float:
    """Return the mean number of pairs in an update."""
    units_per_update = batch.size * batch.accumulate
    if batch.unit == "sentences":
        return units_per_update
    num_tokens = counts.estimate_tokens(tokenizer.target or tokenizer.name)
    return units_per_update * counts.num_pairs / num_tokens


def warn_about_unspaced_targets(target: Side, tokenizer: TokenizerConfig) -> None:
    """Warn if the target tokens are words between spaces, but each target is one word that hardly
    occurs again, such as a pronunciation without spaces."""
    if (tokenizer.target or tokenizer.name) == "spaces" and target.are_single_words:
        log.warning(
            f"data.tokenizer.target=spaces: targets such as {shorten(target.lines[0])} have no "
            "spaces between sounds, so most targets of new text are unknown tokens; use "
            "--set data.tokenizer.target=characters, or put spaces between the sounds"
        )


def _choose_metric(target: Side) -> str:
    """Return the metric that chooses the best model."""
    if target.kind != "sentences":
        metric = "cer" if target.kind == "spelled" else "wer"
        log.info("validation: %s, because targets are %s", metric, _KINDS[target.kind])
        return metric
    lengths = target.lengths("spaces")
    if not lengths:
        return "bleu"
    num_long = sum(length >= LONG for length in lengths)
    share = num_long / len(lengths)
    if share >= MIN_LONG:
        return "bleu"
    unit = "words" if separates_words(target.language) else "characters"
    log.info("validation: chrF, because %.0f %% of the targets have four %s", 100 * share, unit)
    return "chrf"


def _choose_tokens(counts: Counts, data: DataConfig) -> tuple[str, str | None]:
    """Return the tokenizer of the source, and the tokenizer of the target if it differs."""
    source, target = counts.source, counts.target
    reason = f"source lines are {_KINDS[source.kind]}, and target lines {_KINDS[target.kind]}"
    if _can_spell_sentences(source, target):
        log.info("tokenizer: characters, because %s that are short enough", reason)
        return "characters", None
    name: str = data.tokenizer.name
    target_name = None
    if target.kind != "sentences":
        name = _TOKENS[source.kind]
        target_name = None if target.kind == source.kind else _TOKENS[target.kind]
    # If the target has a tokenizer of its own, only the source is split into subwords.
    is_closed = source.is_closed and (target.is_closed or target_name is not None)
    if name == "sentencepiece" and is_closed:
        # Too few words allow only a small vocabulary of subwords, which makes lines long.
        name = "spacy"
        reason += ", and hardly any word of new text is unknown"
    if name == "spacy":
        why_not = _why_no_words(data.layout.texts, target)
        if why_not is not None:
            name, reason = "sentencepiece", why_not
    message = "tokenizer: %s for the source, %s for the target, because %s"
    log.info(message, name, target_name or name, reason)
    return name, target_name


def _can_spell_sentences(source: Side, target: Side) -> bool:
    """Return whether one side is spelled, and the other side is sentences that are short enough to
    be split into characters too (`MAX_SPELLED`)."""
    sides = {source.kind: source, target.kind: target}
    if sides.keys() != {"sentences", "spelled"}:
        return False
    sentences = sides["sentences"]
    return sentences.characters.total() <= MAX_SPELLED * len(sentences.lines)


def _why_no_words(source_languages: Sequence[str], target: Side) -> str | None:
    """Return the reason why words cannot be tokens, or None if they can.

    Words cannot be tokens if spaCy does not split a language into words, or if detokenizing would
    change the spaces in too many target lines.
    """
    from seq2seq_attn.text.tokenizers.words import measure_broken_lines, spacy_language

    unsplit = []
    for language in [*source_languages, target.language]:
        if spacy_language(language) == "xx" or not separates_words(language):
            unsplit.append(language)
    if unsplit:
        return f"spaCy does not split {' and '.join(unsplit)} into words"
    share = measure_broken_lines(target.language, target.lines[:NUM_LINES])
    if share <= MAX_BROKEN:
        return None
    return f"detokenizing would change the spaces in {100 * share:.1f} % of the target lines"


def _choose_subwords(counts: Counts, vocab_size: int) -> dict[str, Any]:
    """Return settings for the size of the subword vocabulary, and for whether source and target
    share the vocabulary. The size is at least `vocab_size`."""
    source = counts.source.characters
    target = counts.target.characters
    source_letters = _letters(source)
    target_letters = _letters(target)
    # The intersection of two counters has the smaller count of each letter.
    num_shared = (source_letters & target_letters).total()
    is_joint = num_shared >= MIN_SHARED * min(source_letters.total(), target_letters.total())
    num_characters = len({*source, *target}) if is_joint else max(len(source), len(target))
    settings: dict[str, Any] = {
        "data.tokenizer.vocab_size": max(vocab_size, SUBWORDS_PER_CHARACTER * num_characters)
    }
    if not is_joint:
        log.info("tokenizer: a vocabulary of subwords for each side, because their letters differ")
        settings["data.tokenizer.joint"] = False
    return settings


def _letters(characters: Counter[str]) -> Counter[str]:
    """Return the counts of the characters that are letters."""
    return Counter({letter: count for letter, count in characters.items() if letter.isalpha()})


def _raise_limits(counts: Counts, tokenizer: TokenizerConfig, data: DataConfig) -> dict[str, Any]:
    """Return the limits on the lengths of pairs that are raised. A limit is never lowered.

    Each raised limit drops at most the share `MAX_DROPPED` of the pairs, unless `LONGEST` bounds
    the limit. The two limits together may drop twice this share.
    """
    source_lengths = np.array(counts.source.lengths(tokenizer.name))
    target_lengths = np.array(counts.target.lengths(tokenizer.target or tokenizer.name))
    longer = np.maximum(source_lengths, target_lengths)
    shorter = np.minimum(source_lengths, target_lengths)
    length = float(np.quantile(longer, 1 - MAX_DROPPED))
    ratio = float(np.quantile(longer / np.maximum(1.0, shorter), 1 - MAX_DROPPED))
    settings: dict[str, Any] = {}
    if min(length, LONGEST) > data.max_length:
        multiple_of_50 = 50 * math.ceil(length / 50)
        settings["data.max_length"] = min(LONGEST, multiple_of_50)
    if ratio > data.max_length_ratio:
        settings["data.max_length_ratio"] = float(math.ceil(ratio))
    if settings:
        log.info("lengths: %s, because the defaults would drop too many pairs", settings)
    return settings
