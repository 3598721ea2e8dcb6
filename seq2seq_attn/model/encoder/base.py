"""The contract of encoders, and helpers that they share. An encoder reads a source batch and
returns one value per position and a summary.

A variant is a file in this folder with one final class. `model/build.py` builds it.

Shapes: B sentence pairs, S source positions, M value size, I input size, H hidden size, P gate
pre-activations.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.cell.base import Cell, run_cell
from seq2seq_attn.model.layers import Embedding, SourceEmbedding, wide_dtype


class Encoded(NamedTuple):
    """An encoded source batch. Encoders may leave any numbers on padding; `zeroed` sets padding to
    0 before decoders and outputs read the values and the embeddings."""

    values_BSM: Tensor
    """one vector per position, for example the states of both directions side by side"""
    mask_BS: Tensor
    """bool, True = real position; at least one per row"""
    final_BM: Tensor
    """the summary that the decoder starts from, for example the last state of each direction"""
    embedded_BSE: Tensor | None = None
    """the embeddings of the source; None if the encoder has no `embedding`"""
    spread_BPS: Tensor | None = None
    """where the encoder has P positions of its own (`Encoder.keeps_positions`): the share of the
    attention weight of position p that source token s gets. The shares of a real position sum to 1,
    and padding gets 0. `mask_BS` and the values are then [B, P]"""


class Encoder(nn.Module, ABC):
    """Encode a source. `memory_size` is M, the width of the values and of the summary.

    An exported encoder may read `source.lengths_B` as a tensor, but not as Python numbers.
    """

    keeps_positions: bool = True
    """whether value j belongs to source token j. If not, as in a pyramid, which has fewer positions
    than tokens, `Encoded.spread_BPS` maps weights to tokens, and variants that need a value for
    each token are refused"""

    def __init__(self, memory_size: int, embedding: SourceEmbedding | None = None) -> None:
        super().__init__()
        self.memory_size = memory_size
        self.embedding = embedding

    @property
    def token_embedding(self) -> Embedding | None:
        """The embedding of source tokens; None if the encoder has no embedding or the source
        consists of vectors."""
        return self.embedding if isinstance(self.embedding, Embedding) else None

    @abstractmethod
    def forward(self, source: SourceBatch) -> Encoded:
        """Encode a batch. The values of real positions do not depend on padding."""


def zero_padding(values_BSM: Tensor, mask_BS: Tensor) -> Tensor:
    """Return the values with padding set to 0. A NaN in padding would spread to an average, because
    0 * NaN is NaN."""
    return values_BSM.masked_fill(~mask_BS.unsqueeze(-1), 0.0)


def zeroed(encoded: Encoded) -> Encoded:
    """Set the padding of values and embeddings to 0."""
    embedded_BSE = encoded.embedded_BSE
    if embedded_BSE is not None:
        token_mask_BS = encoded.mask_BS
        if encoded.spread_BPS is not None:
            token_mask_BS = (encoded.spread_BPS > 0).any(dim=1)
        embedded_BSE = zero_padding(embedded_BSE, token_mask_BS)
    values_BSM = zero_padding(encoded.values_BSM, encoded.mask_BS)
    return encoded._replace(values_BSM=values_BSM, embedded_BSE=embedded_BSE)


def mean_value(values_BSM: Tensor, mask_BS: Tensor) -> Tensor:
    """Return the mean over real positions, which is `final_BM` of encoders without a last state."""
    return zero_padding(values_BSM, mask_BS).sum(dim=1) / mask_BS.sum(dim=1, keepdim=True)


def read_positions(cell: Cell, inputs_SBI: Tensor) -> Tensor:
    """Run a cell, which starts from zeros, over the positions one after another. Return its hidden
    states `hidden_SBH`."""
    gates_SBP = cell.project_inputs(inputs_SBI)
    dtype = wide_dtype(gates_SBP.dtype)
    hidden_BH = gates_SBP.new_zeros(gates_SBP.shape[1], cell.hidden_size, dtype=dtype)
    return run_cell(cell, gates_SBP, hidden_BH)


def find_reversal(lengths_B: Tensor, num_positions: int) -> Tensor:
    """Return the index [S, B] for `reverse`. Each sentence is reversed within its own length, so
    that padding stays last."""
    lengths_1B = lengths_B.unsqueeze(0)
    positions_S1 = torch.arange(num_positions, device=lengths_B.device).unsqueeze(1)
    return torch.where(positions_S1 < lengths_1B, lengths_1B - 1 - positions_S1, positions_S1)


def reverse(inputs_SBI: Tensor, reversal_SB: Tensor) -> Tensor:
    """Reverse each sentence within its length: position s of the result is position `reversal_SB[s,
    b]` of the input."""
    return inputs_SBI.gather(0, reversal_SB.unsqueeze(-1).expand(-1, -1, inputs_SBI.shape[-1]))
