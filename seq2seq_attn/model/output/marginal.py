"""The exact marginal over a latent alignment: each target token is predicted from one source
position, and the probabilities are summed over all positions (Wu, Shapiro, Cotterell 2018, section
2; Deng et al. 2018, section 2).

    p(y_t) = sum_j a_tj p(y_t | s_t, h_j)
    p(y_t | s_t, h_j) = softmax(W_o f([s_t ; h_j ; E y_{t-1}]) + b_o)

a_tj is the attention weight of source position j, h_j is the encoder's value there, and f is the
decoder's readout, which reads h_j in place of the context. Soft attention averages the values and
predicts once; this output predicts from each value and averages the probabilities. With `top_k` the
sum is over the K positions with the largest weights (Shankar, Garg, Sarawagi 2018, section 3). We
normalize the K weights again, so that p sums to 1; the authors do not.

The decoder's recurrence still reads the context, which for most attentions is the expected value;
`multi_head` projects the values first, and `hard` takes a single value. With the decoder `luong`
and `input_feeding: false` the recurrence reads no context, and the model is that of Wu et al. With
the decoder `bahdanau`, a_t does not depend on y_{t-1}, which its query has not read.

    L = sum_t [ -(1 - eps) log p(y_t) - eps / V sum_j a_tj sum_v log p(v | s_t, h_j) ]

The label smoothing eps acts on the distribution of each position. A target token costs as many
softmaxes as the source has positions, or K.

Shapes: N rows, S source positions, K positions summed over, V target vocabulary, M value size.
"""

import torch
from torch import Tensor

from seq2seq_attn.config import Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.decoder.base import Memory, ReadOut, StepOutput
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import select_rows, wide
from seq2seq_attn.model.output import base
from seq2seq_attn.model.output.base import ScoredOutput
from seq2seq_attn.text.vocab import PAD


class Marginal(ScoredOutput):
    """A softmax for each source position, averaged by the attention weights.

    Args:
        read_out: the readout function of the decoder, `Decoder.read_out`.
        top_k: K, the number of positions in the sum; None stands for all positions.

    Raises:
        UsageError: the context is not as wide as a value.
    """

    requires = ("source_attention", "distribution", "token_values", "soft_weights", "read_out")

    def __init__(
        self,
        *,
        feature_size: int,
        context_size: int,
        num_ids: int,
        memory_size: int,
        read_out: ReadOut,
        top_k: Size | None = None,
    ) -> None:
        super().__init__(feature_size, num_ids)
        if context_size != memory_size:
            raise UsageError(
                f"model.output.name='marginal': reads a source value of {memory_size} numbers in "
                f"place of the context, and this attention's context has {context_size}; choose "
                "another attention, such as additive"
            )
        self.read_out = read_out
        self.top_k = top_k

    def prepare(self, encoded: Encoded, source: SourceBatch) -> Tensor:
        """Return `values_BSM`, 0 on padding."""
        return encoded.values_BSM

    def num_softmaxes(self, num_positions: int) -> int:
        return min(self.top_k or num_positions, num_positions)

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        """Return the log-probabilities, see `Output.log_probs`. They are computed for a few rows at
        a time, because a row takes K times the memory of the vocabulary."""
        if torch.compiler.is_exporting():  # a loop would fix the number of rows
            return self._log_marginal(step, memory)
        num_softmaxes = self.num_softmaxes(step.weights_BS.shape[1])
        num_rows = max(1, base.CHUNK_CELLS // (num_softmaxes * self.num_ids))
        rows = torch.arange(step.weights_BS.shape[0], device=step.weights_BS.device)
        step = step._replace(state=None)
        memory = memory._replace(attention=None, spread_BPS=None)
        log_probs = []
        for chosen in torch.split(rows, num_rows):
            marginal_RV = self._log_marginal(select_rows(step, chosen), select_rows(memory, chosen))
            log_probs.append(marginal_RV)
        return torch.cat(log_probs)

    def _log_marginal(self, step: StepOutput, memory: Memory) -> Tensor:
        weights_NK, logits_NKV = self._by_position(step, memory)
        log_joint_NKV = _log(weights_NK).unsqueeze(2) + torch.log_softmax(logits_NKV, dim=-1)
        return log_joint_NKV.logsumexp(dim=1)

    def score(self, step: StepOutput, memory: Memory, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        weights_NK, logits_NKV = self._by_position(step, memory)
        log_probs_NKV = logits_NKV.log_softmax(dim=2)
        chosen_NK1 = log_probs_NKV.take_along_dim(targets_N.view(-1, 1, 1), dim=2)
        log_joint_NK = _log(weights_NK) + chosen_NK1.squeeze(2)
        return log_joint_NK.logsumexp(dim=1), (weights_NK * log_probs_NKV.mean(dim=2)).sum(dim=1)

    def _by_position(self, step: StepOutput, memory: Memory) -> tuple[Tensor, Tensor]:
        """Return the weights of the positions in the sum, and the logits of each position."""
        weights_NK = step.weights_BS.masked_fill(memory.source_ids_BS == PAD, 0.0)
        values_NKM = memory.output
        num_positions = self.num_softmaxes(weights_NK.shape[1])
        if num_positions < weights_NK.shape[1]:
            weights_NK, index_NK = weights_NK.topk(num_positions, dim=1)
            weights_NK = weights_NK / weights_NK.sum(dim=1, keepdim=True)
            index_NKM = index_NK.unsqueeze(2).expand(-1, -1, values_NKM.shape[2])
            values_NKM = values_NKM.gather(1, index_NKM)
        hidden_NKH = step.hidden_BH.unsqueeze(1).expand(-1, num_positions, -1)
        embedded_NKE = step.embedded_BE.unsqueeze(1).expand(-1, num_positions, -1)
        features_NKF = self.read_out(hidden_NKH, values_NKM, embedded_NKE)
        return weights_NK, wide(self.projection(features_NKF))


def _log(weights: Tensor) -> Tensor:
    """Return the logarithm of weights, with finite gradients where a weight is 0."""
    is_positive = weights > 0
    return torch.where(is_positive, weights.where(is_positive, 1.0).log(), -torch.inf)
