"""Forced decoding: log-probability and attention of given pairs, and the encoder's summary of a sentence.

The decoder reads the given target instead of its own translation, so that its attention can be compared with gold links
(Koehn and Knowles 2017, section 3.5).

Shapes: N lines, B sentence pairs, S source positions with EOS, T target positions with EOS, M summary size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.text.normalize import one_line
from seq2seq_attn.text.tokenizers.vectors import FloatArray
from seq2seq_attn.text.vocab import PAD, extended_ids
from seq2seq_attn.translate.batching import (
    batches_by_length,
    eval_mode,
    list_of_lines,
    read_line_vectors,
    unknown_positions,
)
from seq2seq_attn.translate.translation import EOS_TOKEN, Translation, empty_translation

if TYPE_CHECKING:
    from seq2seq_attn.translate.translator import Translator

# Pairs are sorted by length and batched inside a chunk of this size; only a chunk's results are held in memory.
_CHUNK_PAIRS = 2_048


class _Pair(NamedTuple):
    source: list[str]
    target: list[str]
    line: str
    """the source"""
    text: str
    """the target"""


def force_decode(
    translator: Translator, sources: Iterable[str], targets: Iterable[str], *, batch_size: int | None = None
) -> Iterator[Translation]:
    """Each target as a translation of its source, with the model's log-probability and attention, in order.

    Lines of any length are decoded whole, because a target cannot be split along with its source. For a blank target,
    only EOS is scored. A pair with a blank source is not scored: no tokens, no attention, log-probability 0.

    Args:
        batch_size: pairs decoded at once; changes speed and memory only. None: as configured for translation.

    Raises:
        UsageError: the numbers of sources and targets differ, `batch_size` is below 1, or it is an ensemble.
    """
    sources = list_of_lines(sources, "sources", "score([source], [target])")
    targets = list_of_lines(targets, "targets", "score([source], [target])")
    if len(sources) != len(targets):
        raise UsageError(
            f"{len(sources)} source lines and {len(targets)} target lines: give one target for each source"
        )
    batch_size = translator.search_options({"batch_size": batch_size}).batch_size
    _model(translator)  # rejects an ensemble now, not at the first pair
    return (
        decoded
        for start in range(0, len(sources), _CHUNK_PAIRS)
        for decoded in _decode_chunk(
            translator, sources[start : start + _CHUNK_PAIRS], targets[start : start + _CHUNK_PAIRS], batch_size
        )
    )


def _model(translator: Translator) -> Seq2Seq:
    """The translator's model. Forced decoding needs a `Seq2Seq`, not just a `StepModel`."""
    if not isinstance(translator.model, Seq2Seq):
        raise UsageError("forced decoding takes one run, not an ensemble; score each run by itself")
    return translator.model


def _decode_chunk(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], batch_size: int
) -> list[Translation]:
    pairs = [
        _Pair(*pair)
        for pair in zip(
            translator.source_tokenizer.tokenize_many(sources),
            translator.target_tokenizer.tokenize_many(targets),
            sources,
            targets,
            strict=True,
        )
    ]
    rows = [row for row, pair in enumerate(pairs) if pair.source]
    translations = [empty_translation(translator.has_attention)] * len(pairs)
    lengths = [max(len(pairs[row].source), len(pairs[row].target)) for row in rows]
    for positions in batches_by_length(lengths, batch_size):
        if translator.watch is not None:
            translator.watch.check()
        chosen = [rows[position] for position in positions]
        decoded = _decode_batch(translator, [pairs[row] for row in chosen])
        for row, translation in zip(chosen, decoded, strict=True):
            translations[row] = translation
    return translations


def _decode_batch(translator: Translator, pairs: Sequence[_Pair]) -> Iterator[Translation]:
    model = _model(translator)
    source_ids = [translator.source_vocab.ids_of(pair.source) for pair in pairs]
    target_ids = [translator.target_vocab.ids_of(pair.target) for pair in pairs]
    extended = None
    if model.output.copies_source:
        spell = translator.target_tokenizer.spell_source
        extended = [extended_ids(spell(pair.source), pair.target, translator.target_vocab) for pair in pairs]
    lines, sources = [pair.line for pair in pairs], [pair.source for pair in pairs]
    vectors = read_line_vectors(lines, sources, translator.source_tokenizer)
    batch = collate(source_ids, target_ids, range(len(pairs)), extended=extended, vectors=vectors)
    batch = batch.to(translator.device)
    with torch.inference_mode(), eval_mode(model):
        weights_BTS, log_probs_B = _forced(model, batch)
    for row, pair in enumerate(pairs):
        num_tokens = len(pair.target)
        weights_TS = None if weights_BTS is None else weights_BTS[row, : num_tokens + 1, : len(pair.source) + 1].copy()
        log_prob = float(log_probs_B[row])
        yield Translation(
            text=one_line(pair.text),
            tokens=pair.target,
            score=log_prob / (num_tokens + 1) ** translator.search.length_penalty,
            log_prob=log_prob,
            source_tokens=[*pair.source, EOS_TOKEN],
            attention=weights_TS,
            is_finished=True,
            heaviest=None if weights_TS is None else weights_TS[:num_tokens].argmax(axis=1).tolist(),
            unknown=unknown_positions(pair.source, translator.source_vocab, translator.source_tokenizer),
        )


def _forced(model: Seq2Seq, batch: Batch) -> tuple[FloatArray | None, FloatArray]:
    """`weights_BTS` and `log_probs_B` of a batch."""
    outputs = model(batch)
    num_steps, num_pairs = outputs.weights_TBS.shape[:2]
    log_probs = torch.zeros(num_steps * num_pairs, device=batch.source.ids_BS.device)
    is_real_N = outputs.targets_N != PAD
    log_probs[outputs.positions_N[is_real_N]] = model.output.target_log_probs(outputs, batch)[is_real_N].float()
    weights_BTS = _array(outputs.weights_TBS.transpose(0, 1)) if model.has_attention else None
    return weights_BTS, _array(log_probs.view(num_steps, num_pairs).sum(dim=0))


def _array(tensor: Tensor) -> FloatArray:
    array: FloatArray = tensor.float().cpu().numpy()
    return array
