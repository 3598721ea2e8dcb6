"""A softmax over the target vocabulary, mixed with copies of source tokens (See, Liu, Manning 2017,
section 2.2).

    p(w) = p_gen P_vocab(w) + (1 - p_gen) sum_{j: x_j = w} a_j
    p_gen = sigma(w_h* . c + w_s . s + w_x . x + b)

P_vocab = softmax(W_o features + b_o), as in `softmax.py`. a are the attention weights, c is the
context, s is the decoder's state, and x is the embedding of the previous token. w_h*, w_s and w_x
side by side, with b, are `gate`. Tokens are compared as `output/base.py` describes.
With the decoder `bahdanau`, a does not depend on y_{i-1}, which its query has not read; P_vocab and
p_gen do.

    L = sum_i [ -(1 - eps) log p(y_i) - eps / V sum_v log P_vocab(v) ]

The label smoothing eps acts on P_vocab alone. Label smoothing of p would penalize a confident copy,
which leaves almost no probability for other tokens.
"""

import torch
from torch import nn
from torch.nn import functional

from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.layers import wide
from seq2seq_attn.model.output.base import Copying, CopyingOutput


class Copy(CopyingOutput):
    """A softmax mixed with copies of source tokens. One linear layer computes P_vocab, a second
    linear layer computes p_gen."""

    requires = ("source_attention", "distribution", "token_values")

    def __init__(
        self,
        *,
        feature_size: int,
        hidden_size: int,
        context_size: int,
        embedding_size: int,
        num_ids: int,
    ) -> None:
        super().__init__(feature_size, num_ids)
        self.gate = nn.Linear(context_size + hidden_size + embedding_size, 1)

    def copying(self, step: StepOutput, memory: Memory) -> Copying:
        joined_BX = torch.cat([step.context_BM, step.hidden_BH, step.embedded_BE], dim=1)
        gate_B1 = wide(self.gate(joined_BX))
        return Copying(
            self.logits(step, memory),
            functional.logsigmoid(gate_B1),
            functional.logsigmoid(-gate_B1),
            step.weights_BS,
            memory.extended_ids_BS,
        )
