"""The contract of outputs: token probabilities from decoder steps, and the loss of a batch.

A variant is a file in this folder with one final class, which `model/build.py` builds.

Shapes: B rows, T steps, K steps so far, N = T * B target positions of a batch, step by step, S
source positions, F features, V target vocabulary, X = V + S.
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
"""logits computed at once, 32 MB in float32; autograd keeps those of all chunks until the backward
pass"""

LEAST_WEIGHT = 1e-20
"""lower bound on the weight of a source position, below which it has no gradient: with 0, the loss
of a copied token would be infinite"""


class DecoderOutputs(NamedTuple):
    """All decoder steps of a batch: the fields of their `StepOutput`s."""

    features_NF: Tensor
    """in the order of a flattened [T, B]"""
    hidden_TBH: Tensor
    contexts_TBM: Tensor
    embedded_TBE: Tensor
    weights_TBS: Tensor
    memory: Memory
    output: Output
    """the output that predicts from these steps"""
    batch: Batch
    extra: Any = None
    """the attention's `Attended.extra`, the tensors of all steps in one: [T, B, ...]"""
    read_ids_TB: Tensor | None = None
    """int64, the token that each step has read; None: the output does not ask for the history"""
    reverse_weights_SBT: Tensor | None = None
    """attention weights of the reverse model, which reads the target and predicts the source; with
    gradient, for objectives that compare directions"""

    @property
    def targets_N(self) -> Tensor:
        """int64, the target tokens; PAD in padding, which the loss ignores."""
        return self.batch.tgt_out_BT.t().flatten()

    def log_probs_of(self, chosen_I: slice | Tensor) -> Tensor:
        """`log_probs_IV` at the target positions with indices I of N, with gradient; computed by
        each call."""
        return self.output.log_probs(*self.rows(chosen_I))

    def target_log_probs(self) -> Tensor:
        """`log_probs_N` of the target tokens, without gradient; computed by each call. Any value in
        padding."""
        return self.output.target_log_probs(self)

    def rows(self, chosen: slice | Tensor) -> tuple[StepOutput, Memory]:
        """The steps of the chosen target positions, and the memory of their sentences, row by
        row. The attention's memory, of which each row would get a copy, is left out: outputs do
        not read it. In a history, the steps after the chosen one are padding."""
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
        return step, select_rows(self.memory._replace(attention=None), rows_N)

    def _history(self, steps_N: Tensor, rows_N: Tensor) -> History | None:
        """The steps of each row up to its own; those after it are padding."""
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
    """Sums over a batch's target tokens, in nats."""

    loss_sum: Tensor
    """0-d, label-smoothed, carries the graph"""
    nll_sum: Tensor
    """0-d, not smoothed, detached"""


