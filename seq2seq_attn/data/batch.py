"""Batches: padded tensors of sentence pairs.

Shapes (the package's legend): B sentence pairs, S source positions with EOS, T target positions
with EOS, L links, F dimension of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seq2seq_attn.text.tokenizers.vectors import FloatArray
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK, ExtendedIds, Ids

LinkArray = npt.NDArray[np.integer[Any]]
"""[links of a pair, 2], source and target position"""


class SourceBatch(NamedTuple):
    """Source sentences, each with EOS (so that every row has a real token), padded with PAD."""

    ids_BS: Tensor
    """int64"""
    lengths_B: Tensor
    """int64, real positions including EOS; kept on the CPU so that reading it never synchronizes"""
    extended_ids_BS: Tensor
    """int64, extended ids (`text/vocab.py`) of the same tokens; UNK where the spelling is not
    given"""
    vectors_BSF: Tensor | None = None
    """float32, at the positions of a source of vectors; 0 elsewhere; None: all sources are texts"""

    @property
    def inputs(self) -> Tensor:
        """The input of the embedding, for a single source: ids [B, S] or vectors [B, S, F]."""
        return self.ids_BS if self.vectors_BSF is None else self.vectors_BSF

    @property
    def mask_BS(self) -> Tensor:
        """bool, True = real token."""
        return self.ids_BS != PAD

    def to(self, device: torch.device) -> SourceBatch:
        """The same batch on a device (asynchronously from pinned memory)."""
        return _moved(self, lambda tensor: tensor.to(device, non_blocking=True))


class Batch(NamedTuple):
    """Sentence pairs of one forward pass (a micro-batch)."""

    source: SourceBatch
    tgt_in_BT: Tensor
    """int64, BOS-prefixed, padded with PAD"""
    tgt_out_BT: Tensor
    """int64, EOS-suffixed, padded with PAD"""
    tgt_extended_BT: Tensor
    """int64, `tgt_out_BT` in extended ids"""
    num_tokens: int
    """target tokens to predict, including EOS"""
    indices_B: Tensor
    """int64, indices of the pairs in their split; on the CPU"""
    links_L3: Tensor | None = None
    """int64, word alignments: each link's row, source position and target position; None: the
    corpus has none"""

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device (asynchronously from pinned memory)."""
        return _moved(self, lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> Batch:
        """The same batch in pinned memory, from which a GPU copies asynchronously."""
        return _moved(self, Tensor.pin_memory)


_ON_CPU = ("lengths_B", "indices_B")
"""tensors that never go to a device"""
BatchT = TypeVar("BatchT", SourceBatch, Batch)


def _moved(batch: BatchT, move: Callable[[Tensor], Tensor]) -> BatchT:
    """The batch with its own tensors moved, except those that stay on the CPU."""
    moved: dict[str, Any] = {}
    for name, value in batch._asdict().items():
        if isinstance(value, SourceBatch):
            moved[name] = _moved(value, move)
        elif isinstance(value, Tensor) and name not in _ON_CPU:
            moved[name] = move(value)
    return batch._replace(**moved)


def collate_source(
    sequences: Sequence[Ids],
    extended: Sequence[Ids] | None = None,
    vectors: Sequence[FloatArray] | None = None,
) -> SourceBatch:
    """Pad source id sequences (without specials) into a batch, EOS appended; `extended` are their
    extended ids, `vectors` [ids, F] those at their positions."""
    if extended is None:
        extended = [[UNK] * len(sequence) for sequence in sequences]
    lengths_B = torch.tensor([len(sequence) + 1 for sequence in sequences])
    batch = SourceBatch(_padded(sequences), lengths_B, _padded(extended))
    if vectors is None:
        return batch
    vectors_BSF = np.zeros((*batch.ids_BS.shape, vectors[0].shape[1]), dtype=np.float32)
    for row, sentence_vectors in enumerate(vectors):
        vectors_BSF[row, : len(sentence_vectors)] = sentence_vectors
    return batch._replace(vectors_BSF=torch.from_numpy(vectors_BSF))


def _padded(sequences: Sequence[Ids]) -> Tensor:
    """[sequences, positions], EOS appended."""
    shape = (len(sequences), max(map(len, sequences)) + 1)
    padded = np.full(shape, PAD, dtype=np.int64)
    for row, sequence in enumerate(sequences):
        padded[row, : len(sequence)] = sequence
        padded[row, len(sequence)] = EOS
    return torch.from_numpy(padded)


def collate(
    source: Sequence[Ids],
    target: Sequence[Ids],
    indices: Sequence[int],
    links: Sequence[LinkArray] | None = None,
    extended: Sequence[ExtendedIds] | None = None,
    vectors: Sequence[FloatArray] | None = None,
) -> Batch:
    """Pad aligned source and target id sequences (without specials) into a batch; `links` of each
    pair, if there are any. Without `extended` no target token can be copied from the source.
    `vectors` as in `collate_source`."""
    tgt_out_BT = _padded(target)
    extended_sources = None
    tgt_extended_BT = tgt_out_BT.clone()
    if extended is not None:
        extended_sources = [pair.source for pair in extended]
        tgt_extended_BT = _padded([pair.target for pair in extended])
    links_L3 = None
    if links is not None:
        rows_L = np.repeat(np.arange(len(links)), [len(pair_links) for pair_links in links])
        columns = np.column_stack([rows_L, np.concatenate(links)])
        links_L3 = torch.from_numpy(columns.astype(np.int64))
    return Batch(
        source=collate_source(source, extended_sources, vectors),
        tgt_in_BT=_target_inputs(tgt_out_BT),
        tgt_out_BT=tgt_out_BT,
        tgt_extended_BT=tgt_extended_BT,
        num_tokens=sum(len(sequence) + 1 for sequence in target),
        indices_B=torch.tensor(indices),
        links_L3=links_L3,
    )


def _target_inputs(tgt_out_BT: Tensor) -> Tensor:
    """The targets one step later: BOS in place of EOS."""
    bos_B1 = torch.full_like(tgt_out_BT[:, :1], BOS)
    shifted_BT = torch.cat([bos_B1, tgt_out_BT[:, :-1]], dim=1)
    return shifted_BT.masked_fill(tgt_out_BT == PAD, PAD)


def swapped(batch: Batch) -> Batch:
    """The pairs in the other direction: the target is the source, the source the target. No target
    token is known to be a source token."""
    ids_BS = batch.source.ids_BS
    tgt_BT = batch.tgt_out_BT
    lengths_B = (tgt_BT != PAD).sum(dim=1).cpu()
    return Batch(
        source=SourceBatch(tgt_BT, lengths_B, torch.where(tgt_BT > EOS, UNK, tgt_BT)),
        tgt_in_BT=_target_inputs(ids_BS),
        tgt_out_BT=ids_BS,
        tgt_extended_BT=ids_BS,
        num_tokens=int(batch.source.lengths_B.sum()),
        indices_B=batch.indices_B,
        links_L3=None if batch.links_L3 is None else batch.links_L3[:, [0, 2, 1]],
    )


def rounded_up(batch: Batch, *, rows: int, positions: int) -> Batch:
    """Pad a batch so that few shapes occur: B to a multiple of `rows`, S and T to multiples of
    `positions`.

    Added rows have a source of EOS alone and no target, so the loss ignores them.
    """
    num_rows = len(batch.tgt_out_BT)
    more_rows = -num_rows % rows

    def padded(ids: Tensor) -> Tensor:
        more_positions = -ids.shape[1] % positions
        return torch.nn.functional.pad(ids, (0, more_positions, 0, more_rows), value=PAD)

    ids_BS = padded(batch.source.ids_BS)
    extended_ids_BS = padded(batch.source.extended_ids_BS)
    ids_BS[num_rows:, 0] = EOS
    extended_ids_BS[num_rows:, 0] = EOS
    lengths_B = torch.nn.functional.pad(batch.source.lengths_B, (0, more_rows), value=1)
    return batch._replace(
        source=SourceBatch(ids_BS, lengths_B, extended_ids_BS),
        tgt_in_BT=padded(batch.tgt_in_BT),
        tgt_out_BT=padded(batch.tgt_out_BT),
        tgt_extended_BT=padded(batch.tgt_extended_BT),
    )
