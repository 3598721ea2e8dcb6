"""Forced decoding: log-probability and attention of given pairs.

The decoder reads the given target instead of its own translation, so that its attention can be
compared with gold links (Koehn and Knowles 2017, section 3.5).

Shapes: B sentence pairs, S source positions with EOS, T target positions with EOS, N target tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import torch

from seq2seq_attn.data.batch import collate
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.text.normalize import one_line
from seq2seq_attn.text.vocab import PAD
from seq2seq_attn.translate.segments import (
    Segment,
    check_lines,
    chunks,
    empty_translation,
    map_in_batches,
)
from seq2seq_attn.translate.translation import EOS_TOKEN, Translation

if TYPE_CHECKING:
    from seq2seq_attn.translate.translator import Translator


def force_decode(
    translator: Translator,
    sources: Iterable[str],
    targets: Iterable[str],
    *,
    batch_size: int | None = None,
) -> Iterator[Translation]:
    """Each target as a translation of its source, with the model's log-probability and attention,
    in order.

    Lines of any length are decoded whole, because a target cannot be split along with its source.
    For a blank target, only EOS is scored. A pair with a blank source is not scored: no tokens, no
    attention, log-probability 0.

    Args:
        batch_size: pairs decoded at once; changes speed and memory only. None: as configured for
            translation.

    Raises:
        UsageError: the numbers of sources and targets differ, `batch_size` is below 1, or it is an
            ensemble.
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
    decode = partial(_decode_batch, translator, translator.model)
    batch_size = translator.search_options({"batch_size": batch_size}).batch_size

    def decode_chunk(sources: Sequence[str], targets: Sequence[str]) -> Iterator[Translation]:
        tokens = (
            translator.source_tokenizer.tokenize_many(sources),
            translator.target_tokenizer.tokenize_many(targets),
        )
        pairs = [
            Segment(line, source, translator.source_vocab.ids_of(source), target)
            for line, source, target in zip(sources, *tokens, strict=True)
        ]
        real = [pair for pair in pairs if pair.source]
        lengths = [max(len(pair.source), len(pair.target)) for pair in real]
        decoded = iter(map_in_batches(decode, real, lengths, batch_size))
        for pair, target in zip(pairs, targets, strict=True):
            blank = empty_translation(translator.has_attention)
            yield replace(next(decoded), text=one_line(target)) if pair.source else blank

    rest = iter(targets)
    return (
        pair
        for chunk in chunks(sources)
        for pair in decode_chunk(chunk, [*islice(rest, len(chunk))])
    )


@torch.inference_mode()
def _decode_batch(
    translator: Translator, model: Seq2Seq, pairs: Sequence[Segment]
) -> list[Translation]:
    """The pairs as translations without text."""
    source_ids = [pair.ids for pair in pairs]
    target_ids = [translator.target_vocab.ids_of(pair.target) for pair in pairs]
    extended, vectors = translator.extend(pairs), translator.read_vectors(pairs)
    batch = collate(source_ids, target_ids, range(len(pairs)), extended=extended, vectors=vectors)
    batch = batch.to(translator.device)
    outputs = model(batch)
    is_padding_TB = batch.tgt_out_BT.t() == PAD
    log_probs_TB = model.output.target_log_probs(outputs, batch).float().view(is_padding_TB.shape)
    log_probs = log_probs_TB.masked_fill(is_padding_TB, 0.0).sum(dim=0).tolist()
    weights_BTS = outputs.weights_TBS.transpose(0, 1).float().cpu().numpy()
    translations = []
    for pair, log_prob, weights_TS in zip(pairs, log_probs, weights_BTS, strict=True):
        num_tokens = len(pair.target)
        attention = (
            weights_TS[: num_tokens + 1, : len(pair.source) + 1].copy()
            if model.has_attention
            else None
        )
        translations.append(
            Translation(
                text="",
                tokens=[*pair.target],
                score=log_prob / (num_tokens + 1) ** translator.search.length_penalty,
                log_prob=log_prob,
                source_tokens=[*pair.source, EOS_TOKEN],
                attention=attention,
                is_finished=True,
                heaviest=None
                if attention is None
                else attention[:num_tokens].argmax(axis=1).tolist(),
                unknown=translator.find_unknown(pair),
            )
        )
    return translations
