"""A toy variant of every axis, as a user would write them: one file, which the package has never seen.

The test copies this file into an empty folder and names it by `--import`.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq_attn.model.attention.base import Attended, Attention, Keys, Stateless, attend
from seq2seq_attn.model.cell.base import Cell
from seq2seq_attn.model.decoder.base import Decoder, Memory, StepOutput
from seq2seq_attn.model.encoder.base import Encoded, Encoder
from seq2seq_attn.model.output.base import BatchLoss, Output
from seq2seq_attn.model.readout import Bridge
from seq2seq_attn.text.vocab import PAD
from seq2seq_attn.train.objectives.base import Objective


class Words(Encoder):
    """Each word on its own, through one layer."""

    def __init__(self, embedding, memory_size):
        super().__init__(memory_size)
        self.embedding, self.layer = embedding, nn.Linear(embedding.embedding_dim, memory_size)

    def forward(self, source):
        values_BSM = torch.tanh(self.layer(self.embedding(source.ids_BS)))
        return Encoded(values_BSM, source.mask_BS, values_BSM[:, 0])


def encoder(*, embedding, hidden_size):
    return Words(embedding, hidden_size)


class CellState(NamedTuple):
    hidden_BH: Tensor


class Elman(Cell):
    """tanh(W x + U h), with a leak."""

    def __init__(self, input_sizes, hidden_size, leak):
        super().__init__(hidden_size)
        self.inputs, self.recurrent = nn.Linear(sum(input_sizes), hidden_size), nn.Linear(hidden_size, hidden_size)
        self.leak = leak

    def project_inputs(self, *inputs):
        return self.inputs(torch.cat(inputs, dim=-1))

    def start(self, hidden_BH):
        return CellState(hidden_BH)

    def step(self, inputs_BP, state):
        new_BH = torch.tanh(inputs_BP + self.recurrent(state.hidden_BH))
        return CellState(self.leak * state.hidden_BH + (1.0 - self.leak) * new_BH)

    def hidden(self, state):
        return state.hidden_BH


def cell(*, input_sizes, hidden_size, leak: float = 0.5):
    return Elman(input_sizes, hidden_size, leak)


class Distance(Attention):
    """Minus the distance between the query and a projection of each value."""

    def __init__(self, query_size, memory_size, normalizer):
        super().__init__(memory_size)
        self.key_projection, self.normalizer = nn.Linear(memory_size, query_size), normalizer

    def prepare(self, encoded, source):
        return Keys(encoded.values_BSM, encoded.mask_BS, self.key_projection(encoded.values_BSM)), Stateless()

    def step(self, query_BH, memory, state):
        scores_BS = -(memory.keys_BSA - query_BH.unsqueeze(1)).square().sum(dim=-1)
        return Attended(*attend(scores_BS, memory.values_BSM, memory.mask_BS, self.normalizer), state)


def attention(*, query_size, memory_size, normalizer, unused: int = 3):
    return Distance(query_size, memory_size, normalizer)


def weights(scores_BS, mask_BS):
    """A normalizer: softplus in place of the exponential."""
    positive_BS = functional.softplus(scores_BS.float()).masked_fill(~mask_BS, 0.0) + 1e-9 * mask_BS
    return positive_BS / positive_BS.sum(dim=-1, keepdim=True)


class DecoderState(NamedTuple):
    cell: object
    attention: object
    context_BM: Tensor


class Late(Decoder):
    """Reads the context one step late."""

    def __init__(self, attention, cell, embedding_size, memory_size):
        super().__init__(attention, cell.hidden_size + attention.context_size)
        self.cell, self.bridge = cell, Bridge(memory_size, cell.hidden_size)

    def prepare(self, encoded, source):
        memory, attention_state = self.attention.prepare(encoded, source)
        hidden_BH = self.bridge(encoded)
        context_BM = hidden_BH.new_zeros(len(hidden_BH), self.attention.context_size)
        return Memory.of(memory, source), DecoderState(self.cell.start(hidden_BH), attention_state, context_BM)

    def step(self, embedded_BE, state, memory):
        cell_state = self.cell.step(self.cell.project_inputs(embedded_BE, state.context_BM), state.cell)
        hidden_BH = self.cell.hidden(cell_state)
        attended = self.attention.step(hidden_BH, memory.attention, state.attention)
        features_BF = torch.cat([hidden_BH, attended.context_BM], dim=-1)
        next_state = DecoderState(cell_state, attended.state, attended.context_BM)
        return StepOutput.of(features_BF, hidden_BH, embedded_BE, attended, next_state)


def decoder(*, build_cell, build_attention, embedding_size, hidden_size, memory_size, unused=None):
    attention = build_attention(query_size=hidden_size)
    cell = build_cell(input_sizes=[embedding_size, attention.context_size], hidden_size=hidden_size)
    return Late(attention, cell, embedding_size, memory_size)


class Tempered(Output):
    """A softmax with a learned temperature."""

    def __init__(self, feature_size, num_ids):
        super().__init__()
        self.layer, self.heat_bias = nn.Linear(feature_size, num_ids), nn.Parameter(torch.zeros(()))

    def log_probs(self, step, memory):
        return torch.log_softmax((self.layer(step.features_BF) * self.heat_bias.exp()).float(), dim=-1)

    def loss(self, outputs, batch, *, label_smoothing):
        log_probs_NV = self.log_probs(*outputs.rows(slice(None)))
        loss = functional.nll_loss(log_probs_NV, outputs.targets_N, ignore_index=PAD, reduction="sum")
        return BatchLoss(loss, loss.detach())


def output(*, feature_size, num_ids):
    return Tempered(feature_size, num_ids)


class Small(Objective):
    """Decoder states near zero."""

    needs_weights = False
    num_terms = 0

    def __init__(self, power):
        super().__init__()
        self.power = power

    def count(self, batch):
        return batch.num_tokens

    def term(self, outputs, batch):
        Small.num_terms += 1
        return outputs.hidden_TBH.float().abs().pow(self.power).mean(dim=-1)[batch.tgt_out_BT.t() != PAD].sum()


def objective(*, power: float = 2.0):
    return Small(power)
