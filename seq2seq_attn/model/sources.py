"""Several sources: an encoder for each (Zoph and Knight 2016, section 3).

A row of the batch holds all sources of a sentence pair one after the other, each with EOS at its
end. Each encoder reads its own source, and its values take the positions of that source in the row.
So any attention gives one distribution over the positions of all sources (Libovicky and Helcl 2017,
section 3.2, "flat"); `attention/hierarchical.py` gives one distribution per source.

    h_final = tanh(W_c [h^1_final ; h^2_final ; ...])

W_c, the paper's "basic" combination, is `combination`; it has a bias here. A source may consist of
vectors (Huang et al. 2016); its encoder embeds the vectors instead of ids.

Shapes: B sentence pairs, S positions of all sources, P positions of one source, M value size, F
dimension of a vector, X concatenated positions or sizes of all sources.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.encoder.base import Encoded, Encoder, zero_padding
from seq2seq_attn.model.layers import Embedding, VectorEmbedding
from seq2seq_attn.text.vocab import EOS, PAD


def source_indices(ids_BS: Tensor) -> Tensor:
    """Return the index of the source that each position belongs to, which is the number of EOS
    tokens before the position. The index is undefined on padding."""
    is_end_BS = (ids_BS == EOS).long()
    return is_end_BS.cumsum(dim=1) - is_end_BS


class SeveralSources(Encoder):
    """An encoder for each source. Encoders of text share the embedding. A source that a sentence
    pair lacks is read as EOS alone."""

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        memory_size = encoders[0].memory_size
        super().__init__(memory_size)
        self.encoders = nn.ModuleList(encoders)
        self.combination = nn.Linear(len(encoders) * memory_size, memory_size)

    @property
    def token_embedding(self) -> Embedding | None:
        """The embedding that all encoders of text share; None if no encoder has an embedding of
        tokens."""
        for encoder in self.encoders:
            embedding = cast(Encoder, encoder).token_embedding
            if embedding is not None:
                return embedding
        return None

    def forward(self, source: SourceBatch) -> Encoded:
        mask_BS = source.mask_BS
        numbers_BS = source_indices(source.ids_BS).clamp(max=len(self.encoders) - 1)
        positions_S = torch.arange(mask_BS.shape[1], device=mask_BS.device)
        index_BS = torch.zeros_like(numbers_BS)
        encodings: list[Encoded] = []
        width = 0
        for number, encoder in enumerate(self.encoders):
            reads_vectors = isinstance(encoder.embedding, VectorEmbedding)
            inputs = source if reads_vectors else source._replace(vectors_BSF=None)
            single_source, starts_B = _extract_source(inputs, mask_BS & (numbers_BS == number))
            encoded = encoder(single_source)
            columns_BS = positions_S - starts_B.unsqueeze(1) + width
            index_BS = torch.where(numbers_BS == number, columns_BS, index_BS)
            width += encoded.values_BSM.shape[1]
            encodings.append(encoded)
        index_BS = index_BS.masked_fill(~mask_BS, 0)
        values_BSM = _gather_positions([encoded.values_BSM for encoded in encodings], index_BS)
        embeddings = [encoded.embedded_BSE for encoded in encodings]
        embedded = [tensor for tensor in embeddings if tensor is not None]
        embedded_BSE = None
        if len(embedded) == len(encodings):
            embedded_BSE = _gather_positions(embedded, index_BS)
        finals_BX = torch.cat([encoded.final_BM for encoded in encodings], dim=-1)
        final_BM = torch.tanh(self.combination(finals_BX))
        return Encoded(values_BSM, mask_BS, final_BM, embedded_BSE)


def _gather_positions(tensors: Sequence[Tensor], index_BS: Tensor) -> Tensor:
    """Concatenate tensors [B, P, ...] of several sources along the positions, and return for each
    row the vectors at the positions `index_BS`."""
    joined_BXM = torch.cat([*tensors], dim=1)
    return joined_BXM.gather(1, index_BS.unsqueeze(-1).expand(-1, -1, joined_BXM.shape[-1]))


def _extract_source(source: SourceBatch, is_inside_BS: Tensor) -> tuple[SourceBatch, Tensor]:
    """Return one source of each row as a batch, and `starts_B`, the position in the row where the
    source begins. `is_inside_BS` is true at the positions of this source."""
    lengths_B = is_inside_BS.sum(dim=1)
    starts_B = is_inside_BS.long().argmax(dim=1)
    positions_P = torch.arange(max(1, int(lengths_B.max())), device=lengths_B.device)
    is_real_BP = positions_P < lengths_B.unsqueeze(1)
    index_BP = (starts_B.unsqueeze(1) + positions_P).clamp(max=is_inside_BS.shape[1] - 1)

    def select(ids_BS: Tensor) -> Tensor:
        ids_BP = ids_BS.gather(1, index_BP).masked_fill(~is_real_BP, PAD)
        ids_BP[:, 0].masked_fill_(lengths_B == 0, EOS)
        return ids_BP

    vectors_BPF = None
    if source.vectors_BSF is not None:
        vectors_BPF = _gather_positions([source.vectors_BSF], index_BP)
        vectors_BPF = zero_padding(vectors_BPF, is_real_BP)
    batch = SourceBatch(
        select(source.ids_BS),
        lengths_B.clamp(min=1).cpu(),
        select(source.extended_ids_BS),
        vectors_BPF,
    )
    return batch, starts_B
