"""The contract of outputs, which compute token probabilities from decoder steps, and the loss of a
batch.

A variant is a file in this folder with one final class. `model/build.py` builds it.

Shapes: B rows, T steps, K steps so far, N = T * B target positions of a batch in the order of a
flattened [T, B], I chosen target positions, S source positions, F features, V target vocabulary, X
= V + S.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq_attn.data.batch import Batch, SourceBatch
from seq2seq_attn.model import speed
from seq2seq_attn.model.decoder.base import History, Memory, StepOutput
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import select_rows, wide
from seq2seq_attn.text.ibm1 import TranslationTable
from seq2seq_attn.text.vocab import PAD

CHUNK_CELLS = 8 * 1024 * 1024
"""number of logits that are computed at once, 32 MB in float32. Autograd keeps the logits of all
chunks until the backward pass"""

LEAST_WEIGHT = 1e-20
"""lower bound on the weight of a source position, below which the weight has no gradient. With a
bound of 0, the loss of a copied token could be infinite"""


class DecoderOutputs(NamedTuple):
    """All decoder steps of a batch, with the fields of `StepOutput` stacked."""

    features_NF: Tensor
    """features in the order of a flattened [T, B]"""
    hidden_TBH: Tensor
    contexts_TBM: Tensor
    embedded_TBE: Tensor
    weights_TBS: Tensor
    memory: Memory
    output: Output
    """the output that predicts from these steps"""
    batch: Batch
    extra: Any = None
    """`Attended.extra` of the attention, with the tensors of all steps stacked: [T, B, ...]"""
    read_ids_TB: Tensor | None = None
    """int64, the token that each step has read; None if the output does not read the history"""
    reverse_weights_SBT: Tensor | None = None
    """attention weights of the reverse model, which reads the target and predicts the source. They
    carry a gradient, for objectives that compare both directions"""

    @property
    def targets_N(self) -> Tensor:
        """The target tokens, int64. Padding has PAD, which the loss ignores."""
        return self.batch.tgt_out_BT.t().flatten()

    def log_probs_of(self, chosen_I: slice | Tensor) -> Tensor:
        """Compute `log_probs_IV` at I chosen target positions, with gradient. `chosen_I` holds
        indices into the N target positions. Nothing is cached."""
        return self.output.log_probs(*self.rows(chosen_I))

    def target_log_probs(self) -> Tensor:
        """Compute `log_probs_N` of the target tokens, without gradient. Values on padding are
        arbitrary. Nothing is cached."""
        return self.output.target_log_probs(self)

    def rows(self, chosen: slice | Tensor) -> tuple[StepOutput, Memory]:
        """Return the steps at the chosen target positions, and the memory of their sentences, row
        by row. The memory of the attention is left out, because outputs do not read it and each row
        would get a copy. In a history, the steps after the chosen step are padding."""
        num_steps, num_pairs = self.hidden_TBH.shape[:2]
        positions_N = torch.arange(num_steps * num_pairs, device=self.hidden_TBH.device)[chosen]
        rows_N = positions_N % num_pairs
        step = StepOutput(
            self.features_NF[chosen],
            self.hidden_TBH.flatten(0, 1)[chosen],
            self.contexts_TBM.flatten(0, 1)[chosen],
            self.embedded_TBE.flatten(0, 1)[chosen],
            self.weights_TBS.flatten(0, 1)[chosen],
            state=None,
            history=self._history(positions_N // num_pairs, rows_N),
        )
        memory = self.memory._replace(attention=None, spread_BPS=None)
        return step, select_rows(memory, rows_N)

    def _history(self, steps_N: Tensor, rows_N: Tensor) -> History | None:
        """Return the history of each row up to the step `steps_N` of the row; later steps are
        padding. Return None if the output does not read the history."""
        if self.read_ids_TB is None:
            return None
        steps_K = torch.arange(len(self.read_ids_TB), device=steps_N.device)
        is_later_NK = steps_K > steps_N.unsqueeze(1)
        ids_NK = self.read_ids_TB.t()[rows_N]
        hidden_NKH = self.hidden_TBH.transpose(0, 1)[rows_N]
        return History(
            ids_NK.masked_fill(is_later_NK, PAD),
            hidden_NKH.masked_fill(is_later_NK.unsqueeze(2), 0.0),
        )


class TokenLoss(NamedTuple):
    """Sums over the target tokens of a batch, in nats."""

    loss_sum: Tensor
    """0-d, with label smoothing and with gradient"""
    nll_sum: Tensor
    """0-d, without label smoothing, detached"""


class Output(nn.Module, ABC):
    """Compute probabilities over the target vocabulary, and the loss of a batch, in chunks of rows:

        L = sum_n [ -(1 - eps) log p(y_n) - eps m_n ]

    with m_n the mean log-probability of a vocabulary entry, for the label smoothing eps.

    `requires` names requirements on the other parts of the model. If a requirement is not met, an
    error is raised before data is prepared. `model/build.py` lists the requirements and their error
    messages.
    """

    requires: tuple[str, ...] = ()
    copies_source: bool = False
    """whether probabilities of source positions follow the probabilities of the target vocabulary.
    The positions are numbered by extended ids (`text/vocab.py`)"""
    needs_history: bool = False
    """whether the output reads `StepOutput.history`"""

    def __init__(self, num_ids: int) -> None:
        super().__init__()
        self.num_ids = num_ids
        self.projection: nn.Linear | None = None
        """the layer whose weights may be tied to the target embedding"""

    def prepare(self, encoded: Encoded, source: SourceBatch) -> Any:
        """Return the tensors of a source batch that all steps read as `Memory.output`: a
        batch-first named tuple, or a tensor."""
        return None

    @abstractmethod
    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        """Return `log_probs_BV` of the next token, in float32 or wider. If `copies_source` is true,
        the log-probabilities of the source positions follow: [B, V + S]."""

    def targets(self, batch: Batch) -> Tensor:
        """Return the target tokens as columns of `log_probs`, int64 [N]. The columns are extended
        ids if `copies_source` is true. Padding has PAD."""
        targets_BT = batch.tgt_extended_BT if self.copies_source else batch.tgt_out_BT
        return targets_BT.t().flatten()

    @abstractmethod
    def score(self, step: StepOutput, memory: Memory, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        """Return log p of the target tokens, and the mean log-probability m of the loss. Both are
        [N], in float32 or wider. `targets_N` holds columns of `log_probs`. Rows with PAD may have
        any finite score."""

    def num_softmaxes(self, num_positions: int) -> int:
        """Return the number of softmaxes over the vocabulary per target token, for a given number
        of source positions."""
        return 1

    @torch.no_grad()
    def target_log_probs(self, outputs: DecoderOutputs) -> Tensor:
        """Return `log_probs_N` of the target tokens, without gradient."""
        log_probs_N, _ = self._scores(outputs)
        return log_probs_N

    def loss(self, outputs: DecoderOutputs, *, label_smoothing: float) -> TokenLoss:
        """Return the cross-entropy of the target tokens of a batch."""
        fast = speed.find("cross_entropy", self)
        if fast is not None:
            return TokenLoss(*fast(outputs, label_smoothing))
        log_probs_N, means_N = self._scores(outputs)
        is_real_N = outputs.targets_N != PAD
        smoothed_N = (1.0 - label_smoothing) * log_probs_N + label_smoothing * means_N
        loss_sum = -torch.where(is_real_N, smoothed_N, 0.0).sum()
        nll_sum = -torch.where(is_real_N, log_probs_N.detach(), 0.0).sum()
        return TokenLoss(loss_sum, nll_sum)

    def _scores(self, outputs: DecoderOutputs) -> tuple[Tensor, Tensor]:
        """Return the scores of all target positions, which `score` computes in chunks of rows."""
        targets_N = self.targets(outputs.batch)
        num_softmaxes = self.num_softmaxes(outputs.weights_TBS.shape[2])
        num_rows = max(1, CHUNK_CELLS // (self.num_ids * num_softmaxes))
        log_probs = []
        means = []
        for first in range(0, len(targets_N), num_rows):
            chosen = slice(first, first + num_rows)
            log_probs_N, means_N = self.score(*outputs.rows(chosen), targets_N[chosen])
            log_probs.append(log_probs_N)
            means.append(means_N)
        return torch.cat(log_probs), torch.cat(means)


@runtime_checkable
class TakesTable(Protocol):
    """An output that reads a translation table."""

    def set_table(self, table: TranslationTable) -> str:
        """Store the table t(target | source), which IBM model 1 has estimated from the training
        pairs, before training starts. Return a line for the log. Buffers hold the table, so that it
        is saved with the weights."""
        ...


class ScoredOutput(Output):
    """An output whose distribution is the softmax of `logits`. By default, one linear layer
    computes the logits. In training, only the target tokens are scored."""

    projection: nn.Linear

    def __init__(self, feature_size: int, num_ids: int) -> None:
        super().__init__(num_ids)
        self.projection = nn.Linear(feature_size, num_ids)

    def logits(self, step: StepOutput, memory: Memory) -> Tensor:
        """Return `logits_NV`, in float32 or wider."""
        return wide(self.projection(step.features_BF))

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        return torch.log_softmax(self.logits(step, memory), dim=-1)

    def score(self, step: StepOutput, memory: Memory, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        logits_NV = self.logits(step, memory)
        log_norm_N = logits_NV.logsumexp(dim=1)
        chosen_N = logits_NV.gather(1, targets_N.unsqueeze(1)).squeeze(1)
        return chosen_N - log_norm_N, logits_NV.mean(dim=1) - log_norm_N


class Copying(NamedTuple):
    """A distribution over the target vocabulary, mixed with copies of tokens. `copy` and `copynet`
    copy tokens of the source. `history_pointer` copies tokens of the translation so far; there,
    "source position" means an earlier step.

        p(w) = p_gen P_vocab(w) + (1 - p_gen) sum_{j: x_j = w} a_j

    a are weights over source positions. Tokens are compared by their extended ids
    (`text/vocab.py`): w runs over the V target ids, then over the S source positions. A source
    token that the target vocabulary lacks is counted at the first position with the same spelling.
    EOS of the source counts as EOS of the target.
    """

    logits_NV: Tensor
    """logits of P_vocab"""
    log_generate_N1: Tensor
    """log p_gen"""
    log_copy_N1: Tensor
    """log of the factor on the weights: 1 - p_gen, or 1 if the weights already sum to 1 - p_gen"""
    weights_NS: Tensor
    extended_ids_NS: Tensor
    """the column of `log_probs` that each weight belongs to"""


def mixed(generated: Tensor, log_share: Tensor, added: Tensor) -> Tensor:
    """Return log(exp(generated) + exp(log_share) added), with finite gradients where `added` is
    0."""
    is_added = added > 0
    log_added = log_share + added.where(is_added, 1.0).log()
    return torch.logaddexp(generated, torch.where(is_added, log_added, -torch.inf))


class CopyingOutput(ScoredOutput):
    """An output whose distribution is the mixture `Copying`."""

    copies_source = True

    @abstractmethod
    def copying(self, step: StepOutput, memory: Memory) -> Copying:
        """Return the terms of the mixture at a step."""

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        """Return the log-probabilities of the mixture, see `Output.log_probs`. The log-probability
        is -inf for a position that stands for no token."""
        logits_NV, log_generate_N1, log_copy_N1, weights_NS, extended_ids_NS = self.copying(
            step, memory
        )
        generated_NV = log_generate_N1 + torch.log_softmax(logits_NV, dim=-1)
        generated_NX = functional.pad(generated_NV, (0, extended_ids_NS.shape[1]), value=-torch.inf)
        weights_NS = weights_NS.clamp_min(LEAST_WEIGHT)
        copied_NX = torch.zeros_like(generated_NX).scatter_add(1, extended_ids_NS, weights_NS)
        return mixed(generated_NX, log_copy_N1, copied_NX)

    def score(self, step: StepOutput, memory: Memory, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of the target tokens, see `Output.score`. Only the target tokens are
        mixed; m is the mean of log P_vocab."""
        logits_NV, log_generate_N1, log_copy_N1, weights_NS, extended_ids_NS = self.copying(
            step, memory
        )
        target_N1 = targets_N.unsqueeze(1)
        log_norm_N1 = logits_NV.logsumexp(dim=1, keepdim=True)
        is_known_N1 = target_N1 < logits_NV.shape[1]
        logits_N1 = logits_NV.gather(1, target_N1.where(is_known_N1, 0))
        log_known_N1 = log_generate_N1 + logits_N1 - log_norm_N1
        generated_N1 = torch.where(is_known_N1, log_known_N1, -torch.inf)
        is_target_NS = extended_ids_NS == target_N1
        copied_N1 = (weights_NS.clamp_min(LEAST_WEIGHT) * is_target_NS).sum(dim=1, keepdim=True)
        log_probs_N1 = mixed(generated_N1, log_copy_N1, copied_N1)
        return log_probs_N1.squeeze(1), logits_NV.mean(dim=1) - log_norm_N1.squeeze(1)
