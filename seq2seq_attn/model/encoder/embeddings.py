"""An encoder without context: each value depends only on the word and the index of its position.

    h_j = W (E x_j + l_j) + b

The position embeddings l_j are from Gehring et al. 2016, section 3.1. Tang, Sennrich, Nivre 2019
compare such models with models whose encoder sees context. This variant is a control: it shows how
much of a translation needs context on the source side. The summary is the mean.

Shapes: B sentence pairs, S source positions, M = 2 * `hidden_size`, as wide as a bidirectional
encoder of that size.
"""

from torch import nn

from seq2seq_attn.config import Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.encoder.base import Encoded, Encoder, mean_value
from seq2seq_attn.model.layers import Positions, SourceEmbedding


class Embeddings(Encoder):
    """An encoder of one linear layer over word and position embeddings, with dropout on its output.

    Args:
        num_positions: number of position embeddings; later positions share the last embedding.

    Raises:
        UsageError: `num_layers` is not 1.
    """

    embedding: SourceEmbedding

    def __init__(
        self,
        *,
        embedding: SourceEmbedding,
        hidden_size: int,
        num_layers: int,
        dropout: float,
        num_positions: Size = 256,
    ) -> None:
        super().__init__(2 * hidden_size, embedding)
        if num_layers != 1:
            raise UsageError(
                f"model.encoder.num_layers={num_layers}: the encoder 'embeddings' has one layer, "
                "as it has no context; set model.encoder.num_layers=1 or take 'convolutional'"
            )
        self.positions = Positions(num_positions, embedding.embedding_dim)
        self.projection = nn.Linear(embedding.embedding_dim, self.memory_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: SourceBatch) -> Encoded:
        embedded_BSE = self.embedding(source.inputs)
        values_BSM = self.dropout(self.projection(self.positions(embedded_BSE)))
        return Encoded(
            values_BSM, source.mask_BS, mean_value(values_BSM, source.mask_BS), embedded_BSE
        )
