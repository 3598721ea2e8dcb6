"""Mix a distribution over the target vocabulary with copies of tokens: of the source (`copy`, `copynet`), or of the
translation so far (`history_pointer`, where "source position" means an earlier step).

    p(w) = p_gen P_vocab(w) + (1 - p_gen) sum_{j: x_j = w} a_j

a are weights over source positions. Tokens are compared by their extended ids (`text/vocab.py`): w runs over the V
target ids, then over the S source positions. A source token that the target vocabulary lacks is counted at the first
position of that spelling. The source's EOS is the target's.

Shapes: N rows, S source positions, V target vocabulary, X = V + S.
"""

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.output.base import Outputs, ScoredOutput, extended_targets

LEAST_WEIGHT = 1e-20
"""lower bound on the weight of a source position, below which it has no gradient: with 0, the loss of a copied token
would be infinite"""


class Copying(NamedTuple):
    """The parts of the mixture."""

    logits_NV: Tensor
    """logits of P_vocab"""
    log_generate_N1: Tensor
    """log p_gen"""
    log_copy_N1: Tensor
    """log of the factor on the weights: 1 - p_gen, or 1 if the weights already sum to 1 - p_gen"""
    weights_NS: Tensor
    extended_ids_NS: Tensor
    """the column of each weight"""

    def log_probs(self) -> Tensor:
        """`log_probs_NX`; -inf for a position that stands for no token."""
        generated_NV = self.log_generate_N1 + torch.log_softmax(self.logits_NV, dim=-1)
        generated_NX = functional.pad(generated_NV, (0, self.extended_ids_NS.shape[1]), value=-torch.inf)
        copied_NX = torch.zeros_like(generated_NX).scatter_add(
            1, self.extended_ids_NS, self.weights_NS.clamp_min(LEAST_WEIGHT)
        )
        return mixed(generated_NX, self.log_copy_N1, copied_NX)

    def score(self, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        """log p of the target tokens, the only ones that are mixed, and the mean of log P_vocab over the vocabulary."""
        target_N1 = targets_N.unsqueeze(1)
        log_norm_N1 = self.logits_NV.logsumexp(dim=1, keepdim=True)
        is_known_N1 = target_N1 < self.logits_NV.shape[1]
        logits_N1 = self.logits_NV.gather(1, target_N1.where(is_known_N1, 0))
        generated_N1 = torch.where(is_known_N1, self.log_generate_N1 + logits_N1 - log_norm_N1, -torch.inf)
        is_target_NS = self.extended_ids_NS == target_N1
        copied_N1 = (self.weights_NS.clamp_min(LEAST_WEIGHT) * is_target_NS).sum(dim=1, keepdim=True)
        log_probs_N1 = mixed(generated_N1, self.log_copy_N1, copied_N1)
        return log_probs_N1.squeeze(1), self.logits_NV.mean(dim=1) - log_norm_N1.squeeze(1)


def mixed(generated: Tensor, log_share: Tensor, added: Tensor) -> Tensor:
    """log(exp(generated) + exp(log_share) added), with finite gradients where `added` is 0."""
    is_added = added > 0
    return torch.logaddexp(generated, torch.where(is_added, log_share + added.where(is_added, 1.0).log(), -torch.inf))


class CopyingOutput(ScoredOutput):
    """An output whose distribution is the mixture `Copying`."""

    copies_source = True

    @abstractmethod
    def copying(self, step: StepOutput, memory: Memory) -> Copying:
        """The parts of the mixture at a step."""

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        return self.copying(step, memory).log_probs()

    def targets(self, outputs: Outputs, batch: Batch) -> Tensor:
        """See `Output.targets`: their extended ids."""
        return extended_targets(outputs, batch)

    def score(self, step: StepOutput, memory: Memory, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        return self.copying(step, memory).score(targets_N)
