"""Multi-head attention (Vaswani et al. 2017, section 3.2.2; with additive scores Chen et al. 2018,
section 4.1).

    head_n = sum_j alpha_nj W_n^V h_j      c = [head_1 ; ... ; head_N]

    additive:    e_nj = v_n . tanh(W_n^Q q + W_n^K h_j + b_n)
    scaled_dot:  e_nj = (W_n^Q q) . (W_n^K h_j) / sqrt(A / N)

The rows of `query_projection`, `key_projection` and `value_projection` hold all heads side by side.
There is no output projection, because the decoder multiplies the context by weights of its own.

Shapes: N heads, A scoring size of all heads together, a = A / N, m = M / N.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.attention.base import Attended, Attention, Heads, Normalizer
from seq2seq_attn.model.encoder.base import Encoded


class Memory(NamedTuple):
    """Keys and values of every head."""

    values_BNSm: Tensor
    keys_BNSa: Tensor
    mask_BS: Tensor


class MultiHead(Attention):
    """Multi-head attention: N attentions side by side, each over its own projection of the values.

    Args:
        num_heads: N, which must divide `attention_size` and the memory size.
        attention_size: A, the scoring size of all heads together; None stands for the memory size.

    Raises:
        UsageError: `num_heads` does not divide one of the two sizes.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        num_heads: Size = 2,
        score: Literal["additive", "scaled_dot"] = "additive",
        attention_size: Size | None = None,
    ) -> None:
        super().__init__(memory_size)
        attention_size = attention_size or memory_size
        is_additive = score == "additive"
        for key, value in (("the encoder's size", memory_size), ("attention_size", attention_size)):
            if value % num_heads:
                raise UsageError(
                    f"model.attention.options.num_heads={num_heads}: expected a divisor of {key}, "
                    f"which is {value}"
                )
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(memory_size, attention_size, bias=is_additive)
        self.value_projection = nn.Linear(memory_size, memory_size, bias=False)
        shape = (num_heads, attention_size // num_heads)
        self.score_weight_Na = nn.Parameter(torch.empty(shape)) if is_additive else None
        self.num_heads = num_heads
        self.normalizer = normalizer

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Memory, None]:
        """Project the values to keys and values of each head."""
        values_BNSm = self._split(self.value_projection(encoded.values_BSM))
        keys_BNSa = self._split(self.key_projection(encoded.values_BSM))
        return Memory(values_BNSm, keys_BNSa, encoded.mask_BS), None

    def step(self, query_BH: Tensor, memory: Memory, state: None) -> Attended:
        """Return the contexts of all heads side by side, the mean of their weights, and the weights
        of each head."""
        query_BN1a = self._split(self.query_projection(query_BH).unsqueeze(1))
        if self.score_weight_Na is None:
            products_BNS1 = memory.keys_BNSa @ query_BN1a.transpose(2, 3)
            scores_BNS = products_BNS1.squeeze(3) * query_BN1a.shape[-1] ** -0.5
        else:
            hidden_BNSa = torch.tanh(memory.keys_BNSa + query_BN1a)
            scores_BNS = torch.einsum("bnsa,na->bns", hidden_BNSa, self.score_weight_Na)
        weights_BNS = self.normalizer(scores_BNS, memory.mask_BS.unsqueeze(1).expand_as(scores_BNS))
        context_BNm = torch.einsum("bns,bnsm->bnm", weights_BNS, memory.values_BNSm)
        return Attended(context_BNm.flatten(1), weights_BNS.mean(dim=1), state, Heads(weights_BNS))

    def _split(self, joined_BSX: Tensor) -> Tensor:
        return joined_BSX.view(*joined_BSX.shape[:2], self.num_heads, -1).transpose(1, 2)
