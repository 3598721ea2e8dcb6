"""The methods of `search/` on a batch of ids, without a translator, and every hypothesis as their
oracle."""

import itertools

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.search.base import SearchSource, find_search
from seq2seq_attn.text.vocab import UNK

A = UNK + 1
B = UNK + 2


def search(
    model,
    batch,
    limits,
    *,
    prefixes=(),
    scorers=(),
    to_ids=lambda text: [],
    continuing=(),
    **options,
):
    """The hypotheses of each sentence, by the method and options named."""
    method, values = find_search(SearchConfig(), options)
    more = {"to_ids": to_ids, "continuing": continuing}
    return method(model, SearchSource(batch, limits, prefixes, scorers, **more), values)


def best_of_all(score, source, max_length):
    """Every translation of UNK, A and B that ends by itself within `max_length` tokens, EOS
    included, with its score(source, translation), best first."""
    scored = []
    for length in range(max_length):
        for ids in itertools.product((UNK, A, B), repeat=length):
            scored.append(([*ids], score(source, [*ids])))
    return sorted(scored, key=lambda pair: -pair[1])
