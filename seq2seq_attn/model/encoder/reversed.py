"""An encoder that reads the source from its end (Sutskever, Vinyals, Le 2014, section 3.3).

    h_j = cell(E x_j, h_{j+1})

The first source words are read last, so they influence the summary h_1 most directly. The paper
reports that this helps long sentences in particular. With attention this is a handicap: a state
contains its own word and the words after it, but no word before it.

Shapes: B sentence pairs, S source positions, H = M hidden size.
"""

from typing import cast

from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.cell.base import Cell, CellBuilder
from seq2seq_attn.model.encoder.base import Encoded, Encoder, find_reversal, read_positions, reverse
from seq2seq_attn.model.layers import SourceEmbedding


class Reversed(Encoder):
    """An encoder of `num_layers` layers that all read right to left. Dropout acts between layers
    and on the states of the last layer.

    Args:
        residual: whether each layer but the first adds its input, after dropout, to its output. The
            summary is such a sum.
    """

    embedding: SourceEmbedding

    def __init__(
        self,
        *,
        embedding: SourceEmbedding,
        build_cell: CellBuilder,
        hidden_size: int,
        num_layers: int,
        dropout: float,
        residual: bool = False,
    ) -> None:
        super().__init__(hidden_size, embedding)
        sizes = [embedding.embedding_dim] + [hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(
            build_cell(input_sizes=[size], hidden_size=hidden_size) for size in sizes
        )
        self.dropout = nn.Dropout(dropout)
        self.is_residual = residual

    def forward(self, source: SourceBatch) -> Encoded:
        mask_BS = source.mask_BS
        embedded_SBE: Tensor = self.embedding(source.inputs.transpose(0, 1))
        outputs_SBI = embedded_SBE
        reversal_SB = find_reversal(mask_BS.sum(dim=1), outputs_SBI.shape[0])
        for index, cell in enumerate(self.layers):
            inputs_SBI = self.dropout(outputs_SBI) if index else outputs_SBI
            states_SBH = read_positions(cast(Cell, cell), reverse(inputs_SBI, reversal_SB))
            outputs_SBI = reverse(states_SBH, reversal_SB)
            if self.is_residual and index:
                outputs_SBI = outputs_SBI + inputs_SBI
        final_BM = outputs_SBI[0]
        return Encoded(
            self.dropout(outputs_SBI).transpose(0, 1).contiguous(),
            mask_BS,
            final_BM,
            embedded_SBE.transpose(0, 1),
        )
