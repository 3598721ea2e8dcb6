"""The teacher-forced unroll of an attention GRU, with a hand-written backward pass.

It computes the same as the plain loop of `seq2seq.py`, with less work inside the recurrence:

- the context enters the gates through W_c c = sum_j a_j (W_c h_j): the values are projected once
  per sentence (`projected_BSP`), so a step takes a weighted sum instead of a product with W_c;
- the state's projection to the gates and to the query is one product per step;
- where a first GRU reads the previous token before the query is made (the decoder `conditional`),
  its state takes the place of the previous one: the rest of the step is the same;
- contexts and their gradients, and every weight gradient, are single products over all steps.

The additive score uses tanh(x) = 1 - 2 sigmoid(-2 x): softmax ignores terms common to all
positions, so the score of position j is -2 v . sigmoid(-2 (k_j + q)). On CPUs a sigmoid costs a
seventh of a tanh.

Shapes: T steps, B sentence pairs, S source positions, H hidden size, M size of a value, A scoring
size, P = 3 * H.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seq2seq_attn.model.fast.gru import (
    cell_backward,
    cell_forward,
    column_sums,
    compute_dtype,
    low_copy,
)
from seq2seq_attn.model.layers import wide

_MAX_KEPT = 1 << 24
"""sigmoids kept for the backward pass, 64 MiB. Those of a batch with more are computed again, which
costs 2 % of an update; of `multi30k` that is one batch in 57, the largest of which would keep 186
MiB"""


class Score(NamedTuple):
    """The score v . tanh(keys + W q), or without v scale * keys . W q. Without W, q is the query
    itself."""

    query_weight_AH: Tensor | None = None
    score_weight_A: Tensor | None = None
    scale: float = 1.0


class _Additive:
    """-2 v . r with r = sigmoid(-2 (keys + q)), plus `penalty_BS` (as below), which is -inf on
    padding. The r of `num_kept` steps are kept for the backward pass, unless they are too many."""

    def __init__(
        self, keys_BSA: Tensor, score_weight_A: Tensor, penalty_BS: Tensor, num_kept: int
    ) -> None:
        self.keys = keys_BSA * -2.0
        self.weight = score_weight_A
        self.penalty = penalty_BS
        self.is_kept = num_kept * keys_BSA.numel() <= _MAX_KEPT
        self.sigmoids_TBSA = keys_BSA.new_empty(num_kept if self.is_kept else 1, *keys_BSA.shape)

    def _sigmoid(self, step: int, query: Tensor) -> Tensor:
        sigmoid_BSA = self.sigmoids_TBSA[step % len(self.sigmoids_TBSA)]
        return torch.add(self.keys, query.unsqueeze(1), alpha=-2, out=sigmoid_BSA).sigmoid_()

    def forward(self, step: int, query: Tensor) -> Tensor:
        sigmoid_BSA = self._sigmoid(step, query)
        scores = torch.addmv(
            self.penalty.view(-1), sigmoid_BSA.flatten(0, 1), self.weight, alpha=-2
        )
        return scores.view(self.penalty.shape)

    def start_backward(self) -> None:
        self.buffer = torch.empty_like(self.keys)
        self.grad_keys = torch.zeros_like(self.keys)
        self.grad_weight = torch.zeros_like(self.weight)

    def backward(self, step: int, query: Tensor, grad_scores_BS: Tensor) -> Tensor:
        # d score / d x = 4 v r (1 - r), x = k + q; `finish` applies the factor 4 v
        sigmoid_BSA = (
            self.sigmoids_TBSA[step]
            if self.is_kept
            else self._sigmoid(step, query.to(self.keys.dtype))
        )
        torch.mul(sigmoid_BSA, grad_scores_BS.unsqueeze(2), out=self.buffer)
        self.grad_weight.addmv_(sigmoid_BSA.flatten(0, 1).t(), grad_scores_BS.view(-1), alpha=-2)
        torch.addcmul(self.buffer, self.buffer, sigmoid_BSA, value=-1.0, out=self.buffer)
        self.grad_keys += self.buffer
        return self.buffer.sum(dim=1).mul_(self.weight * 4.0)

    def finish(self) -> tuple[Tensor, Tensor | None]:
        return self.grad_keys.mul_(self.weight * 4.0), self.grad_weight


class _Dot:
    """scale * keys . q, where q is the query's projection or the query itself. The q of `num_kept`
    steps are kept."""

    def __init__(self, keys_BSA: Tensor, scale: float, penalty_BS: Tensor, num_kept: int) -> None:
        self.keys = keys_BSA
        self.scale = scale
        self.penalty = penalty_BS
        self.queries_TBA = keys_BSA.new_empty(num_kept, len(keys_BSA), keys_BSA.shape[2])

    def forward(self, step: int, query: Tensor) -> Tensor:
        self.queries_TBA[step % len(self.queries_TBA)] = query
        penalty = self.penalty.unsqueeze(1)
        keys = self.keys.transpose(1, 2)
        return torch.baddbmm(penalty, query.unsqueeze(1), keys, alpha=self.scale).squeeze(1)

    def start_backward(self) -> None:
        self.grad_scores_TBS = self.keys.new_empty(len(self.queries_TBA), *self.keys.shape[:2])

    def backward(self, step: int, query: Tensor, grad_scores_BS: Tensor) -> Tensor:
        self.grad_scores_TBS[step] = grad_scores_BS * self.scale
        return torch.bmm(self.grad_scores_TBS[step].unsqueeze(1), self.keys).squeeze(1)

    def finish(self) -> tuple[Tensor, Tensor | None]:
        return torch.bmm(
            self.grad_scores_TBS.permute(1, 2, 0), self.queries_TBA.transpose(0, 1)
        ), None


def weighted_sums(weights_TBS: Tensor, values_BSM: Tensor) -> Tensor:
    """The sums of values under the weights of all steps, [T, B, M], in float32 or wider. In half
    precision they would gain nothing, and oneDNN would compile primitives for every pair of S and
    T: a third of those of an epoch."""
    with torch.autocast(values_BSM.device.type, enabled=False):
        return torch.bmm(wide(weights_TBS).transpose(0, 1), wide(values_BSM)).transpose(0, 1)


class _First:
    """The steps of the GRU that reads the previous token, each from the second GRU's state after
    the previous step."""

    def __init__(
        self,
        states: Tensor,
        num_kept: int,
        gates_TBP: Tensor,
        recurrent_weight_PH: Tensor,
        recurrent_bias_P: Tensor,
    ) -> None:
        low = compute_dtype(recurrent_weight_PH)
        self.states = states
        self.states_low = low_copy(states, low)
        self.gates = gates_TBP.to(states.dtype, copy=True)
        self.weight = recurrent_weight_PH.to(low)
        self.bias = recurrent_bias_P.to(low)
        self.recurrent_low = torch.empty(
            (num_kept, *self.gates.shape[1:]), dtype=low, device=states.device
        )

    def forward(self, step: int, out: Tensor) -> None:
        state_low = self.states_low[step]
        if self.states_low is not self.states:
            state_low.copy_(self.states[step])
        kept = self.recurrent_low[step % len(self.recurrent_low)]
        recurrent = torch.addmm(self.bias, state_low, self.weight.t(), out=kept).to(
            self.states.dtype
        )
        cell_forward(self.gates[step], recurrent, self.states[step], out)

    def start_backward(self) -> None:
        self.new_TBH = self.recurrent_low[..., 2 * self.states.shape[-1] :].to(self.states.dtype)
        self.grad_gates = torch.empty_like(self.gates)
        self.grad_recurrent = torch.empty_like(self.recurrent_low)

    def backward(self, step: int, carry: Tensor) -> Tensor:
        grad_recurrent = self.grad_recurrent[step]
        through = cell_backward(
            carry,
            self.states[step],
            self.gates[step],
            self.new_TBH[step],
            self.grad_gates[step],
            grad_recurrent,
        )
        return through.add_(grad_recurrent @ self.weight)

    def finish(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        flat = self.grad_recurrent.flatten(0, 1)
        grad_weight = flat.t() @ self.states_low[:-1].flatten(0, 1)
        return self.grad_gates, grad_weight.to(dtype), column_sums(flat).to(dtype)


class _Unroll(torch.autograd.Function):
    """states_TBH and weights_TBS; see `unroll_attention_gru` for the arguments."""

    @staticmethod
    def forward(
        ctx: Any,
        scale: float,
        gates_TBP: Tensor,
        hidden_BH: Tensor,
        keys_BSA: Tensor,
        projected_BSP: Tensor,
        mask_BS: Tensor,
        recurrent_weight_PH: Tensor,
        recurrent_bias_P: Tensor,
        query_weight_AH: Tensor | None,
        score_weight_A: Tensor | None,
        needs_grad: bool,
        *first_gru: Tensor,
    ) -> tuple[Tensor, Tensor]:
        low = compute_dtype(recurrent_weight_PH)
        wide = hidden_BH.dtype
        num_steps = len(gates_TBP)
        num_rows, size = hidden_BH.shape
        num_kept = num_steps if needs_grad and any(ctx.needs_input_grad) else 1
        keys = keys_BSA.to(wide)
        projected = projected_BSP.to(wide)
        gates = gates_TBP.to(wide, copy=True)
        weight = (
            recurrent_weight_PH
            if query_weight_AH is None
            else torch.cat([recurrent_weight_PH, query_weight_AH])
        )
        weight_low = weight.to(low)
        bias = torch.nn.functional.pad(
            recurrent_bias_P, (0, len(weight) - len(recurrent_bias_P))
        ).to(low)
        penalty = torch.zeros_like(mask_BS, dtype=wide).masked_fill_(~mask_BS, -torch.inf)
        score: _Additive | _Dot = _Dot(keys, scale, penalty, num_kept)
        if score_weight_A is not None:
            score = _Additive(keys, score_weight_A, penalty, num_kept)
        states = hidden_BH.new_empty(num_steps + 1, num_rows, size)
        states[0] = hidden_BH
        first = _First(states, num_kept, *first_gru) if first_gru else None
        read = (
            states if first is None else torch.empty_like(states[1:])
        )  # the state that a step starts from
        read_low = low_copy(read, low)
        weights_TBS = hidden_BH.new_empty(num_steps, *mask_BS.shape)
        both_low = torch.empty((num_kept, num_rows, len(weight)), dtype=low, device=states.device)
        with torch.autocast(gates_TBP.device.type, enabled=False):
            for t in range(num_steps):
                hidden = read[t]
                weights_BS = weights_TBS[t]
                if first is not None:
                    first.forward(t, out=hidden)
                if read_low is not read:
                    read_low[t] = hidden
                both = torch.addmm(
                    bias, read_low[t], weight_low.t(), out=both_low[t % num_kept]
                ).to(wide)
                scores_BS = score.forward(
                    t, hidden if query_weight_AH is None else both[:, 3 * size :]
                )
                torch.softmax(scores_BS, dim=-1, out=weights_BS)
                gates[t].unsqueeze(1).baddbmm_(weights_BS.unsqueeze(1), projected)
                cell_forward(gates[t], both[:, : 3 * size], hidden, states[t + 1])
        ctx.save_for_backward(read, read_low, gates, both_low, weights_TBS, weight_low, projected)
        ctx.score = score
        ctx.first = first
        ctx.low = low
        ctx.dtypes = (
            gates_TBP.dtype,
            keys_BSA.dtype,
            projected_BSP.dtype,
            recurrent_weight_PH.dtype,
        )
        ctx.num_queries = 0 if query_weight_AH is None else len(query_weight_AH)
        return states[1:], weights_TBS

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weights = grads
        read, read_low, gates, both_low, weights_TBS, weight_low, projected = ctx.saved_tensors
        score = ctx.score
        first = ctx.first
        low = ctx.low
        size = read.shape[-1]
        num_steps, num_rows = grad_states.shape[:2]
        gates_dtype, keys_dtype, projected_dtype, weight_dtype = ctx.dtypes
        score.start_backward()
        if first is not None:
            first.start_backward()
        new_TBH = both_low[..., 2 * size : 3 * size].to(read.dtype)
        grad_gates = torch.empty_like(gates)
        grad_both = gates.new_empty((num_steps, num_rows, len(weight_low)), dtype=low)
        carry = torch.zeros_like(read[0])
        projected_t = projected.transpose(1, 2)
        for t in reversed(range(num_steps)):
            grad_recurrent = grad_both[t, :, : 3 * size]
            carry = cell_backward(
                carry.add_(grad_states[t]),
                read[t],
                gates[t],
                new_TBH[t],
                grad_gates[t],
                grad_recurrent,
            )
            grad_weights_B1S = torch.baddbmm(
                grad_weights[t].unsqueeze(1), grad_gates[t].unsqueeze(1), projected_t
            )
            grad_scores_BS = torch.ops.aten._softmax_backward_data(
                grad_weights_B1S.squeeze(1), weights_TBS[t], -1, weights_TBS.dtype
            )
            grad_query = score.backward(t, both_low[t, :, 3 * size :], grad_scores_BS)
            if ctx.num_queries:
                grad_both[t, :, 3 * size :] = grad_query
            else:
                carry += grad_query
            carry += grad_both[t] @ weight_low
            if first is not None:
                carry = first.backward(t, carry)
        grad_keys, grad_score_weight = score.finish()
        grad_projected = torch.bmm(weights_TBS.permute(1, 2, 0), grad_gates.transpose(0, 1))
        flat = grad_both.flatten(0, 1)
        grad_weight = (flat.t() @ read_low[:num_steps].flatten(0, 1)).to(weight_dtype)
        grad_bias = column_sums(flat[:, : 3 * size]).to(weight_dtype)
        return (
            None,
            grad_gates.to(gates_dtype),
            carry,
            grad_keys.to(keys_dtype),
            grad_projected.to(projected_dtype),
            None,
            grad_weight[: 3 * size],
            grad_bias,
            grad_weight[3 * size :] if ctx.num_queries else None,
            grad_score_weight,
            None,
            *(() if first is None else first.finish(weight_dtype)),
        )


def unroll_attention_gru(
    score: Score,
    gates_TBP: Tensor,
    hidden_BH: Tensor,
    keys_BSA: Tensor,
    projected_BSP: Tensor,
    mask_BS: Tensor,
    recurrent_weight_PH: Tensor,
    recurrent_bias_P: Tensor,
    first_gru: tuple[Tensor, ...] = (),
) -> tuple[Tensor, Tensor]:
    """All states and weights of a decoder whose query is its previous state, or the state of its
    first GRU.

    Args:
        gates_TBP: the projected inputs of all steps.
        hidden_BH: the initial state. The recurrence runs in its dtype, matrix products in
            autocast's if that is on.
        keys_BSA: the variant's keys.
        projected_BSP: the values projected to the gates.
        mask_BS: True = real position.
        recurrent_weight_PH, recurrent_bias_P: the recurrent side of the GRU.
        first_gru: projected inputs of all steps, recurrent weight and bias of the GRU whose state
            is the query and the state that the step starts from, if there is one.

    Returns:
        states_TBH (state t is the one after step t) and weights_TBS; both carry gradients.
    """
    result: tuple[Tensor, Tensor] = _Unroll.apply(  # type: ignore[no-untyped-call]
        score.scale,
        gates_TBP,
        hidden_BH,
        keys_BSA,
        projected_BSP,
        mask_BS,
        recurrent_weight_PH,
        recurrent_bias_P,
        score.query_weight_AH,
        score.score_weight_A,
        torch.is_grad_enabled(),  # inside a Function it is always off
        *first_gru,
    )
    return result
