"""Make batches: padded tensors of sentence pairs.

Shapes: B sentence pairs, S source positions with EOS, T target positions
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
"""[links of a pair, 2]: the source position and the target position of each link"""


class SourceBatch(NamedTuple):
    """Source sentences of a batch, padded with PAD. Each sentence ends in EOS, so that every row
    has a real token."""

    ids_BS: Tensor
    """int64, ids in the source vocabulary"""
    lengths_B: Tensor
    """int64, numbers of tokens including EOS; kept on the CPU so that reading it never
    synchronizes"""
    extended_ids_BS: Tensor
    """int64, extended ids (`text/vocab.py`) of the source tokens; UNK if the caller did not compute
    extended ids"""
    vectors_BSF: Tensor | None = None
    """float32, vectors at the positions of a source that is a file of vectors, and 0 at all other
    positions; None if all sources are texts"""

    @property
    def inputs(self) -> Tensor:
        """Return the input of the encoder's embedding: vectors [B, S, F] if the source is a file of
        vectors, and ids [B, S] otherwise. A batch with several sources must be separated into
        batches of one source first."""
        return self.ids_BS if self.vectors_BSF is None else self.vectors_BSF

    @property
    def mask_BS(self) -> Tensor:
        """Return bool, True = real token."""
        return self.ids_BS != PAD

    def to(self, device: torch.device) -> SourceBatch:
        """Return a copy on a device. The copy is asynchronous from pinned memory."""
        return _moved(self, lambda tensor: tensor.to(device, non_blocking=True))


class Batch(NamedTuple):
    """Sentence pairs of one forward pass (a micro-batch)."""

    source: SourceBatch
    tgt_in_BT: Tensor
    """int64, BOS-prefixed, padded with PAD"""
    tgt_out_BT: Tensor
    """int64, EOS-suffixed, padded with PAD"""
    tgt_extended_BT: Tensor
    """int64, extended ids (`text/vocab.py`) of the tokens in `tgt_out_BT`"""
    num_tokens: int
    """number of target tokens to predict, including EOS"""
    indices_B: Tensor
    """int64, indices of the pairs in their split; kept on the CPU"""
    links_L3: Tensor | None = None
    """int64, word alignments: row, source position and target position of each link; None if the
    corpus has no links"""

    def to(self, device: torch.device) -> Batch:
        """Return a copy on a device. The copy is asynchronous from pinned memory."""
        return _moved(self, lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> Batch:
        """Return a copy in pinned memory, from which a GPU copies asynchronously."""
        return _moved(self, Tensor.pin_memory)


_ON_CPU = ("lengths_B", "indices_B")
"""the names of tensors that stay in pageable memory of the CPU"""
BatchT = TypeVar("BatchT", SourceBatch, Batch)


def _moved(batch: BatchT, move: Callable[[Tensor], Tensor]) -> BatchT:
    """Return the batch after applying `move` to its tensors and to the tensors of its source,
    except those that stay on the CPU."""
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
    """Append EOS to source id sequences, and pad them into a batch.

    Args:
        sequences: ids of each sentence, without specials.
        extended: extended ids of each sentence; None stands for UNK at every token.
        vectors: vectors [tokens, F] of each sentence; None if all sources are texts.
    """
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
    """Append EOS to each sequence, and pad the sequences with PAD to [sequences, positions]."""
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
    """Pad source and target id sequences into a batch.

    Args:
        source: ids of each source sentence, without specials.
        target: ids of each target sentence, without specials.
        indices: index of each pair in its split.
        links: links of each pair; None if the corpus has no links.
        extended: extended ids of each pair; without extended ids, no target token can be copied
            from the source.
        vectors: vectors [tokens, F] of each source sentence; None if all sources are texts.
    """
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
    """Shift targets by one step: prefix BOS, and remove EOS."""
    bos_B1 = torch.full_like(tgt_out_BT[:, :1], BOS)
    shifted_BT = torch.cat([bos_B1, tgt_out_BT[:, :-1]], dim=1)
    return shifted_BT.masked_fill(tgt_out_BT == PAD, PAD)


def swapped(batch: Batch) -> Batch:
    """Swap source and target of a batch. In the result, no target token can be copied from the
    source."""
    ids_BS = batch.source.ids_BS
    tgt_BT = batch.tgt_out_BT
    lengths_B = (tgt_BT != PAD).sum(dim=1).cpu()
    # PAD, BOS and EOS are the smallest ids. All other tokens are UNK, because extended ids depend
    # on spellings, which are not known here.
    extended_ids_BT = torch.where(tgt_BT > EOS, UNK, tgt_BT)
    return Batch(
        source=SourceBatch(tgt_BT, lengths_B, extended_ids_BT),
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

    An added row has EOS as its source and only PAD as its target, so the loss ignores the row. The
    batch has no source vectors: only CUDA graphs need this padding, and they are refused for
    sources of vectors (`train.graphs.check_graphs`).
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
