"""A trained model reads given pairs: what it looks at, how probable it finds them, and what it makes of a sentence.

Teacher forcing at test time: the decoder is fed the given target, so that its attention can be held against links of
that target (Koehn and Knowles 2017, section 3.5), whatever the model would have said itself.

Shapes: N lines, B sentence pairs, S source positions with EOS, T target positions with EOS, M summary size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seq2seq_attn.data.batch import Batch, collate, collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.unroll import unroll
from seq2seq_attn.text.vocab import PAD
from seq2seq_attn.translate.batching import batches_by_length, evaluating
from seq2seq_attn.translate.translation import EOS_TOKEN
from seq2seq_attn.translate.translator import Translator

FloatArray = npt.NDArray[np.float32]

# Pairs are sorted by length and batched inside a chunk of this size, and its readings are what is held in memory.
_CHUNK_PAIRS = 2_048


@dataclass(frozen=True, eq=False)
class Reading:
    """What the model did with one pair."""

    source_tokens: list[str]
    """as the tokeniser gives them, those without an id too; `<eos>` last"""
    target_tokens: list[str]
    """likewise, without EOS"""
    weights_TS: FloatArray | None
    """a row for each of `target_tokens` and one for EOS, a column for each of `source_tokens`; rows sum to 1. None for
    a model whose attention has no source positions"""
    summary_M: FloatArray
    """the encoder's last states side by side, before the bridge: all that the fixed-vector arms see of the source"""
    log_prob: float
    """of the target with its EOS, in nats; a token without an id counts as UNK"""


def read_pairs(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], *, batch_size: int | None = None
) -> Iterator[Reading]:
    """The reading of each pair, in order.

    A line of any length is read whole: a target has no known place at which to cut it along with its source. Of
    a blank target only its EOS is read. A pair with a blank source is not read, as it would not be translated: no
    tokens, no rows of weights, a summary of zeros, log-probability 0.

    Args:
        batch_size: pairs read at once; changes speed and memory only. None: as the run is configured to translate.

    Raises:
        UsageError: another number of sources than of targets, or a `batch_size` below 1.
    """
    if len(sources) != len(targets):
        raise UsageError(
            f"{len(sources)} source lines and {len(targets)} target lines: give one target for each source"
        )
    batch_size = _checked(translator, batch_size)
    return (
        reading
        for start in range(0, len(sources), _CHUNK_PAIRS)
        for reading in _read_chunk(
            translator, sources[start : start + _CHUNK_PAIRS], targets[start : start + _CHUNK_PAIRS], batch_size
        )
    )


def summaries(translator: Translator, sources: Sequence[str], *, batch_size: int | None = None) -> FloatArray:
    """The encoder's summary of each line, [N, M], as `Reading.summary_M`; zeros for a blank line.

    Raises:
        UsageError: a `batch_size` below 1.
    """
    batch_size = _checked(translator, batch_size)
    model = _model(translator)
    tokens_of = translator.source_tokenizer.tokenize_many(sources)
    rows = [row for row, tokens in enumerate(tokens_of) if tokens]
    summaries_NM = np.zeros((len(sources), model.encoder.memory_size), dtype=np.float32)
    with torch.inference_mode(), evaluating(model):
        for places in batches_by_length([len(tokens_of[row]) for row in rows], batch_size):
            chosen = [rows[place] for place in places]
            source = collate_source([translator.source_vocab.ids_of(tokens_of[row]) for row in chosen])
            summaries_NM[chosen] = _array(model.encode_source(source.to(translator.device)).final_BM)
    return summaries_NM


def _checked(translator: Translator, batch_size: int | None) -> int:
    chosen = translator.search.batch_size if batch_size is None else batch_size
    if chosen < 1:
        raise UsageError(f"batch_size={chosen}: expected 1 or more")
    return chosen


def _model(translator: Translator) -> Seq2Seq:
    """The translator's model, of which reading needs more than search does."""
    if not isinstance(translator.model, Seq2Seq):
        raise TypeError(f"expected a translator with a Seq2Seq model, got one with {type(translator.model).__name__}")
    return translator.model


def _read_chunk(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], batch_size: int
) -> list[Reading]:
    model = _model(translator)
    pairs = list(
        zip(
            translator.source_tokenizer.tokenize_many(sources),
            translator.target_tokenizer.tokenize_many(targets),
            strict=True,
        )
    )
    rows = [row for row, (source, _) in enumerate(pairs) if source]
    found = [_blank(model)] * len(pairs)
    for places in batches_by_length([max(map(len, pairs[row])) for row in rows], batch_size):
        chosen = [rows[place] for place in places]
        readings = _read_batch(translator, model, [pairs[row] for row in chosen])
        for row, reading in zip(chosen, readings, strict=True):
            found[row] = reading
    return found


def _read_batch(
    translator: Translator, model: Seq2Seq, pairs: Sequence[tuple[list[str], list[str]]]
) -> Iterator[Reading]:
    batch = collate(
        [translator.source_vocab.ids_of(source) for source, _ in pairs],
        [translator.target_vocab.ids_of(target) for _, target in pairs],
        range(len(pairs)),
    ).to(translator.device)
    with torch.inference_mode(), evaluating(model):
        weights_BTS, summaries_BM, log_probs_B = _forced(model, batch)
    for row, (source, target) in enumerate(pairs):
        yield Reading(
            source_tokens=[*source, EOS_TOKEN],
            target_tokens=target,
            weights_TS=None if weights_BTS is None else weights_BTS[row, : len(target) + 1, : len(source) + 1].copy(),
            summary_M=summaries_BM[row],
            log_prob=float(log_probs_B[row]),
        )


def _forced(model: Seq2Seq, batch: Batch) -> tuple[FloatArray | None, FloatArray, FloatArray]:
    """`weights_BTS`, `summaries_BM` and `log_probs_B` of a batch."""
    decoder = model.decoder
    encoded = model.encode_source(batch.source)
    memory, state = decoder.attention.prepare(encoded.values_BSM, batch.source.mask_BS)
    embedded_TBE = decoder.embedding(batch.tgt_in_BT.t().contiguous())
    unrolled = unroll(decoder, embedded_TBE, decoder.start(encoded.final_BM), memory, state)
    log_probs_B = torch.zeros(len(batch.tgt_out_BT), dtype=torch.float32, device=batch.tgt_out_BT.device)
    for step, targets_B in enumerate(batch.tgt_out_BT.t()):  # one step at a time: never a B x T x V tensor
        features_BF = decoder.features(unrolled.states_TBH[step], unrolled.contexts_TBM[step], embedded_TBE[step])
        nll_B = torch.nn.functional.cross_entropy(
            decoder.output(features_BF).float(), targets_B, ignore_index=PAD, reduction="none"
        )
        log_probs_B -= nll_B
    weights_BTS = _array(unrolled.weights_TBS.transpose(0, 1)) if decoder.attention.is_positional else None
    return weights_BTS, _array(encoded.final_BM), _array(log_probs_B)


def _array(tensor: Tensor) -> FloatArray:
    array: FloatArray = tensor.float().cpu().numpy()
    return array


def _blank(model: Seq2Seq) -> Reading:
    weights_TS = np.zeros((0, 1), dtype=np.float32) if model.decoder.attention.is_positional else None
    return Reading([EOS_TOKEN], [], weights_TS, np.zeros(model.encoder.memory_size, dtype=np.float32), 0.0)
