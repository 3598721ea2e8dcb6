"""Attention under forced decoding: of the hypotheses, for entropy and coverage; of the references,
against gold links.

Forced decoding gives the same weights whichever search produced the hypotheses. It uses the
tokenizer's split of a text, which may differ from the tokens that the model wrote. Coverage and
alignment are of words, so that models with different tokenizers can be compared: of spaCy's words,
or of the tokens that gold links are numbered in. Entropy is of the model's own tokens.

Shapes: T target positions, S source positions.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from seq2seq_attn.evaluation.test_sets import EvaluationSet, GoldLinks, Languages
from seq2seq_attn.metrics.attention import (
    AttentionStatistics,
    GoldPairs,
    attention_counts,
    overlap_counts,
    words_from_tokens,
)
from seq2seq_attn.text.links import parse_pharaoh
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.text.tokenizers.words import split_words
from seq2seq_attn.translate.scoring import force_decode
from seq2seq_attn.translate.translation import Translation
from seq2seq_attn.translate.translator import Translator

log = logging.getLogger(__name__)


def analyze_attention(
    test_set: EvaluationSet,
    hypotheses: Sequence[str],
    languages: Languages,
    translator: Translator | None = None,
    *,
    batch_size: int | None = None,
) -> AttentionStatistics:
    """Analyze the translations of a set: from the texts alone, or with a translator from its
    attention too, if it has attention over source positions."""
    words = split_words(languages.target, hypotheses)
    reference_words = split_words(languages.target, test_set.references)
    overlaps = [overlap_counts(*pair) for pair in zip(words, reference_words, strict=True)]
    overlap_N4 = np.array(overlaps, dtype=np.int64)
    if translator is None or not translator.has_attention:
        return AttentionStatistics(overlap_N4, np.zeros((len(overlaps), 5)))
    decoded = force_decode(translator, test_set.source, hypotheses, batch_size=batch_size)
    pairs = _with_words(decoded, test_set, languages, words, translator.source_tokenizer)
    counts = [attention_counts(*weights) for weights in word_weights(pairs)]
    gold = None
    if test_set.gold is not None:
        gold = decode_gold(
            translator, test_set.source, test_set.references, test_set.gold, batch_size=batch_size
        )
    return AttentionStatistics(overlap_N4, np.array(counts, dtype=np.float64), gold)


def _with_words(
    decoded: Iterable[Translation],
    test_set: EvaluationSet,
    languages: Languages,
    target_words: Sequence[Sequence[str]],
    source: Source,
) -> Iterator[tuple[Translation, Sequence[str], Sequence[str]]]:
    """Each pair with its source and target words; a vector is a word."""
    lines_words = split_words(languages.source, test_set.source)
    rows = zip(decoded, test_set.source, lines_words, target_words, strict=True)
    for pair, line, words, target in rows:
        tokens = pair.source_tokens[:-1]
        if source.vector_positions(tokens):
            words = source.words(line, tokens)
        yield pair, words, target


def decode_gold(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    gold: GoldLinks,
    *,
    batch_size: int | None = None,
) -> GoldPairs:
    """The weights of a model on given pairs, and their gold links (`test_sets.caption_links`), pair
    by pair.

    Raises:
        UsageError: lists of different lengths.
        UserError: a malformed link.
        ValueError: a model without attention over source positions.
    """
    decoded = force_decode(translator, sources, targets, batch_size=batch_size)
    pairs = zip(decoded, gold.source_words, gold.target_words, strict=True)
    weights = [weights_TS for _, weights_TS in word_weights(pairs)]
    links = [parse_pharaoh(line) for line in gold.links]
    return list(zip(weights, links, strict=True))


def word_weights(
    pairs: Iterable[tuple[Translation, Sequence[str], Sequence[str]]],
) -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]]:
    """The attention of pairs between tokens, [T, S], and between the source and target words that
    stand beside each, [T, S] too. Warns at the end of pairs whose tokens are not those words; their
    weights between words are 0. Raises ValueError: a pair without attention over source
    positions."""
    num_pairs = 0
    errors = []
    for pair, left, right in pairs:
        if pair.attention is None:
            raise ValueError("this model's attention has no source positions")
        num_pairs += 1
        try:
            weights_TS = words_from_tokens(
                pair.attention, pair.source_tokens[:-1], pair.tokens, left, right
            )
        except ValueError as error:
            errors.append(error)
            weights_TS = np.zeros((len(right), len(left)))
        yield pair.attention, weights_TS
    if errors:
        about = "the attention of %d of %d lines counts as zero; the first: %s"
        log.warning(about, len(errors), num_pairs, errors[0])
