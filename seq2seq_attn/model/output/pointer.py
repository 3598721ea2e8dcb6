"""A pointer network: the attention weights are the output distribution (Vinyals, Fortunato, Jaitly
2015, "Pointer networks", section 2.3).

    p(w) = sum_{j: x_j = w} a_j
    L = sum_i [ -(1 - eps) log p(y_i) - eps / |x| sum_j log a_j ]

a (the paper's softmax over u_j) are the attention weights of the step. x_j is the target token that
stands for source position j (`text/vocab.py`). By default it is the source token, so that the
weights of equal tokens add up (Kadlec et al. 2016). With `data.tokenizer.target: positions` it is
the index of the position, so that the answer is a position. EOS of the source ends the target.
There are no parameters besides the attention's parameters. The label smoothing eps is over the |x|
source positions. As in the paper, the query must have read y_{i-1}. The query of the decoder
`bahdanau` has not read it, so p(y_i) would not depend on y_{i-1}.
"""

from torch import Tensor
from torch.nn import functional

from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.layers import wide
from seq2seq_attn.model.output.base import LEAST_WEIGHT, Output
from seq2seq_attn.text.vocab import PAD


class Pointer(Output):
    """A pointer network: the attention weights are the probabilities, and there are no
    parameters."""

    requires = (
        "source_attention",
        "distribution",
        "token_values",
        "query_dependence",
        "query_with_token",
    )
    copies_source = True

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        """Return `log_probs_BX`, X = V + S: first the target ids, then the source positions. The
        log-probability is -inf for a position that stands for no token."""
        weights_BS = _positive(step, memory)
        extended_BS = memory.extended_ids_BS
        least_BV = weights_BS.new_full((weights_BS.shape[0], self.num_ids), LEAST_WEIGHT)
        least_BX = functional.pad(least_BV, (0, extended_BS.shape[1]))
        return least_BX.scatter_add(1, extended_BS, weights_BS).log()

    def score(self, step: StepOutput, memory: Memory, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of the target tokens, see `Output.score`. m is the mean over the source
        positions of each row."""
        weights_NS = _positive(step, memory)
        extended_NS = memory.extended_ids_BS
        least_N = LEAST_WEIGHT * (targets_N < self.num_ids)
        is_target_NS = extended_NS == targets_N.unsqueeze(1)
        log_probs_N = (least_N + (weights_NS * is_target_NS).sum(dim=1)).log()
        is_source_NS = extended_NS != PAD
        log_sums_N = weights_NS.where(is_source_NS, 1.0).log().sum(dim=1)
        return log_probs_N, log_sums_N / is_source_NS.sum(dim=1)


def _positive(step: StepOutput, memory: Memory) -> Tensor:
    """Return the attention weights. Weights of real positions are at least `LEAST_WEIGHT`, which is
    also the probability of a token that is not in the source. Weights of padding are 0."""
    weights_BS = wide(step.weights_BS).clamp_min(LEAST_WEIGHT)
    return weights_BS.masked_fill(memory.extended_ids_BS == PAD, 0.0)
