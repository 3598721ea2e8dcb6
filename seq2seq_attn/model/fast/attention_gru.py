"""The teacher-forced unroll of an attention GRU, with a hand-written backward pass.

It computes the same results as the plain loop of `seq2seq.py`, with less work inside the
recurrence:

- the context enters the gates through W_c c = sum_j a_j (W_c h_j): the values are projected once
  per sentence (`projected_BSP`), so a step takes a weighted sum instead of a product with W_c;
- one product per step projects the state to the gates and to the query;
- where a first GRU reads the previous token before the query is made (the decoder `conditional`),
  the state of the first GRU takes the place of the previous state, and the rest of the step is the
  same;
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
from torch.nn import functional

from seq2seq_attn.model.fast.gru import cell_backward, cell_forward, column_sums, compute_dtype
from seq2seq_attn.model.layers import wide

_MAX_KEPT = 1 << 24
"""number of sigmoids that are kept for the backward pass, 64 MiB. A batch with more sigmoids
computes them again, which costs 2 % of an update. In `multi30k` this happens in one batch of 57;
the largest batch would keep 186 MiB"""


class Score(NamedTuple):
    """The parameters of a score: v . tanh(keys + W q) if there is v, otherwise scale * keys . W q.
    Without W, the query itself takes the place of W q."""

    query_weight_AH: Tensor | None = None
    score_weight_A: Tensor | None = None
    scale: float = 1.0


class _Additive:
    """Compute the additive score -2 v . r with r = sigmoid(-2 (keys + q)), plus `penalty_BS`, which
    is -inf on padding and 0 elsewhere. The r of `num_kept` steps are kept for the backward pass,
    unless they have more than `_MAX_KEPT` numbers."""

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
        sigmoid_BSA = self.sigmoids_TBSA[step % len(self.sigmoids_TBSA)]
        if not self.is_kept:
            sigmoid_BSA = self._sigmoid(step, query.to(self.keys.dtype))
        torch.mul(sigmoid_BSA, grad_scores_BS.unsqueeze(2), out=self.buffer)
        self.grad_weight.addmv_(sigmoid_BSA.flatten(0, 1).t(), grad_scores_BS.view(-1), alpha=-2)
        torch.addcmul(self.buffer, self.buffer, sigmoid_BSA, value=-1.0, out=self.buffer)
        self.grad_keys += self.buffer
        return self.buffer.sum(dim=1).mul_(self.weight * 4.0)

    def finish(self) -> tuple[Tensor, Tensor | None]:
        return self.grad_keys.mul_(self.weight * 4.0), self.grad_weight


class _Dot:
    """Compute the score scale * keys . q, where q is the query's projection or the query itself.
    The q of `num_kept` steps are kept for the backward pass."""

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
        grad_scores_BST = self.grad_scores_TBS.permute(1, 2, 0)
        return torch.bmm(grad_scores_BST, self.queries_TBA.transpose(0, 1)), None


def weighted_sums(weights_TBS: Tensor, values_BSM: Tensor) -> Tensor:
    """Return the sums of the values, weighted by the weights of all steps, [T, B, M], in float32 or
    wider. Half precision would not be faster, and oneDNN would compile primitives for every pair of
    S and T: a third of the primitives of an epoch."""
    with torch.autocast(values_BSM.device.type, enabled=False):
        return torch.bmm(wide(weights_TBS).transpose(0, 1), wide(values_BSM)).transpose(0, 1)


class _Gru:
    """Compute the part of a GRU that depends on its state: the products of the states with the
    recurrent weight. The rows of `weight_QH` after the gates hold the weight that projects the
    state to the query. The products of `num_kept` steps are kept for the backward pass."""

    def __init__(
        self,
        states: Tensor,
        num_kept: int,
        gates_TBP: Tensor,
        weight_QH: Tensor,
        bias_P: Tensor,
    ) -> None:
        low = compute_dtype(weight_QH)
        num_queries = len(weight_QH) - len(bias_P)
        self.states = states
        self.states_low = states
        if states.dtype != low:
            self.states_low = torch.empty_like(states, dtype=low)
        self.gates = gates_TBP.to(states.dtype, copy=True)
        self.weight = weight_QH.to(low)
        self.bias = functional.pad(bias_P, (0, num_queries)).to(low)
        self.products_low = self.weight.new_empty(num_kept, states.shape[1], len(weight_QH))

    def project(self, step: int) -> Tensor:
        """Return the products of the weight with the state that the step starts from."""
        state_low = self.states_low[step]
        if self.states_low is not self.states:
            state_low.copy_(self.states[step])
        kept = self.products_low[step % len(self.products_low)]
        product = torch.addmm(self.bias, state_low, self.weight.t(), out=kept)
        return product.to(self.states.dtype)

    def start_backward(self) -> None:
        size = self.states.shape[-1]
        self.new_TBH = self.products_low[..., 2 * size : 3 * size].to(self.states.dtype)
        self.grad_gates = torch.empty_like(self.gates)
        self.grad_products = torch.empty_like(self.products_low)

    def backward(self, step: int, carry: Tensor) -> Tensor:
        """Return the gradient of the state, without the gradient that flows through the
        products."""
        return cell_backward(
            carry,
            self.states[step],
            self.gates[step],
            self.new_TBH[step],
            self.grad_gates[step],
            self.grad_products[step],
        )

    def finish(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of gates, weight and bias."""
        flat = self.grad_products.flatten(0, 1)
        states_low = self.states_low[: len(self.gates)].flatten(0, 1)
        grad_bias = column_sums(flat[:, : self.gates.shape[-1]])
        return self.grad_gates, flat.t() @ states_low, grad_bias


