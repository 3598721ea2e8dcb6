"""A softmax over the target vocabulary, mixed with copies of source tokens (See, Liu, Manning 2017, section 2.2).

    p(w) = p_gen P_vocab(w) + (1 - p_gen) sum_{j: x_j = w} a_j      p_gen = sigma(w_h* . c + w_s . s + w_x . x + b)

P_vocab = softmax(W_o features + b_o), as in `softmax.py`. a are the attention weights, c the context, s the decoder's
state, x the embedding of the previous token. w_h*, w_s and w_x side by side, with b, are `gate`. Tokens are compared by
their surface ids (`data/surface.py`): w runs over the V target ids, then over the S source positions. A source token
that the target vocabulary lacks is counted at the first position of that spelling. The source's EOS is the target's.

    L = sum_i [ -(1 - eps) log p(y_i) - eps / V sum_v log P_vocab(v) ]

The label smoothing eps acts on P_vocab: on p it would charge every copy for the vocabulary that it leaves unused.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.output.base import BatchLoss, Output, Outputs, wide
from seq2seq_attn.text.vocab import PAD

CHUNK_CELLS = 8 * 1024 * 1024
"""logits made at once by the loss: 32 MB in float32"""
LEAST_WEIGHT = 1e-20
"""of a source position: sparse weights that are exactly 0 would make the loss of a copied token infinite"""


class Copy(Output):
    """One linear layer for P_vocab, whose weight may be the target embedding's, and one for p_gen."""

    copies_source = True

    def __init__(self, feature_size: int, gate_size: int, num_ids: int) -> None:
        super().__init__()
        self.projection = nn.Linear(feature_size, num_ids)
        self.gate = nn.Linear(gate_size, 1)

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        """`log_probs_BX`, X = V + S: the target ids, then the source positions; -inf for a position that stands for no
        token."""
        surface_BS = memory.surface_ids_BS
        log_generate_B1, log_copy_B1 = self._log_gate(step)
        generated_BV = log_generate_B1 + torch.log_softmax(self._logits(step), dim=-1)
        generated_BX = functional.pad(generated_BV, (0, surface_BS.shape[1]), value=-torch.inf)
        copied_BX = torch.zeros_like(generated_BX).scatter_add(1, surface_BS, step.weights_BS.clamp_min(LEAST_WEIGHT))
        return _mixed(generated_BX, log_copy_B1, copied_BX)

    def targets(self, outputs: Outputs, batch: Batch) -> Tensor:
        """See `Output.targets`: their surface ids."""
        surface_N = batch.tgt_surface_BT.t().flatten()[outputs.positions_N]
        return surface_N.masked_fill(outputs.targets_N == PAD, PAD)

    def target_log_probs(self, outputs: Outputs, batch: Batch) -> Tensor:
        """See `Output.target_log_probs`."""
        with torch.no_grad():
            return torch.cat([log_probs_N for log_probs_N, _ in self._score(outputs, batch)])

    def loss(self, outputs: Outputs, batch: Batch, *, label_smoothing: float) -> BatchLoss:
        """Cross-entropy in chunks of rows."""
        chunks = list(self._score(outputs, batch))
        log_probs_N, means_N = (torch.cat(parts) for parts in zip(*chunks, strict=True))
        is_real_N = outputs.targets_N != PAD
        smoothed_N = (1.0 - label_smoothing) * log_probs_N + label_smoothing * means_N
        loss_sum, nll_sum = (-torch.where(is_real_N, log_N, 0.0).sum() for log_N in (smoothed_N, log_probs_N.detach()))
        return BatchLoss(loss_sum, nll_sum, batch.num_tokens)

    def _score(self, outputs: Outputs, batch: Batch) -> Iterator[tuple[Tensor, Tensor]]:
        """Some rows at a time: log p of the target tokens, and the mean of log P_vocab over the vocabulary. Only the
        targets' own probabilities are mixed."""
        targets_N = self.targets(outputs, batch)
        # the attention's memory, of which each row would get a copy, is not read
        outputs = outputs._replace(memory=outputs.memory._replace(attention=None))
        num_ids = self.projection.out_features
        num_rows = max(1, CHUNK_CELLS // num_ids)
        for first in range(0, len(targets_N), num_rows):
            chosen = slice(first, first + num_rows)
            step, memory = outputs.rows(chosen)
            target_N1 = targets_N[chosen].unsqueeze(1)
            log_generate_N1, log_copy_N1 = self._log_gate(step)
            logits_NV = self._logits(step)
            log_norm_N1 = logits_NV.logsumexp(dim=1, keepdim=True)
            is_known_N1 = target_N1 < num_ids
            logits_N1 = logits_NV.gather(1, target_N1.where(is_known_N1, 0))
            generated_N1 = torch.where(is_known_N1, log_generate_N1 + logits_N1 - log_norm_N1, -torch.inf)
            is_target_NS = memory.surface_ids_BS == target_N1
            copied_N1 = (step.weights_BS.clamp_min(LEAST_WEIGHT) * is_target_NS).sum(dim=1, keepdim=True)
            log_probs_N1 = _mixed(generated_N1, log_copy_N1, copied_N1)
            yield log_probs_N1.squeeze(1), logits_NV.mean(dim=1) - log_norm_N1.squeeze(1)

    def _logits(self, step: StepOutput) -> Tensor:
        return wide(self.projection(step.features_BF))

    def _log_gate(self, step: StepOutput) -> tuple[Tensor, Tensor]:
        """log p_gen and log(1 - p_gen), [B, 1]."""
        gate_B1 = wide(self.gate(torch.cat([step.context_BM, step.hidden_BH, step.embedded_BE], dim=1)))
        return functional.logsigmoid(gate_B1), functional.logsigmoid(-gate_B1)


def _mixed(generated: Tensor, log_copy: Tensor, copied: Tensor) -> Tensor:
    """log(exp(generated) + exp(log_copy) copied), with finite gradients where `copied` is 0."""
    is_copied = copied > 0
    return torch.logaddexp(generated, torch.where(is_copied, log_copy + copied.where(is_copied, 1.0).log(), -torch.inf))


def build(*, feature_size: int, hidden_size: int, context_size: int, embedding_size: int, num_ids: int) -> Copy:
    """No options."""
    return Copy(feature_size, context_size + hidden_size + embedding_size, num_ids)
