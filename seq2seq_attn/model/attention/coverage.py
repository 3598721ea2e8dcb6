"""Attention with coverage: the score sees how much attention each source position has had so far
(Tu et al. 2016, section 3).

    e_ij = v_a . tanh(W_a s_{i-1} + U_a h_j + V_a C_{i-1,j})

    neural (3.1.2)       C_ij = GRU([alpha_ij ; h_j ; s_{i-1}], C_{i-1,j})
    linguistic (3.1.1)   C_ij = C_{i-1,j} + alpha_ij / Phi_j      Phi_j = N . sigmoid(U_f h_j)

C is 0 before the first step. Neural coverage is a vector of D numbers per source position,
linguistic coverage is a single number per source position. Phi is the fertility: the number of
target tokens that a source token is expected to account for, between 0.001 N and N, where N is
`max_fertility`. Without fertility, Phi = 1. W_a is `query_projection`, U_a h_j (plus a bias) is
`keys`, V_a is `coverage_projection`, v_a is `score_weight_A`, the GRU is `update`, U_f is
`fertility_projection`.
"""

from typing import Annotated, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.config.types import Real
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import AdditiveAttention, Attended, Keys, Normalizer
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide_dtype

MaxFertility = Annotated[Real, Field(gt=0.0, le=1000.0)]
MIN_SHARE = 1e-3
"""lower bound on the fertility as a share of N, because coverage is divided by the fertility"""


class Memory(NamedTuple):
    """The keys, and the fertility of each position; None without fertility."""

    keys: Keys
    fertility_BS: Tensor | None


class Coverage(AdditiveAttention):
    """Additive attention whose score also reads the coverage.

    Args:
        attention_size: A, the size of the hidden layer; None stands for the query size.
        coverage_size: D, the size of the coverage of one position, if `kind` is neural.
        fertility: whether linguistic coverage is divided by Phi.
        max_fertility: N.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        attention_size: Size | None = None,
        kind: Literal["neural", "linguistic"] = "neural",
        coverage_size: Size = 10,
        fertility: bool = True,
        max_fertility: MaxFertility = 2.0,
    ) -> None:
        super().__init__(query_size, memory_size, attention_size, normalizer)
        is_neural = kind == "neural"
        self.coverage_size = coverage_size if is_neural else 1
        self.max_fertility = max_fertility
        self.coverage_projection = nn.Linear(
            self.coverage_size, attention_size or query_size, bias=False
        )
        self.update = nn.GRUCell(1 + memory_size + query_size, coverage_size) if is_neural else None
        self.fertility_projection = (
            nn.Linear(memory_size, 1, bias=False) if fertility and not is_neural else None
        )

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Memory, Tensor]:
        """Return the keys with the fertilities, and the coverage `coverage_BSD`, which is 0 before
        the first step."""
        values_BSM = encoded.values_BSM
        fertility_BS = None
        if self.fertility_projection is not None:
            share_BS = torch.sigmoid(self.fertility_projection(values_BSM).squeeze(2))
            fertility_BS = self.max_fertility * share_BS.clamp(min=MIN_SHARE)
        dtype = wide_dtype(values_BSM.dtype)
        coverage_BSD = values_BSM.new_zeros(*values_BSM.shape[:2], self.coverage_size, dtype=dtype)
        return Memory(self.keys(encoded), fertility_BS), coverage_BSD

    def step(self, query_BH: Tensor, memory: Memory, state: Tensor) -> Attended:
        """Normalize the scores v . tanh(keys + W q + V C), and update the coverage with the
        weights."""
        coverage_BSD = state
        keys, fertility_BS = memory
        term_BSA = self.coverage_projection(coverage_BSD)
        attended = self.attend(self.scores(query_BH, keys.keys_BSA, term_BSA), keys)
        weights_BS = attended.weights_BS
        if self.update is None:
            share_BS = weights_BS if fertility_BS is None else weights_BS / fertility_BS
            return attended._replace(state=coverage_BSD + share_BS.unsqueeze(2))
        values_BSM = keys.values_BSM
        query_BSH = query_BH.unsqueeze(1).expand(-1, values_BSM.shape[1], -1)
        tensors = (weights_BS.unsqueeze(-1), values_BSM, query_BSH)
        # Autocast would round the coverage at every step.
        with torch.autocast(values_BSM.device.type, enabled=False):
            inputs = torch.cat([tensor.to(coverage_BSD.dtype) for tensor in tensors], dim=-1)
            updated: Tensor = self.update(inputs.flatten(0, 1), coverage_BSD.flatten(0, 1))
        return attended._replace(state=updated.view(coverage_BSD.shape))
