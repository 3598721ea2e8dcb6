"""Alignment errors by where attention has to go next: on to the following source word, or anywhere else.

The move of a target word is from the source word that the target word before it is linked to. Where a word has several
links, the first counts; a target word without links is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from scripts.laboratory.harness.records import Record
from seq2seq_attn import load
from seq2seq_attn.metrics.alignment import Weights, words_from_tokens
from seq2seq_attn.text.captions import find_captions, tokenize_caption
from seq2seq_attn.text.corpus import read_lines
from seq2seq_attn.text.links import Link, parse_pharaoh


def measure_moves(run: Path) -> Record:
    """The errors of a German-English run on the test set of the embedded corpus, in forced decoding."""
    sources, references, links = (read_lines(path) for path in find_captions(None, "de", "en")["test"])
    weights = []
    for pair, *texts in zip(load(run, "cpu").score(sources, references), sources, references, strict=True):
        assert pair.attention is not None
        words = map(tokenize_caption, texts)
        weights.append(words_from_tokens(pair.attention, pair.source_tokens[:-1], pair.tokens, *words))
    return errors_by_move(weights, map(parse_pharaoh, links))


def errors_by_move(weights: Sequence[Weights], links: Iterable[Sequence[Link]]) -> Record:
    """Of the target words whose source word follows (`next`) or does not follow (`jump`) the last one: their number,
    and the share whose largest weight is on none of their links."""
    hits: dict[str, list[bool]] = {"next": [], "jump": []}
    for weights_TS, pair_links in zip(weights, links, strict=True):
        for move, is_hit in _hits(weights_TS, pair_links):
            hits["next" if move == 1 else "jump"].append(is_hit)
    return {
        kind: {"num_words": len(values), "error_rate": round(1.0 - sum(values) / len(values), 4)}
        for kind, values in hits.items()
        if values
    }


def _hits(weights_TS: Weights, links: Sequence[Link]) -> Iterator[tuple[int, bool]]:
    """The move to each linked target word but the first, and whether the largest weight is on one of its links."""
    last = None
    for target, weights_S in enumerate(weights_TS):
        sources = [source for source, linked in links if linked == target]
        if not sources:
            continue
        if last is not None:
            yield min(sources) - last, int(weights_S.argmax()) in sources
        last = min(sources)
