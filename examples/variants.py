"""A variant of every axis, from outside the package: copy this file into the current folder, change
a class, train.

    seq2seq train -c quickstart --import variants --set model.encoder.name=variants:Bigrams

A class is named as `variants:CLASS`; the parameters of its constructor are the sizes that it asks
for and its options. CONTRIBUTING.md says what each axis provides.

Shapes: B rows (R in search), S source positions, T target positions, N target tokens, E embedding
size, H hidden size, M value size, P pre-activations, F features, V target vocabulary, J candidates
of a row.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Normalizer, ScoredAttention
from seq2seq_attn.model.cell.base import InputCell
from seq2seq_attn.model.decoder.base import (
    Decoder,
    DecoderSettings,
    Memory,
    Readout,
    State,
    StepOutput,
)
from seq2seq_attn.model.encoder.base import Encoded, Encoder, mean_value
from seq2seq_attn.model.layers import SourceEmbedding, wide
from seq2seq_attn.model.output.base import DecoderOutputs, ScoredOutput
from seq2seq_attn.search import beam
from seq2seq_attn.search.base import Hypothesis, Scorer, SearchSource, StepModel
from seq2seq_attn.search.beam import Beam, Candidates, rank_candidates, search_beams
from seq2seq_attn.search.loop import Ranked
from seq2seq_attn.text.vocab import EOS, PAD
from seq2seq_attn.train.objectives.base import Objective


class Bigrams(Encoder):
    """h_j = tanh(W [E x_{j-1} ; E x_j] + b): each word with the one before it."""

    embedding: SourceEmbedding

    def __init__(self, *, embedding: SourceEmbedding, hidden_size: int, dropout: float) -> None:
        super().__init__(hidden_size, embedding)
        self.layer = nn.Linear(2 * embedding.embedding_dim, hidden_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: SourceBatch) -> Encoded:
        embedded_BSE = self.embedding(source.inputs)
        before_BSE = functional.pad(embedded_BSE[:, :-1], (0, 0, 1, 0))
        values_BSM = self.dropout(
            torch.tanh(self.layer(torch.cat([before_BSE, embedded_BSE], dim=-1)))
        )
        return Encoded(
            values_BSM, source.mask_BS, mean_value(values_BSM, source.mask_BS), embedded_BSE
        )


class CellState(NamedTuple):
    """The state of `SSRU`."""

    hidden_BH: Tensor
    memory_BH: Tensor


class SSRU(InputCell):
    """The simpler simple recurrent unit, which has no recurrent matrix (Kim et al. 2019, section
    3.1): f = sigmoid(W_f x + b_f), c' = f c + (1 - f) (W x + b), h' = relu(c')."""

    def __init__(self, *, input_sizes: list[int], hidden_size: int) -> None:
        super().__init__(input_sizes, hidden_size, num_gates=2)

    def start(self, hidden_BH: Tensor) -> CellState:
        return CellState(hidden_BH, hidden_BH)

    def step(self, inputs_BP: Tensor, state: CellState) -> CellState:
        forget_BH, new_BH = inputs_BP.to(state.memory_BH.dtype).chunk(2, dim=-1)
        memory_BH = torch.lerp(new_BH, state.memory_BH, torch.sigmoid(forget_BH))
        return CellState(torch.relu(memory_BH), memory_BH)


class Distance(ScoredAttention):
    """score(q, h_j) = - |q - W h_j|^2."""

    def __init__(self, *, query_size: int, memory_size: int, normalizer: Normalizer) -> None:
        super().__init__(context_size=memory_size)
        self.key_projection = nn.Linear(memory_size, query_size)
        self.normalizer = normalizer

    def scores(self, query_BH: Tensor, keys_BSA: Tensor) -> Tensor:
        return -(keys_BSA - query_BH.unsqueeze(1)).square().sum(dim=-1)


def weights(scores_BS: Tensor, mask_BS: Tensor) -> Tensor:
    """A normalizer: a softmax with the base 2 in place of e."""
    scores_BS = wide(scores_BS) * math.log(2.0)
    return torch.softmax(scores_BS.masked_fill(~mask_BS, -torch.inf), dim=-1)


class Late(Decoder):
    """The recurrence does not read the context; only the prediction does."""

    def __init__(self, settings: DecoderSettings) -> None:
        super().__init__(settings)
        self.cell = settings.build_cell(
            input_sizes=[settings.embedding_size], hidden_size=settings.hidden_size
        )
        self.readout = Readout(settings, self.attention.context_size)
        self.feature_size = self.readout.size

    def step(self, embedded_BE: Tensor, state: State, memory: Memory) -> StepOutput:
        cell_state = self.cell.step(self.cell.project_inputs(embedded_BE), state.cell)
        hidden_BH = self.cell.hidden(cell_state)
        attended = self.attention.step(hidden_BH, memory.attention, state.attention)
        features_BF = self.readout(hidden_BH, attended.context_BM, embedded_BE)
        return StepOutput.of(
            features_BF, hidden_BH, embedded_BE, attended, State(cell_state, attended.state)
        )


class Scaled(ScoredOutput):
    """p(y) = softmax(beta (W f + b)) with a learned beta > 0."""

    def __init__(self, *, feature_size: int, num_ids: int) -> None:
        super().__init__(feature_size, num_ids)
        self.log_beta = nn.Parameter(torch.zeros(()))  # a scalar keeps its value

    def logits(self, step: StepOutput, memory: Memory) -> Tensor:
        return super().logits(step, memory) * self.log_beta.exp()


class Small(Objective):
    """L = sum_t |h_t|^p / H: decoder states near zero."""

    def __init__(self, *, power: float = 2.0) -> None:
        self.power = power

    def term(self, outputs: DecoderOutputs) -> Tensor:
        sizes_TB = wide(outputs.hidden_TBH).abs().pow(self.power).mean(dim=-1)
        return sizes_TB[outputs.batch.tgt_out_BT.t() != PAD].sum()


class LastMinute(beam.Options):
    """The options of `last_minute`."""

    share: float = 0.5
    """of the length limit, before which no hypothesis ends"""


def last_minute(
    model: StepModel[Any], source: SearchSource, options: LastMinute
) -> list[list[Hypothesis]]:
    """A beam search whose hypotheses end late."""

    def choose(beam: Beam, ranked: Ranked) -> Candidates:
        scores_RV = ranked.scores().clone()
        num_slots = beam.totals_BK.shape[1]
        length = beam.tokens_BKT.shape[2]
        is_early_R = (length < options.share * beam.limits_B).repeat_interleave(num_slots)
        scores_RV[is_early_R, EOS] = -torch.inf
        scores_RJ, ids_RJ = scores_RV.topk(num_slots, dim=1)
        return Candidates(ids_RJ, scores_RJ, rank_candidates(beam, scores_RJ)[:, :num_slots])

    return search_beams(model, source, options, choose, num_slots=options.beam_size)


class Long(Scorer):
    """score(EOS) = log p(EOS) - bonus; other tokens keep theirs."""

    def __init__(self, *, bonus: float = 0.5) -> None:
        self.bonus = bonus

    def rescore(self, scores_RV: Tensor, tokens_RT: Tensor, state: None) -> tuple[Tensor, None]:
        penalty_V = torch.zeros_like(scores_RV[0])
        penalty_V[EOS] = self.bonus
        return scores_RV - penalty_V, state
