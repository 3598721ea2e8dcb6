"""Forced decoding: log-probability and attention of given sentence pairs.

The decoder reads the given target instead of the tokens that it predicts, so that its attention can
be compared with gold links (Koehn and Knowles 2017, section 3.5).

Shapes: B sentence pairs, S source positions with EOS, T target positions with EOS, N target tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

import torch

from seq2seq_attn.data.batch import collate
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.search.base import find_search
from seq2seq_attn.text.normalize import one_line
from seq2seq_attn.text.vocab import PAD
from seq2seq_attn.translate.segments import (
    Segment,
    check_lines,
    chunks,
    empty_translation,
    map_in_batches,
    unknown_positions,
)
from seq2seq_attn.translate.translation import EOS_TOKEN, Translation, name_unknown

if TYPE_CHECKING:
    from seq2seq_attn.translate.translator import Translator


def force_decode(
    translator: Translator,
    sources: Iterable[str],
    targets: Iterable[str],
    *,
    batch_size: int | None = None,
) -> Iterator[Translation]:
    """Return each target as a translation of its source, in order.

    The translations hold the model's log-probability and attention. Lines of any length are decoded
    whole, because a target cannot be split along with its source. For a blank target, only EOS is
    scored. A pair with a blank source is not scored: its translation has no tokens, no attention
    and log-probability 0.

    Args:
        batch_size: number of pairs decoded at once, which changes speed and memory only. None
            takes the batch size that is configured for translation.

    Raises:
        UsageError: the numbers of sources and targets differ, `batch_size` is below 1, or the
            translator is an ensemble.
    """
    sources = check_lines(sources, "sources", "score([source], [target])")
    targets = check_lines(targets, "targets", "score([source], [target])")
    if len(sources) != len(targets):
        raise UsageError(
            f"{len(sources)} source lines and {len(targets)} target lines: give one target for "
            "each source"
        )
    if not isinstance(translator.model, Seq2Seq):
        raise UsageError("forced decoding takes one run, not an ensemble; score each run by itself")
    _, options = find_search(translator.search, {"batch_size": batch_size})
    batch_size = options.batch_size
    next_targets = iter(targets)
    decoded = (
        _decode_chunk(translator, chunk, list(islice(next_targets, len(chunk))), batch_size)
        for chunk in chunks(sources)
    )
    return chain.from_iterable(decoded)


def _decode_chunk(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], batch_size: int
) -> Iterator[Translation]:
    """Decode the pairs of a chunk in batches of similar length, and yield them in order."""
    tokenized = zip(
        sources,
        translator.source_tokenizer.tokenize_many(sources),
        translator.target_tokenizer.tokenize_many(targets),
        strict=True,
    )
    pairs = []
    for line, source, target in tokenized:
        pairs.append(Segment(line, source, translator.source_vocab.ids_of(source), target))
    scored = [pair for pair in pairs if pair.source]
    decoded = iter(map_in_batches(partial(_decode_batch, translator), scored, batch_size))
    for pair, text in zip(pairs, targets, strict=True):
        if pair.source:
            yield replace(next(decoded), text=one_line(text))
        else:
            yield empty_translation(translator.has_attention)


@torch.inference_mode()
def _decode_batch(translator: Translator, pairs: Sequence[Segment]) -> list[Translation]:
    """Decode a batch of pairs into translations whose text is empty."""
    model = translator.model
    assert isinstance(model, Seq2Seq)
    batch = collate(
        [pair.ids for pair in pairs],
        [translator.target_vocab.ids_of(pair.target) for pair in pairs],
        range(len(pairs)),
        extended=translator.extend(pairs),
        vectors=translator.read_vectors(pairs),
    ).to(translator.device)
    outputs = model(batch)
    is_padding_TB = batch.tgt_out_BT.t() == PAD
    log_probs_TB = model.output.target_log_probs(outputs).float().view(is_padding_TB.shape)
    log_probs = log_probs_TB.masked_fill(is_padding_TB, 0.0).sum(dim=0).tolist()
    weights_BTS = outputs.weights_TBS.transpose(0, 1).float().cpu().numpy()
    translations = []
    for pair, log_prob, weights_TS in zip(pairs, log_probs, weights_BTS, strict=True):
        num_tokens = len(pair.target)
        attention = None
        heaviest = None
        if model.has_attention:
            attention = weights_TS[: num_tokens + 1, : len(pair.source) + 1].copy()
            heaviest = attention[:num_tokens].argmax(axis=1).tolist()
        translations.append(
            Translation(
                text="",
                tokens=list(pair.target),
                score=log_prob / (num_tokens + 1) ** translator.search.length_penalty,
                log_prob=log_prob,
                source_tokens=[*pair.source, EOS_TOKEN],
                attention=attention,
                is_finished=True,
                heaviest=heaviest,
                unknown_positions=unknown_positions(pair, translator.source_tokenizer),
            )
        )
    return list(map(name_unknown, translations))
