"""A softmax over the target vocabulary, mixed with a pointer to the words written so far (Merity et
al. 2017, "Pointer sentinel mixture models", sections 2.2 to 2.4).

    p(w) = g P_vocab(w) + sum_{i <= t: w_i = w} a_i
    [a ; g] = softmax([q . h_1 ; ... ; q . h_t ; q . s])
    q = tanh(W h_t + b)

P_vocab = softmax(W_o features + b_o), as in `softmax.py`. h_i is the decoder's state after it has
read the target token w_i, h_t is the current state, and s is a vector, the sentinel. The weight of
the sentinel is the gate g. BOS is not a word: the first word comes from P_vocab alone. W and b are
`query_projection`; s is `sentinel_H`.

    L = sum_i [ -(1 - eps) log p(y_i) - eps / V sum_v log P_vocab(v) ]

The label smoothing eps acts on P_vocab, as in `copy.py`. The paper's window of 100 words is left
out, because sentences are shorter. Its second loss - log(g + sum_{i: w_i = y} a_i) (section 2.6) is
left out too. This output works with any decoder and any attention. With the attention
`self_history` both the context and the output read the past states.

Shapes: N rows, K steps so far, H hidden size, V target vocabulary.
"""

import torch
from torch import Tensor, nn

from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.layers import wide
from seq2seq_attn.model.output.base import Copying, CopyingOutput
from seq2seq_attn.text.vocab import UNK


class HistoryPointer(CopyingOutput):
    """A softmax mixed with a pointer to the translation so far. One linear layer computes P_vocab,
    a second linear layer computes the query; the sentinel is a parameter."""

    copies_source = False
    needs_history = True

    def __init__(self, feature_size: int, hidden_size: int, num_ids: int) -> None:
        super().__init__(feature_size, num_ids)
        self.query_projection = nn.Linear(hidden_size, hidden_size)
        self.sentinel_H = nn.Parameter(torch.empty(hidden_size))

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        return super().log_probs(step, memory)[:, : self.num_ids]

    def copying(self, step: StepOutput, memory: Memory) -> Copying:
        """Return the terms of the mixture. The weights a already sum to 1 - g, so the factor on the
        weights is 1."""
        assert step.history is not None  # `needs_history` is true
        ids_NK, hidden_NKH = step.history
        query_NH = torch.tanh(self.query_projection(step.hidden_BH))
        scores_NK = wide(torch.bmm(hidden_NKH, query_NH.unsqueeze(2)).squeeze(2))
        is_word_NK = ids_NK >= UNK
        sentinel_N1 = wide(query_NH @ self.sentinel_H).unsqueeze(1)
        scores = torch.cat([scores_NK.masked_fill(~is_word_NK, -torch.inf), sentinel_N1], dim=1)
        weights = torch.softmax(scores, dim=1)
        log_weights = torch.log_softmax(scores, dim=1)
        log_gate_N1 = log_weights[:, -1:]
        return Copying(
            self.logits(step, memory),
            log_gate_N1,
            torch.zeros_like(log_gate_N1),
            weights[:, :-1],
            ids_NK,
        )