class Output(nn.Module, ABC):
    """Probabilities of the target vocabulary. The loss, in chunks of rows:

        L = sum_n [ -(1 - eps) log p(y_n) - eps m_n ]

    with m_n the mean log-probability of a vocabulary entry, for the label smoothing eps.

    A model that lacks one of `requires` is refused before data is prepared. `model/build.py` has
    the list of requirements and the reasons of refusals.
    """

    requires: tuple[str, ...] = ()
    copies_source: bool = False
    """whether the probabilities of source positions follow, by their extended ids
    (`text/vocab.py`)"""
    needs_history: bool = False
    """whether it reads `StepOutput.history`"""

    def __init__(self, num_ids: int) -> None:
        super().__init__()
        self.num_ids = num_ids
        self.projection: nn.Linear | None = None
        """the layer whose weights may be those of the target embedding"""

    def prepare(self, encoded: Encoded, source: SourceBatch) -> Any:
        """The part of a source batch that all steps read, `Memory.output`: any batch-first named
        tuple, or a tensor."""
        return None

    @abstractmethod
    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        """`log_probs_BV` of the next token, in float32 or wider; [B, V + S] with the source
        positions."""

    def targets(self, batch: Batch) -> Tensor:
        """int64 [N], the target tokens as columns of `log_probs`: extended ids, if it copies; PAD
        in padding."""
        targets_BT = batch.tgt_extended_BT if self.copies_source else batch.tgt_out_BT
        return targets_BT.t().flatten()

    @abstractmethod
    def score(self, step: StepOutput, memory: Memory, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        """log p of the target tokens (their columns of `log_probs`), and m; both [N], in float32 or
        wider. Rows of PAD may have any finite score."""

    def num_softmaxes(self, num_positions: int) -> int:
        """Number of softmaxes over the vocabulary per target token, for this number of source
        positions."""
        return 1

    @torch.no_grad()
    def target_log_probs(self, outputs: DecoderOutputs) -> Tensor:
        """`log_probs_N` of the target tokens, without gradient."""
        log_probs_N, _ = self._scores(outputs)
        return log_probs_N

    def loss(self, outputs: DecoderOutputs, *, label_smoothing: float) -> TokenLoss:
        """The cross-entropy of a batch's target tokens."""
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
        """The scores of all target positions, in chunks of rows."""
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
        """Take t(target | source), which IBM model 1 has estimated from the training pairs, before
        training starts; returns a line for the log. It is kept in buffers, which travel with the
        weights."""
        ...


class ScoredOutput(Output):
    """An output whose distribution is the softmax of `logits`, those of one linear layer as it is.
    Only the target tokens are scored in training."""

    projection: nn.Linear

    def __init__(self, feature_size: int, num_ids: int) -> None:
        super().__init__(num_ids)
        self.projection = nn.Linear(feature_size, num_ids)

    def logits(self, step: StepOutput, memory: Memory) -> Tensor:
        """`logits_NV`, in float32 or wider."""
        return wide(self.projection(step.features_BF))

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        return torch.log_softmax(self.logits(step, memory), dim=-1)

    def score(self, step: StepOutput, memory: Memory, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        logits_NV = self.logits(step, memory)
        log_norm_N = logits_NV.logsumexp(dim=1)
        chosen_N = logits_NV.gather(1, targets_N.unsqueeze(1)).squeeze(1)
        return chosen_N - log_norm_N, logits_NV.mean(dim=1) - log_norm_N


class Copying(NamedTuple):
    """A distribution over the target vocabulary, mixed with copies of tokens: of the source
    (`copy`, `copynet`), or of the translation so far (`history_pointer`, where "source position"
    means an earlier step).

        p(w) = p_gen P_vocab(w) + (1 - p_gen) sum_{j: x_j = w} a_j

    a are weights over source positions. Tokens are compared by their extended ids
    (`text/vocab.py`): w runs over the V target ids, then over the S source positions. A source
    token that the target vocabulary lacks is counted at the first position of that spelling. The
    source's EOS is the target's.
    """

    logits_NV: Tensor
    """logits of P_vocab"""
    log_generate_N1: Tensor
    """log p_gen"""
    log_copy_N1: Tensor
    """log of the factor on the weights: 1 - p_gen, or 1 if the weights already sum to 1 - p_gen"""
    weights_NS: Tensor
    extended_ids_NS: Tensor
    """the column of each weight"""


def mixed(generated: Tensor, log_share: Tensor, added: Tensor) -> Tensor:
    """log(exp(generated) + exp(log_share) added), with finite gradients where `added` is 0."""
    is_added = added > 0
    log_added = log_share + added.where(is_added, 1.0).log()
    return torch.logaddexp(generated, torch.where(is_added, log_added, -torch.inf))


class CopyingOutput(ScoredOutput):
    """An output whose distribution is the mixture `Copying`."""

    copies_source = True

    @abstractmethod
    def copying(self, step: StepOutput, memory: Memory) -> Copying:
        """The parts of the mixture at a step."""

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        """See `Output.log_probs`; -inf for a position that stands for no token."""
        logits_NV, log_generate_N1, log_copy_N1, weights_NS, extended_ids_NS = self.copying(
            step, memory
        )
        generated_NV = log_generate_N1 + torch.log_softmax(logits_NV, dim=-1)
        generated_NX = functional.pad(generated_NV, (0, extended_ids_NS.shape[1]), value=-torch.inf)
        weights_NS = weights_NS.clamp_min(LEAST_WEIGHT)
        copied_NX = torch.zeros_like(generated_NX).scatter_add(1, extended_ids_NS, weights_NS)
        return mixed(generated_NX, log_copy_N1, copied_NX)

    def score(self, step: StepOutput, memory: Memory, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        """See `Output.score`: only the target tokens are mixed; m is the mean of log P_vocab."""
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
