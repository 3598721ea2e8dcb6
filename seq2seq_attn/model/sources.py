"""Several sources: an encoder for each (Zoph and Knight 2016, section 3).

A line of several sources holds them one after the other, each with its EOS at the end. Each encoder
reads its own source, and its values take that source's positions in the line. So any attention
gives one distribution over the positions of all sources (Libovicky and Helcl 2017, section 3.2,
"flat"); `attention/hierarchical.py` gives one per source.

    h_final = tanh(W_c [h^1_final ; h^2_final ; ...])

W_c, the paper's "basic" combination, is `combination`; it has a bias here. A source may be of
vectors (Huang et al. 2016): its encoder embeds these instead of ids.

Shapes: B sentence pairs, S positions of all sources, P positions of one source, M value size, F
dimension of a vector.
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
    """The index of the source that each position belongs to: the number of EOS tokens before it.
    Undefined on padding."""
    is_end_BS = (ids_BS == EOS).long()
    return is_end_BS.cumsum(dim=1) - is_end_BS


class SeveralSources(Encoder):
    """An encoder per source; those of texts share the embedding. A source that a line lacks is an
    EOS alone."""

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        memory_size = encoders[0].memory_size
        super().__init__(memory_size)
        self.encoders = nn.ModuleList(encoders)
        self.combination = nn.Linear(len(encoders) * memory_size, memory_size)

    @property
    def token_embedding(self) -> Embedding | None:
        """The embedding of the tokens of all texts; None if the encoders have none."""
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
            own = source if reads_vectors else source._replace(vectors_BSF=None)
            part, starts_B = _part(own, mask_BS & (numbers_BS == number))
            encoded = encoder(part)
            columns_BS = positions_S - starts_B.unsqueeze(1) + width
            index_BS = torch.where(numbers_BS == number, columns_BS, index_BS)
            width += encoded.values_BSM.shape[1]
            encodings.append(encoded)
        index_BS = index_BS.masked_fill(~mask_BS, 0)
        values_BSM = _gathered([encoded.values_BSM for encoded in encodings], index_BS)
        embeddings = [encoded.embedded_BSE for encoded in encodings]
        embedded = [each for each in embeddings if each is not None]
        embedded_BSE = _gathered(embedded, index_BS) if len(embedded) == len(encodings) else None
        finals_BX = torch.cat([encoded.final_BM for encoded in encodings], dim=-1)
        final_BM = torch.tanh(self.combination(finals_BX))
        return Encoded(values_BSM, mask_BS, final_BM, embedded_BSE)


def _gathered(parts: Sequence[Tensor], index_BS: Tensor) -> Tensor:
    """The vectors of all sources, [B, P, ...] each, at their positions in the line."""
    joined_BXM = torch.cat([*parts], dim=1)
    return joined_BXM.gather(1, index_BS.unsqueeze(-1).expand(-1, -1, joined_BXM.shape[-1]))


def _part(source: SourceBatch, is_inside_BS: Tensor) -> tuple[SourceBatch, Tensor]:
    """One source of each line as a batch of its own, and `starts_B`, the positions in the lines
    where it begins."""
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
        vectors_BPF = _gathered([source.vectors_BSF], index_BP)
        vectors_BPF = zero_padding(vectors_BPF, is_real_BP)
    batch = SourceBatch(
        select(source.ids_BS),
        lengths_B.clamp(min=1).cpu(),
        select(source.extended_ids_BS),
        vectors_BPF,
    )
    return batch, starts_B
