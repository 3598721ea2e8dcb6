"""A pair of attentions, mixed by a learned gate: an attention variant from outside the package
whose options hold two configured attentions. It is a mixture of two experts (Jacobs, Jordan,
Nowlan, Hinton 1991, equation 1).

    g = sigmoid(w . [q ; c_1 ; c_2] + b)      c = g c_1 + (1 - g) c_2      a = g a_1 + (1 - g) a_2

c_1 and a_1 are context and weights of the first attention for the query q, c_2 and a_2 those of the
second.

    seq2seq train -c quickstart --import gated_pair --set model.attention.name=gated_pair \\
        --set model.attention.options.second='{name: location, options: {num_filters: 5}}'
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.attention.base import Attended, Attention
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.variants import Nested

FIRST, SECOND = Nested(name="additive"), Nested(name="scaled_dot")


class Pair(NamedTuple):
    """The memory, or the state, of both attentions."""

    first: Any
    second: Any


class GatedPair(Attention):
    """Two attentions over the same source positions, and one linear layer for the gate."""

    def __init__(self, first: Attention, second: Attention, query_size: int) -> None:
        super().__init__(first.context_size)
        self.first = first
        self.second = second
        self.is_distribution = first.is_distribution and second.is_distribution
        self.gate = nn.Linear(query_size + 2 * self.context_size, 1)

    def init_parameters(self) -> None:
        """Both attentions have the same share at first."""
        self.gate.weight.zero_()

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Pair, Pair]:
        """Both memories and both first states."""
        (first, first_state), (second, second_state) = (
            attention.prepare(encoded, source) for attention in (self.first, self.second)
        )
        return Pair(first, second), Pair(first_state, second_state)

    def step(self, query_BH: Tensor, memory: Pair, state: Pair) -> Attended:
        """Two steps, and their mixture."""
        first = self.first.step(query_BH, memory.first, state.first)
        second = self.second.step(query_BH, memory.second, state.second)
        inputs = [
            tensor.to(query_BH.dtype) for tensor in (query_BH, first.context_BM, second.context_BM)
        ]
        share_B1 = torch.sigmoid(self.gate(torch.cat(inputs, dim=1)).to(query_BH.dtype))
        context_BM = torch.lerp(inputs[2], inputs[1], share_B1)
        weights_BS = torch.lerp(
            second.weights_BS, first.weights_BS, share_B1.to(first.weights_BS.dtype)
        )
        return Attended(context_BM, weights_BS, Pair(first.state, second.state))


def build(*, query_size: int, first: Nested = FIRST, second: Nested = SECOND) -> GatedPair:
    """`first`, `second`: name and options of each attention. Raises UsageError where their results
    cannot be mixed."""
    pair = GatedPair(first(), second(), query_size)
    if not (pair.first.is_positional and pair.second.is_positional):
        raise UsageError(
            "model.attention.options: first and second must both have weights over source positions"
        )
    if pair.first.context_size != pair.second.context_size:
        raise UsageError(
            "model.attention.options: the contexts of first and second differ in width"
        )
    return pair
