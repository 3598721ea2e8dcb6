"""Analyze attention weights, which forced decoding of sentence pairs computes.

The hypotheses are decoded for the entropy and the coverage of attention. The references are decoded
to compare attention with gold links, which are word alignments of source and reference.

Forced decoding gives the same attention weights whichever search produced the hypotheses. A
hypothesis is tokenized anew, so its tokens may differ from the tokens that the model wrote. Entropy
is computed between the model's tokens. Coverage is computed between spaCy's words, and alignment
between the words whose positions gold links name. So models with different tokenizers can be
compared.

Shapes: T target positions, S source positions.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from seq2seq_attn.evaluation.test_sets import EvaluationSet, Languages
from seq2seq_attn.metrics.attention import (
    AttentionStatistics,
    GoldPair,
    Weights,
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

DecodedPairs = Iterable[tuple[Translation, Sequence[str], Sequence[str]]]
"""decoded pairs, each with its source words and its target words"""

log = logging.getLogger(__name__)


def analyze_attention(
    test_set: EvaluationSet,
    hypotheses: Sequence[str],
    languages: Languages,
    translator: Translator | None = None,
    *,
    batch_size: int | None = None,
) -> AttentionStatistics:
    """Analyze a system's hypotheses for a test set.

    Words that the hypotheses lack or have in excess of the references are counted. Attention is
    analyzed as well if there is a `translator` whose model has attention over source positions.
    """
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
        decoded = force_decode(
            translator, test_set.source, test_set.references, batch_size=batch_size
        )
        links, source_words, target_words = test_set.gold
        gold = gold_pairs(zip(decoded, source_words, target_words, strict=True), links)
    return AttentionStatistics(overlap_N4, np.array(counts, dtype=np.float64), gold)


def _with_words(
    decoded: Iterable[Translation],
    test_set: EvaluationSet,
    languages: Languages,
    target_words: Sequence[Sequence[str]],
    source: Source,
) -> DecodedPairs:
    """Yield each decoded pair with the words of its source line and the words of its target.

    spaCy splits lines into words, except a line that names vectors. The tokenizer of source lines
    (`source`) splits such a line; each vector counts as a word.
    """
    lines_words = split_words(languages.source, test_set.source)
    rows = zip(decoded, test_set.source, lines_words, target_words, strict=True)
    for pair, line, words, target in rows:
        tokens = pair.source_tokens[:-1]
        has_vectors = len(source.vector_positions(tokens)) > 0
        if has_vectors:
            words = source.words(line, tokens)
        yield pair, words, target


def gold_pairs(pairs: DecodedPairs, lines: Iterable[str]) -> list[GoldPair]:
    """Return the attention between the words of each sentence pair, with the gold links in its line
    of `lines`, in Pharaoh format.

    Raises:
        UserError: A link is malformed.
        ValueError: A pair has no attention over source positions.
    """
    gold = []
    for (_, weights_TS), line in zip(word_weights(pairs), lines, strict=True):
        sure_links = parse_pharaoh(line, only_sure=True)
        gold.append(GoldPair(weights_TS, parse_pharaoh(line), sure_links))
    return gold


def word_weights(pairs: DecodedPairs) -> Iterator[tuple[Weights, Weights]]:
    """Yield the attention weights of each pair between tokens, and the weights between words.

    Where tokens and words are not splits of the same text, the weights between words are 0. A
    warning at the end counts these pairs.

    Yields:
        weights [T, S] between target tokens and source tokens, and weights [T, S] between target
        words and source words.

    Raises:
        ValueError: A pair has no attention over source positions.
    """
    num_pairs = 0
    errors = []
    for pair, source_words, target_words in pairs:
        if pair.attention is None:
            raise ValueError("this model's attention has no source positions")
        num_pairs += 1
        try:
            weights_TS = words_from_tokens(
                pair.attention, pair.source_tokens[:-1], pair.tokens, source_words, target_words
            )
        except ValueError as error:
            errors.append(error)
            weights_TS = np.zeros((len(target_words), len(source_words)))
        yield pair.attention, weights_TS
    if errors:
        about = "the attention of %d of %d lines counts as zero; the first: %s"
        log.warning(about, len(errors), num_pairs, errors[0])
