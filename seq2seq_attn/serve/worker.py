"""The process that translates for the server. It loads the runs once and translates batches."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from seq2seq_attn.model.variants import import_variants
from seq2seq_attn.run import Run
from seq2seq_attn.runtime import memory

Pair = tuple[str, str]
"""source and target language"""
TRANSLATORS: dict[Pair, Any] = {}
"""the translator of each language pair; filled only in the process that translates"""

log = logging.getLogger(__name__)


def load_runs(
    runs: Mapping[Pair, Run], imports: Sequence[str], options: Mapping[str, str]
) -> dict[Pair, int]:
    """Import modules with variants and load runs with options of `load`. Return the batch size of
    each run. Raises UserError as `load`."""
    # This import loads torch, which the process of the HTTP server does not need.
    from seq2seq_attn.translate.load import load

    import_variants(imports)
    memory.keep_memory_flat()
    memory.keep_primitives(memory.TRANSLATING_PRIMITIVES)
    with memory.paused_collector():
        TRANSLATORS.update({pair: load(run, **options) for pair, run in runs.items()})
    return {pair: TRANSLATORS[pair].search.batch_size for pair in runs}


def translate_batch(pair: Pair, texts: Sequence[str]) -> list[str | None]:
    """Return the translations of a batch. If the batch fails, each text is translated alone, so
    that a text does not harm other clients. The result of a text that fails is None."""
    try:
        return [result.text for result in TRANSLATORS[pair].translate(texts, keep_attention=False)]
    except Exception as error:
        if len(texts) > 1:
            return [translate_batch(pair, [text])[0] for text in texts]
        # Only the type is logged, because the message may contain text of the client.
        log.error("a line was not translated: %s", type(error).__name__)
        return [None]


def detect(text: str, pairs: Sequence[Pair]) -> dict[str, float]:
    """Detect the source language of a text. Return the source languages of `pairs` with their
    probabilities in percent, the most probable language first.

    The probability of a token is 1 / (rank * ln(size)) by Zipf's law, where size is the number of
    types, because vocabularies are sorted by frequency. An unknown token is spelled with 30
    letters.
    """
    costs: dict[str, float] = {}
    for pair in pairs:
        vocab = TRANSLATORS[pair].source_vocab
        tokens = TRANSLATORS[pair].source_tokenizer.tokenize(" ".join(text.split()))
        log_size = math.log(math.log(len(vocab)))
        token_costs = []
        for token, rank in zip(tokens, vocab.ids_of(tokens), strict=True):
            if token in vocab:
                token_costs.append(math.log(1 + rank) + log_size)
            else:
                token_costs.append((1 + len(token)) * math.log(30))
        costs[pair[0]] = sum(token_costs)
    odds = {source: math.exp(min(costs.values()) - cost) for source, cost in costs.items()}
    total = sum(odds.values())
    return {source: 100 * odds[source] / total for source in sorted(odds, key=costs.__getitem__)}