class _Unroll(torch.autograd.Function):
    """Compute states_TBH and weights_TBS; `unroll_attention_gru` describes the arguments. Autograd
    casts the gradients to the dtypes of the arguments."""

    @staticmethod
    def forward(
        ctx: Any,
        scale: float,
        needs_grad: bool,
        mask_BS: Tensor,
        hidden_BH: Tensor,
        keys_BSA: Tensor,
        projected_BSP: Tensor,
        score_weight_A: Tensor | None,
        gates_TBP: Tensor,
        weight_QH: Tensor,
        bias_P: Tensor,
        *first_gru: Tensor,
    ) -> tuple[Tensor, Tensor]:
        num_steps = len(gates_TBP)
        num_kept = num_steps if needs_grad and any(ctx.needs_input_grad) else 1
        states = hidden_BH.new_empty(num_steps + 1, *hidden_BH.shape)
        states[0] = hidden_BH
        starts = states  # the state that a step starts from
        first = None
        if first_gru:
            first = _Gru(states, num_kept, *first_gru)
            starts = torch.empty_like(states[1:])
        gru = _Gru(starts, num_kept, gates_TBP, weight_QH, bias_P)
        penalty = torch.zeros_like(mask_BS, dtype=states.dtype).masked_fill_(~mask_BS, -torch.inf)
        keys = keys_BSA.to(states.dtype)
        score: _Additive | _Dot = _Dot(keys, scale, penalty, num_kept)
        if score_weight_A is not None:
            score = _Additive(keys, score_weight_A, penalty, num_kept)
        projected = projected_BSP.to(states.dtype)
        weights_TBS = hidden_BH.new_empty(num_steps, *mask_BS.shape)
        with torch.autocast(gates_TBP.device.type, enabled=False):
            for t in range(num_steps):
                if first is not None:
                    cell_forward(first.gates[t], first.project(t), states[t], starts[t])
                products = gru.project(t)
                query = products[:, len(bias_P) :] if len(weight_QH) > len(bias_P) else starts[t]
                torch.softmax(score.forward(t, query), dim=-1, out=weights_TBS[t])
                gru.gates[t].unsqueeze(1).baddbmm_(weights_TBS[t].unsqueeze(1), projected)
                cell_forward(gru.gates[t], products, starts[t], states[t + 1])
        ctx.save_for_backward(weights_TBS, projected)
        ctx.score = score
        ctx.first = first
        ctx.gru = gru
        return states[1:], weights_TBS

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weights = grads
        weights_TBS, projected = ctx.saved_tensors
        score = ctx.score
        first = ctx.first
        gru = ctx.gru
        num_gates = gru.gates.shape[-1]
        score.start_backward()
        gru.start_backward()
        if first is not None:
            first.start_backward()
        carry = torch.zeros_like(gru.states[0])
        projected_t = projected.transpose(1, 2)
        for t in reversed(range(len(grad_states))):
            carry = gru.backward(t, carry.add_(grad_states[t]))
            grad_weights_B1S = torch.baddbmm(
                grad_weights[t].unsqueeze(1), gru.grad_gates[t].unsqueeze(1), projected_t
            )
            grad_scores_BS = torch.ops.aten._softmax_backward_data(
                grad_weights_B1S.squeeze(1), weights_TBS[t], -1, weights_TBS.dtype
            )
            grad_query = score.backward(t, gru.products_low[t, :, num_gates:], grad_scores_BS)
            if len(gru.weight) > num_gates:
                gru.grad_products[t, :, num_gates:] = grad_query
            else:
                carry += grad_query
            carry += gru.grad_products[t] @ gru.weight
            if first is not None:
                carry = first.backward(t, carry)
                carry += first.grad_products[t] @ first.weight
        grad_keys, grad_score_weight = score.finish()
        grad_projected = torch.bmm(weights_TBS.permute(1, 2, 0), gru.grad_gates.transpose(0, 1))
        first_grads = first.finish() if first is not None else ()
        grads_of_tensors = (carry, grad_keys, grad_projected, grad_score_weight)
        return (None, None, None, *grads_of_tensors, *gru.finish(), *first_grads)


def unroll_attention_gru(
    score: Score,
    hidden_BH: Tensor,
    keys_BSA: Tensor,
    projected_BSP: Tensor,
    mask_BS: Tensor,
    gru: tuple[Tensor, Tensor, Tensor],
    first_gru: tuple[Tensor, ...] = (),
) -> tuple[Tensor, Tensor]:
    """Return all states and attention weights of a decoder whose query is its previous state, or
    the state of its first GRU.

    Args:
        hidden_BH: the initial state. The recurrence runs in the dtype of this state. Under
            autocast, matrix products run in autocast's dtype.
        keys_BSA: the keys of the attention.
        projected_BSP: the values, projected to the gates.
        mask_BS: True = real position.
        gru: projected inputs of all steps, recurrent weight and bias of the GRU.
        first_gru: the same tensors of the first GRU, if there is one. Its state is the query, and
            `gru` starts from this state.

    Returns:
        states_TBH (state t is the state after step t) and weights_TBS; both carry gradients.
    """
    gates_TBP, weight_QH, bias_P = gru
    if score.query_weight_AH is not None:
        weight_QH = torch.cat([weight_QH, score.query_weight_AH])
    result: tuple[Tensor, Tensor] = _Unroll.apply(  # type: ignore[no-untyped-call]
        score.scale,
        torch.is_grad_enabled(),  # inside a Function, gradients are always off
        mask_BS,
        hidden_BH,
        keys_BSA,
        projected_BSP,
        score.score_weight_A,
        gates_TBP,
        weight_QH,
        bias_P,
        *first_gru,
    )
    return result
