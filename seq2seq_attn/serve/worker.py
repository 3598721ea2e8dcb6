"""The process that translates for the server. It loads the runs once and translates batches."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from seq2seq_attn.data.processes import follow_parent
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.variants import import_variants, located, place_in_module
from seq2seq_attn.run import Run
from seq2seq_attn.runtime import memory
from seq2seq_attn.serve.log_thread import LINE_FORMAT
from seq2seq_attn.text.glossary import Glossary

Pair = tuple[str, str]
"""source and target language"""
TRANSLATORS: dict[Pair, Any] = {}
"""the translator of each language pair; filled only in the process that translates"""


class Limits(NamedTuple):
    """The limits of the run that translates a language pair."""

    batch_size: int
    """the maximum number of lines per batch"""
    max_results: int
    """the maximum number of translations per line"""


Served = dict[Pair, Limits]
"""the language pairs that the process has loaded"""


class Answer(NamedTuple):
    """The answer to a line, or to a text of several lines."""

    texts: list[str]
    """the translations, best first"""
    warnings: tuple[str, ...] = ()
    """possible faults of the best translation"""
    unknown: tuple[str, ...] = ()
    """the source words that the model does not know"""


log = logging.getLogger(__name__)


def start_worker() -> None:
    """Set up the process, which writes log lines in the format of the HTTP server."""
    follow_parent()
    logging.basicConfig(format=LINE_FORMAT)


def load_runs(
    runs: Mapping[Pair, Run], imports: Sequence[str], options: Mapping[str, str]
) -> Served:
    """Import modules with variants, and load runs with the options of `load`.

    Raises:
        UserError: as `load`, or a module has raised an error.
    """
    # This import loads torch, which the process of the HTTP server does not need.
    from seq2seq_attn.translate.load import load

    import_variants(imports)
    memory.keep_memory_flat()
    memory.keep_few_primitives()
    served: Served = {}
    with memory.paused_collector():
        for pair, run in runs.items():
            try:
                TRANSLATORS[pair] = load(run, **options)
            except Exception as error:
                if place_in_module(error) is None:
                    raise
                # the HTTP server has not imported the module, and cannot read its exceptions
                raise UserError(located(error)) from None
            search = TRANSLATORS[pair].search
            max_results = search.beam_size if search.method == "beam" else 1
            served[pair] = Limits(search.batch_size, max_results)
    return served


def translate_batch(
    pair: Pair, options: Mapping[str, Any], texts: Sequence[str]
) -> list[Answer | None]:
    """Return the answers to the lines of a batch. The answer to a line that cannot be translated is
    None. If the batch fails, each line is translated alone, so that a line of one client does not
    harm other clients. `options` are options of `translate_lines`."""
    translator = TRANSLATORS[pair]
    try:
        translated = translator.translate_lines(texts, keep_attention=False, **options)
        return [_answer(translations) for translations in translated]
    except Exception as error:
        if len(texts) > 1:
            return [translate_batch(pair, options, [text])[0] for text in texts]
        # Only type and place of the error are logged: its message may contain text of the client.
        place = place_in_module(error) or "this package"
        log.error("a line was not translated: %s in %s", type(error).__name__, place)
        return [None]
    finally:
        translator.source_tokenizer.forget()


def _answer(translations: Sequence[Any]) -> Answer | None:
    """Return the answer to a line from its translations, without repeated texts. Return None if the
    model's probabilities are not numbers."""
    best = translations[0]
    if not math.isfinite(best.log_prob):
        return None
    texts = dict.fromkeys(translation.text for translation in translations)
    return Answer(list(texts), best.warnings, best.unknown)


def join_answers(parts: Sequence[Answer]) -> Answer:
    """Return the answer to a text from the answers to its lines and line ends. Translation k of the
    text consists of translation k of each line, or of the best translation of a line that has fewer
    translations."""
    texts = []
    for rank in range(max(len(part.texts) for part in parts)):
        joined = ""
        for part in parts:
            joined += part.texts[rank] if rank < len(part.texts) else part.texts[0]
        texts.append(joined)
    warnings = chain.from_iterable(part.warnings for part in parts)
    unknown = chain.from_iterable(part.unknown for part in parts)
    return Answer(texts, tuple(warnings), tuple(dict.fromkeys(unknown)))


def check_glossary(pair: Pair, glossary: Glossary) -> None:
    """Raise UserError if no run translates the pair, or its model cannot write a target term."""
    if pair not in TRANSLATORS:
        raise UserError(f"{' to '.join(pair)}: not served")
    TRANSLATORS[pair].translate_lines([], glossary=glossary)


def detect(texts: Sequence[str], pairs: Iterable[Pair]) -> dict[str, float]:
    """Detect the source language of texts from their first 1,000 characters. Return the source
    languages of `pairs` with their probabilities in percent, the most probable language first.

    The probability of a language among these languages is multiplied by the share of the text that
    the vocabulary explains, because the text may be in another language.
    """
    words = "\n".join(texts)[:1_000].split()
    explanations = {}
    for pair in pairs:
        explanations[pair[0]] = _explain_by_vocabulary(TRANSLATORS[pair], words)
    lowest_cost = min(explanations.values())[0]
    total = sum(math.exp(lowest_cost - cost) for cost, _ in explanations.values())
    shares = {}
    for source in sorted(explanations, key=explanations.__getitem__):
        cost, known_share = explanations[source]
        odds = math.exp(lowest_cost - cost)
        shares[source] = round(100 * known_share * odds / total, 1)
    return shares


def _explain_by_vocabulary(translator: Any, words: Sequence[str]) -> tuple[float, float]:
    """Return the cost of words (minus their log-probability) under the source vocabulary, and the
    share of the characters that are in explained words. A word is explained if it costs less than
    its spelling with an alphabet of 30 letters.

    The probability of a token is 1 / (rank * ln(size)) by Zipf's law, where size is the number of
    types, because vocabularies are sorted by frequency. An unknown token costs as much as its
    spelling.
    """
    vocab = translator.source_vocab
    log_size = math.log(math.log(len(vocab)))
    total = 0.0
    num_known = 0
    tokenized = translator.source_tokenizer.tokenize_many(words)
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
    translator.source_tokenizer.forget()
    return total, num_known / max(1, sum(map(len, words)))
