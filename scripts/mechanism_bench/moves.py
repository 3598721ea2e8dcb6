"""Alignment errors by where attention has to go next: on to the following source word, or anywhere else.

The move of a target word is from the source word that the target word before it is linked to. Where a word has several
links, the first counts; a target word without links is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scripts.laboratory.harness.records import Record
from seq2seq_attn.evaluation.attention import decode_gold
from seq2seq_attn.evaluation.attention_scores import GoldAttention
from seq2seq_attn.evaluation.test_sets import find_sets
from seq2seq_attn.metrics.alignment import Weights
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.text.links import Link
from seq2seq_attn.translate.translator import load


def measure_moves(run: RunDir) -> Record | None:
    """The record of a run on its test set; None without attention over source positions."""
    translator = load(run.path, "cpu")
    if not translator.has_attention:
        return None
    [test] = find_sets([run], [run.config()])
    if test.gold is None:
        raise ValueError(f"{run.path}: its test set has no gold links")
    return errors_by_move(decode_gold(translator, test.source, test.references, test.gold))


def errors_by_move(attention: GoldAttention) -> Record:
    """Of the target words whose source word follows (`next`) or does not follow (`jump`) the last one: their number,
    and the share whose largest weight is on none of their links."""
    hits: dict[str, list[bool]] = {"next": [], "jump": []}
    for weights_TS, links in zip(attention.weights, attention.links, strict=True):
        for move, is_hit in _hits(weights_TS, links):
            hits["next" if move == 1 else "jump"].append(is_hit)
    return {
        kind: {"num_words": len(found), "error_rate": round(1.0 - sum(found) / len(found), 4)}
        for kind, found in hits.items()
        if found
    }


def _hits(weights_TS: Weights, links: Sequence[Link]) -> Iterator[tuple[int, bool]]:
    """The move to each linked target word but the first, and whether the largest weight is on one of its links."""
    before = None
    for target, weights_S in enumerate(weights_TS):
        sources = [source for source, of_target in links if of_target == target]
        if not sources:
            continue
        if before is not None:
            yield min(sources) - before, int(weights_S.argmax()) in sources
        before = min(sources)
