"""The decoder: a GRU that asks the attention with its previous state, and the readout.

    c_i = attend(s_{i-1})      s_i = GRU([E y_{i-1} ; c_i], s_{i-1})      logits_i = W_o f([s_i ; c_i ; E y_{i-1}])

(Bahdanau, Cho, Bengio 2015, appendix A.2.2.) The readout sees context and embedding beside the state, past the
recurrence; f is the identity, or tanh of a linear layer where `readout_size` is given.

Shapes: B rows, H hidden size, M memory size, E embedding size, F readout features, V target vocabulary, P = 3 * H.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.model.attention.base import Attention, Memory, State
from seq2seq_attn.model.gru import gru_cell


class DecoderState(NamedTuple):
    """What one decoder step hands to the next; batch-first."""

    hidden_BH: Tensor
    attention: State


class Decoder(nn.Module):
    """Embedding, attention GRU, readout and output layer; `unroll.py` runs it over target sentences."""

    def __init__(
        self,
        num_ids: int,
        *,
        embedding_size: int,
        hidden_size: int,
        summary_size: int,
        readout_size: int | None,
        attention: Attention,
    ) -> None:
        super().__init__()
        memory_size = attention.memory_size
        self.hidden_size = hidden_size
        self.attention = attention
        self.embedding = nn.Embedding(num_ids, embedding_size)
        self.bridge = nn.Linear(summary_size, hidden_size)
        self.embedding_projection = nn.Linear(embedding_size, 3 * hidden_size)
        # a bare parameter: nn.Linear warns of a memory of size 0 (the `initial` arm)
        self.context_weight_PM = nn.Parameter(torch.empty(3 * hidden_size, memory_size))
        self.recurrent_weight_PH = nn.Parameter(torch.empty(3 * hidden_size, hidden_size))
        self.recurrent_bias_P = nn.Parameter(torch.zeros(3 * hidden_size))
        joined_size = hidden_size + memory_size + embedding_size
        self.readout = None if readout_size is None else nn.Linear(joined_size, readout_size)
        self.output = nn.Linear(readout_size or joined_size, num_ids)

    def start(self, final_BM: Tensor) -> Tensor:
        """The first state, tanh(W [h->; h<-]): `hidden_BH` in float32 or wider."""
        hidden_BH = torch.tanh(self.bridge(final_BM))
        return hidden_BH.to(torch.promote_types(hidden_BH.dtype, torch.float32))

    def project_contexts(self, contexts: Tensor) -> Tensor:
        """What contexts, or values, [..., M] add to the gates: [..., P]."""
        return nn.functional.linear(contexts, self.context_weight_PM)

    def step(self, embedded_BE: Tensor, state: DecoderState, memory: Memory) -> tuple[Tensor, DecoderState]:
        """Attend with the previous state, then update it: `context_BM` and the next state."""
        hidden_BH = state.hidden_BH
        context_BM, attention_state = self.attention.attend(hidden_BH, memory, state.attention)
        inputs_BP = self.embedding_projection(embedded_BE) + self.project_contexts(context_BM)
        recurrent_BP = nn.functional.linear(hidden_BH, self.recurrent_weight_PH, self.recurrent_bias_P)
        return context_BM, DecoderState(gru_cell(inputs_BP, recurrent_BP, hidden_BH), attention_state)

    def features(self, states: Tensor, contexts: Tensor, embedded: Tensor) -> Tensor:
        """What the output layer sees, [..., F], of states [..., H], contexts [..., M] and embeddings [..., E]."""
        joined = torch.cat([states, contexts.to(states.dtype), embedded.to(states.dtype)], dim=-1)
        return joined if self.readout is None else torch.tanh(self.readout(joined))
