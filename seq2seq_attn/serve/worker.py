"""The process that translates for the server. It loads the runs once and translates batches."""

import logging
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from seq2seq_attn.errors import UserError
from seq2seq_attn.model.variants import import_variants
from seq2seq_attn.run import Run
from seq2seq_attn.runtime import memory
from seq2seq_attn.text.glossary import Glossary

Pair = tuple[str, str]
"""source and target language"""
TRANSLATORS: dict[Pair, Any] = {}
"""the translator of each language pair; filled only in the process that translates"""


class Served(NamedTuple):
    """What the process that translates has loaded."""

    batch_sizes: dict[Pair, int]
    """the maximum number of lines per batch"""
    max_results: dict[Pair, int]
    """the maximum number of translations per line"""


class Answer(NamedTuple):
    """The answer to a line, or to a text of several lines."""

    texts: list[str]
    """the translations, best first"""
    warnings: tuple[str, ...] = ()
    """what may be wrong with the best translation"""
    unknown: tuple[str, ...] = ()
    """the source words that the model does not know"""


log = logging.getLogger(__name__)


def load_runs(
    runs: Mapping[Pair, Run], imports: Sequence[str], options: Mapping[str, str]
) -> Served:
    """Import modules with variants and load runs with options of `load`. Raises UserError as
    `load`."""
    # This import loads torch, which the process of the HTTP server does not need.
    from seq2seq_attn.translate.load import load

    import_variants(imports)
    memory.keep_memory_flat()
    memory.keep_primitives(memory.TRANSLATING_PRIMITIVES)
    with memory.paused_collector():
        TRANSLATORS.update({pair: load(run, **options) for pair, run in runs.items()})
    served = Served({}, {})
    for pair in runs:
        search = TRANSLATORS[pair].search
        served.batch_sizes[pair] = search.batch_size
        served.max_results[pair] = search.beam_size if search.method == "beam" else 1
    return served


def translate_batch(
    pair: Pair, num_results: int, split_sentences: str, glossary: Glossary, texts: Sequence[str]
) -> list[Answer | None]:
    """Return the answers to the lines of a batch. If the batch fails, each line is translated
    alone, so that a line does not harm other clients. The answer to a line that fails is None."""
    try:
        translated = TRANSLATORS[pair].translate_lines(
            texts,
            keep_attention=False,
            glossary=glossary,
            split_sentences=split_sentences,
            n_best=num_results,
        )
        return [_answer(translations) for translations in translated]
    except Exception as error:
        if len(texts) > 1:
            options = pair, num_results, split_sentences, glossary
            return [translate_batch(*options, [text])[0] for text in texts]
        # Only the type is logged, because the message may contain text of the client.
        log.error("a line was not translated: %s", type(error).__name__)
        return [None]
    finally:
        TRANSLATORS[pair].source_tokenizer.forget()


def _answer(translations: Sequence[Any]) -> Answer | None:
    """Return the answer that translations of a line make, without repeated texts. It is None if the
    model's probabilities are not numbers."""
    if not math.isfinite(translations[0].log_prob):
        return None
    texts = list(dict.fromkeys(translation.text for translation in translations))
    return Answer(texts, translations[0].warnings, translations[0].unknown)


def join_answers(parts: Sequence[Answer]) -> Answer:
    """Return the answer to a text from the answers to its lines and line ends. Where a line has
    fewer translations than another, its best one is used."""
    texts = []
    for number in range(max(len(part.texts) for part in parts)):
        chosen = [part.texts[number if number < len(part.texts) else 0] for part in parts]
        texts.append("".join(chosen))
    warnings = chain.from_iterable(part.warnings for part in parts)
    unknown = chain.from_iterable(part.unknown for part in parts)
    return Answer(texts, tuple(warnings), tuple(dict.fromkeys(unknown)))


def check_glossary(pair: Pair, glossary: Glossary) -> str:
    """Return why the run cannot require the terms of a glossary, or an empty text if it can."""
    try:
        TRANSLATORS[pair].translate_lines([], glossary=glossary)
    except UserError as error:
        return str(error)
    return ""


def detect(text: str, pairs: Sequence[Pair]) -> dict[str, float]:
    """Detect the source language of a text. Return the source languages of `pairs` with their
    probabilities in percent, the most probable language first.

    A probability is that among these languages, times the share of the text that the vocabulary
    knows, because the text may be in none of them.
    """
    costs: dict[str, float] = {}
    known_shares: dict[str, float] = {}
    for pair in pairs:
        costs[pair[0]], known_shares[pair[0]] = _explain_by_vocabulary(pair, text.split())
    odds = {source: math.exp(min(costs.values()) - cost) for source, cost in costs.items()}
    total = sum(odds.values())
    shares = {}
    for source in sorted(odds, key=costs.__getitem__):
        shares[source] = round(100 * known_shares[source] * odds[source] / total, 1)
    return shares


def _explain_by_vocabulary(pair: Pair, words: Sequence[str]) -> tuple[float, float]:
    """Return the cost of words (minus their log-probability) under the source vocabulary, and the
    share of their characters in words that cost less than their letters.

    The probability of a token is 1 / (rank * ln(size)) by Zipf's law, where size is the number of
    types, because vocabularies are sorted by frequency. An unknown token is spelled with 30
    letters.
    """
    vocab = TRANSLATORS[pair].source_vocab
    log_size = math.log(math.log(len(vocab)))
    total = 0.0
    num_known = 0
    tokenized = TRANSLATORS[pair].source_tokenizer.tokenize_many(words)
    for word, tokens in zip(words, tokenized, strict=True):
        cost = 0.0
        for token, rank in zip(tokens, vocab.ids_of(tokens), strict=True):
            if token in vocab:
                cost += math.log(1 + rank) + log_size
            else:
                cost += (1 + len(token)) * math.log(30)
        total += cost
        if cost < len(word) * math.log(30):
            num_known += len(word)
    TRANSLATORS[pair].source_tokenizer.forget()
    return total, num_known / max(1, sum(map(len, words)))
