"""A softmax whose logits also depend directly on the embeddings of the source words, bypassing
encoder and decoder (Nguyen and Chiang 2018, section 4, the lexical module).

    f^l_t = tanh(sum_s a_t(s) f_s)      h^l_t = tanh(W f^l_t) + f^l_t
    p(y_t) = softmax(W_o features_t + b_o + W_l h^l_t)

f_s is the embedding of source token s, and a_t(s) is its attention weight. W is `layer`, and W_l is
`lexical_projection`. (The paper adds a second bias, b_l, which is redundant beside b_o.) W_l can
learn the translation of a rare word, without competition from frequent words of similar contexts.
The paper also proposes output embeddings of a fixed norm (section 3), which are left out.
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
    """A softmax over the sum of two linear layers: one layer reads the features, the other layer
    reads the source words."""

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
        """Return `embedded_BSE`, 0 on padding.

        Raises:
            UsageError: the encoder returns no embeddings.
        """
        if encoded.embedded_BSE is None:
            raise UsageError(
                "model.output.name='lexical': reads the embeddings of source tokens, but this "
                "encoder returns no `Encoded.embedded_BSE`; return it, or add -c output/softmax"
            )
        return encoded.embedded_BSE

    def hidden(self, sum_BE: Tensor) -> Tensor:
        """Return h^l, [B, E], computed from the weighted sum of the source embeddings."""
        average_BE = torch.tanh(sum_BE)
        return torch.tanh(self.layer(average_BE)) + average_BE

    def logits(self, step: StepOutput, memory: Memory) -> Tensor:
        """Return the sum of the logits of the features and the logits of the source words."""
        hidden_BE = self.hidden(torch.bmm(step.weights_BS.unsqueeze(1), memory.output).squeeze(1))
        return super().logits(step, memory) + wide(self.lexical_projection(hidden_BE))
