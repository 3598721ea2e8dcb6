"""A softmax whose logits also come from the source words themselves, bypassing encoder and decoder
(Nguyen and Chiang 2018, section 4, the lexical module).

    f^l_t = tanh(sum_s a_t(s) f_s)      h^l_t = tanh(W f^l_t) + f^l_t
    p(y_t) = softmax(W_o features_t + b_o + W_l h^l_t)

f_s is the embedding of source token s, a_t(s) its attention weight; W is `layer`, W_l
`lexical_projection`. (The paper adds a second bias, b_l, which is redundant beside b_o.) A rare
word's translation can be learned in W_l, where frequent words of similar contexts do not crowd it
out. The paper's other proposal, output embeddings of a fixed norm (section 3), is not part of this.
"""

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import Embedding, wide
from seq2seq_attn.model.output.base import ScoredOutput


class Lexical(ScoredOutput):
    """Two linear layers into the vocabulary, one from the features and one from the source
    words."""

    requires = ("source_attention", "source_embedding")

    def __init__(
        self,
        *,
        feature_size: int,
        num_ids: int,
        source_embedding: Embedding,
    ) -> None:
        super().__init__(feature_size, num_ids)
        embedding_size = source_embedding.embedding_dim
        self.layer = nn.Linear(embedding_size, embedding_size, bias=False)
        self.lexical_projection = nn.Linear(embedding_size, num_ids, bias=False)

    def prepare(self, encoded: Encoded, source: SourceBatch) -> Tensor:
        """`embedded_BSE`, 0 on padding. Raises UsageError where the encoder gives none."""
        if encoded.embedded_BSE is None:
            raise UsageError(
                "model.output.name='lexical': reads the embeddings of source tokens, but this "
                "encoder returns no `Encoded.embedded_BSE`; return it, or add -c output/softmax"
            )
        return encoded.embedded_BSE

    def hidden(self, sum_BE: Tensor) -> Tensor:
        """`h^l_BE`, from the weighted sum of the source embeddings."""
        average_BE = torch.tanh(sum_BE)
        return torch.tanh(self.layer(average_BE)) + average_BE

    def logits(self, step: StepOutput, memory: Memory) -> Tensor:
        """Those of the features, and those of the source words."""
        hidden_BE = self.hidden(torch.bmm(step.weights_BS.unsqueeze(1), memory.output).squeeze(1))
        return super().logits(step, memory) + wide(self.lexical_projection(hidden_BE))
