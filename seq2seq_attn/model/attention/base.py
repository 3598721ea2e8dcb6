"""The contract of attention variants, and base classes of variants that score keys.

A variant is a file in this folder with one final class. Its constructor may have the parameters
`query_size`, `memory_size` and `normalizer`; all other parameters are options. `prepare` runs once
per source batch and computes all tensors that do not depend on the query; `step` runs at each
decoder step. Neither method stores anything on `self`. Memory and state are batch-first tensors or
named tuples of them; the state is None if steps do not depend on each other.

A variant may draw random numbers, or relax a hard choice, in training mode only. In evaluation
mode, which search uses, the same query, memory and state give the same result. In both modes, the
weights are a distribution, unless the variant sets `is_distribution` to False.

The decoder chooses the query: `bahdanau` takes its state before the step, `luong` its state after
the step, and `conditional` the state between its two cells. Under autocast, projected keys have
autocast's dtype, and values have that dtype or float32, depending on the encoder; query, state and
weights stay in float32.

Shapes: B sentence pairs (or rows in search), S source positions, H query size, M value size, A
scoring size.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.encoder.base import Encoded

Normalizer = Callable[[Tensor, Tensor], Tensor]
"""a function of scores_BS and mask_BS that returns weights_BS: a distribution over real positions,
exactly 0 on padding, in float32 or wider"""


class Attended(NamedTuple):
    """The result of one attention step."""

    context_BM: Tensor
    weights_BS: Tensor
    """weights over the positions of the memory, in float32 or wider"""
    state: Any = None
    """the attention's state for the next step"""
    extra: Any = None
    """further tensors that objectives read, as a batch-first named tuple such as `Heads`"""


class Keys(NamedTuple):
    """The memory of most variants."""

    values_BSM: Tensor
    """the vectors that the weights average; 0 on padding"""
    mask_BS: Tensor
    """bool, True = real position; at least one per row"""
    keys_BSA: Tensor
    """the values projected for scoring"""


class Heads(NamedTuple):
    """The weights of each head, for objectives of your own. `Attended.weights_BS` is their mean."""

    weights_BNS: Tensor


class Draw(NamedTuple):
    """A source position that a step drew, for the objective `reinforce`."""

    log_prob_B: Tensor
    """log-probability of the position, in float32 or wider, with its graph"""
    baseline_B: Tensor
    """expected mean log-probability of the target tokens from this step on, in nats"""


class Attention(nn.Module, ABC):
    """Compute weights over source positions for a query. Variants are final: no variant inherits
    from another.

    `context_size` is the width of the context, which a variant may choose. `requires` may name
    `token_values`, a requirement on the encoder (`model/build.py`).
    """

    requires: tuple[str, ...] = ()

    is_positional: bool = True
    """whether weight j belongs to source position j, which is false in `fixed` and `slots`"""
    is_distribution: bool = True
    """whether the weights of a step sum to 1. If not, they are 0 or more: some of the mass may
    belong to no source position, as with a sentinel, or the weights are not normalized. Outputs and
    objectives that read the weights as probabilities are then refused"""
    depends_on_query: bool = True
    """whether the weights differ between steps"""
    is_one_hot: bool = False
    """whether the weights are 1 at one position and 0 elsewhere"""
    draws_positions: bool = False
    """whether the attention draws a position, takes the value there as the context, and returns a
    `Draw` as `Attended.extra`. The weights then learn from the objective `reinforce`, and from an
    output that reads the weights"""
    reads_numbers: bool = False
    """whether the attention reads numbers of the batch on the host, such as a largest index, which
    a CUDA graph cannot replay"""

    def __init__(self, context_size: int) -> None:
        super().__init__()
        self.context_size = context_size

    @abstractmethod
    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Any, Any]:
        """Return the memory of a source batch and the state before the first step. The encoder's
        values are 0 on padding."""

    @abstractmethod
    def step(self, query_BH: Tensor, memory: Any, state: Any) -> Attended:
        """Return the context, the weights and the next state."""


class ScoredAttention(Attention):
    """Score keys, normalize the scores to weights, and average the values by these weights.

    By default a key is a projection of a value, and its score is the dot product with the query. A
    variant sets `normalizer`. It also sets `key_projection`, unless it overrides `keys`.
    """

    normalizer: Normalizer
    key_projection: nn.Linear

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Any, Any]:
        """Return the keys as the memory. There is no state."""
        return self.keys(encoded), None

    def keys(self, encoded: Encoded) -> Keys:
        """Project the values to keys."""
        return Keys(encoded.values_BSM, encoded.mask_BS, self.key_projection(encoded.values_BSM))

    def scores(self, query_BH: Tensor, keys_BSA: Tensor) -> Tensor:
        """Return `scores_BS`, the dot products of the keys with the query."""
        return torch.bmm(keys_BSA, query_BH.unsqueeze(2)).squeeze(2)

    def step(self, query_BH: Tensor, memory: Any, state: Any) -> Attended:
        """Score the keys, normalize the scores and average the values."""
        return self.attend(self.scores(query_BH, memory.keys_BSA), memory)

    def attend(self, scores_BS: Tensor, memory: Keys, state: Any = None) -> Attended:
        """Normalize the scores and average the values."""
        return average(self.normalizer(scores_BS, memory.mask_BS), memory.values_BSM, state)


class AdditiveAttention(ScoredAttention):
    """The parameters of the additive score (see `additive.py`), for variants that add terms to the
    score:

        e_ij = v . tanh(W q_i + U h_j + b + ...)

    W is `query_projection`, U h_j + b are the keys, and v is `score_weight_A`.

    Args:
        attention_size: A, the size of the hidden layer; None stands for the query size.
        normalizer: None for a variant that does not normalize its scores.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        attention_size: Size | None = None,
        normalizer: Normalizer | None = None,
    ) -> None:
        super().__init__(memory_size)
        if normalizer is not None:
            self.normalizer = normalizer
        attention_size = attention_size or query_size
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(memory_size, attention_size)
        self.score_weight_A = nn.Parameter(torch.empty(attention_size))

    def scores(self, query_BH: Tensor, keys_BSA: Tensor, *terms_BSA: Tensor) -> Tensor:
        """Return `scores_BS`, computed from keys, query and further terms."""
        query_BA = self.query_projection(query_BH)
        return additive_scores(query_BA, keys_BSA, self.score_weight_A, *terms_BSA)


class ConstantAttention(Attention):
    """An attention whose context is the same at every step, whatever the query. `prepare` computes
    the context, and the memory is the result of every step."""

    depends_on_query = False

    def step(self, query_BH: Tensor, memory: Attended, state: None) -> Attended:
        """Return the memory."""
        return memory


def additive_scores(
    query_BA: Tensor, keys_BSA: Tensor, weight_A: Tensor, *terms_BSA: Tensor
) -> Tensor:
    """Return `scores_BS`, v . tanh(keys + query + terms), where v is `weight_A`."""
    hidden_BSA = torch.tanh(sum(terms_BSA, keys_BSA + query_BA.unsqueeze(1)))
    return hidden_BSA @ weight_A


def average(weights_BS: Tensor, values_BSM: Tensor, state: Any = None) -> Attended:
    """Return the result of a step with these weights, whose context is the weighted average of the
    values."""
    context_BM = torch.bmm(weights_BS.unsqueeze(1), values_BSM).squeeze(1)
    return Attended(context_BM, weights_BS, state)
