"""The decoder's step as search wants it: fast, with weights that do not change.

It computes what `Decoder.step` and the readout compute (`Seq2Seq.step` is the reference), rearranged:

- what the embedding of the previous token adds to gates and readout is looked up in a table over the vocabulary;
- the state's projections to the gates and to the query are one product;
- keys and values are kept once per sentence, whatever number of beams reads them;
- with several beams, the values are projected once per sentence, W c = sum_j a_j (W h_j): K products with the context
  at each step become one with each value. With one beam it would be a product per source position instead of one per
  target token, so there the context is projected;
- the additive score uses tanh(x) = 1 - 2 sigmoid(-2 x), see `fast_unroll.py`; the factors are in the weights.

Shapes: B sentences in the batch, K rows (beams) of a sentence, R = B * K, S source positions, H hidden size, M memory
size, A scoring size, E embedding size, F readout features, V target vocabulary, P = 3 * H, X = P + what the readout
takes besides.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import AdditiveScore, DotScore, FastScore, FixedContext, Memory, State
from seq2seq_attn.model.decoder import Decoder
from seq2seq_attn.model.gru import tanh_
from seq2seq_attn.model.product import Arithmetic, Product, pack
from seq2seq_attn.model.seq2seq import SearchState, Seq2Seq

_MAX_TABLE_NUMBERS = 1 << 26
"""of the table over the vocabulary: 256 MiB; with larger vocabularies embeddings are projected as they come"""


def step_model(model: Seq2Seq, arithmetic: Arithmetic = "fp32") -> FastStep | PlainStep:
    """The fastest `search.hypothesis.StepModel` that the model's attention allows, with the weights as they are now."""
    return PlainStep(model, arithmetic) if model.decoder.attention.fast_score() is None else FastStep(model, arithmetic)


class PlainStep:
    """The model's own steps, for scores that `FastStep` does not know; only the output layer is prepared.

    With int8 the output layer alone is in int8.
    """

    def __init__(self, model: Seq2Seq, arithmetic: Arithmetic = "fp32") -> None:
        self._model, self._arithmetic = model, arithmetic
        self._output = pack(model.decoder.output.weight, model.decoder.output.bias, arithmetic)

    def start(self, source: SourceBatch, rows_per_sentence: int) -> SearchState:
        """See `StepModel.start`."""
        with _autocast(self._arithmetic, source.ids_BS.device):
            return self._model.start(source, rows_per_sentence)

    def step(self, prev_ids_R: Tensor, state: SearchState) -> tuple[Tensor, SearchState]:
        """See `StepModel.step`."""
        with _autocast(self._arithmetic, prev_ids_R.device):
            features_RF, state = self._model.step(prev_ids_R, state)
        return features_RF.to(state.decoder.hidden_BH.dtype), state

    def logits(self, features_NF: Tensor) -> Tensor:
        """See `StepModel.logits`."""
        return self._output(features_NF).float()

    def reorder(self, state: SearchState, index_R: Tensor) -> SearchState:
        """See `StepModel.reorder`."""
        return self._model.reorder(state, index_R)

    def weights(self, state: SearchState) -> Tensor | None:
        """See `StepModel.weights`."""
        return self._model.weights(state)


class Shared(NamedTuple):
    """What the rows of a sentence have in common."""

    values_BSX: Tensor
    """the values: with one beam as they are, [B, S, M], with several projected; for a context that is the same at every
    step that context, projected, as the one position"""
    keys_BSA: Tensor | None
    """times what the score multiplies them by; None for a context that is the same at every step"""
    is_padding_BS: Tensor


class FastState(NamedTuple):
    """What search carries."""

    hidden_RH: Tensor
    weights_BKS: Tensor
    """the last step's weights"""
    shared: Shared


class FastStep:
    """A `search.hypothesis.StepModel` of a model whose score is known (`Attention.fast_score`).

    It holds the weights as they are when it is made. The encoder is the model's own.
    """

    def __init__(self, model: Seq2Seq, arithmetic: Arithmetic = "fp32") -> None:
        decoder = model.decoder
        score = decoder.attention.fast_score()
        assert score is not None
        self._encode, self._arithmetic = model.encode, arithmetic
        self._attention, self._score = decoder.attention, score
        self._num_gates = 3 * decoder.hidden_size
        self._score_weight_A = -2.0 * score.score_weight_A.detach() if isinstance(score, AdditiveScore) else None
        parts = _split(decoder, score)
        self._from_state = pack(*parts.state, arithmetic)
        self._from_context = pack(*parts.context, arithmetic)
        self._from_embedding = pack(*parts.embedding, arithmetic)
        self._readout = None if parts.readout is None else pack(*parts.readout, arithmetic)
        self._output = pack(decoder.output.weight, decoder.output.bias, arithmetic)
        self._embedding_VE = decoder.embedding.weight.detach()
        self._table_VX: Tensor | None = None
        if len(self._embedding_VE) * len(parts.embedding.weight_OI) <= _MAX_TABLE_NUMBERS:
            self._table_VX = self._project(self._from_embedding, self._embedding_VE)

    def start(self, source: SourceBatch, rows_per_sentence: int) -> FastState:
        """See `StepModel.start`."""
        with _autocast(self._arithmetic, source.ids_BS.device):
            hidden_BH, memory, state = self._encode(source)
        shared, weights_BS = self._share(memory, state, hidden_BH, rows_per_sentence)
        weights_BKS = weights_BS.unsqueeze(1).expand(-1, rows_per_sentence, -1)
        return FastState(hidden_BH.repeat_interleave(rows_per_sentence, dim=0), weights_BKS, shared)

    def step(self, prev_ids_R: Tensor, state: FastState) -> tuple[Tensor, FastState]:
        """See `StepModel.step`."""
        hidden_RH = state.hidden_RH
        from_state = self._from_state(hidden_RH)
        recurrent_RP, query = from_state[:, : self._num_gates], from_state[:, self._num_gates :]
        if isinstance(self._score, DotScore) and self._score.query_weight_AH is None:
            query = hidden_RH
        context_RX, weights_BKS = self._attend(query, state)
        embedded_RX = self._embed(prev_ids_R)
        if self._readout is None:
            inputs_RP = embedded_RX[:, : self._num_gates] + context_RX[:, : self._num_gates]
            hidden_RH = _cell(inputs_RP, recurrent_RP, hidden_RH)
            rest = [part[:, self._num_gates :] for part in (context_RX, embedded_RX)]
            features_RF = torch.cat([hidden_RH, *rest], dim=1)
        else:
            embedded_RX += context_RX
            hidden_RH = _cell(embedded_RX[:, : self._num_gates], recurrent_RP, hidden_RH)
            features_RF = tanh_(self._readout(hidden_RH).add_(embedded_RX[:, self._num_gates :]))
        return features_RF, FastState(hidden_RH, weights_BKS, state.shared)

    def logits(self, features_NF: Tensor) -> Tensor:
        """See `StepModel.logits`."""
        return self._output(features_NF).float()

    def reorder(self, state: FastState, index_R: Tensor) -> FastState:
        """See `StepModel.reorder`."""
        num_sentences, num_rows, _ = state.weights_BKS.shape
        shared = state.shared
        sentences_B = index_R[::num_rows] // num_rows
        if not torch.equal(sentences_B, torch.arange(num_sentences, device=index_R.device)):
            keys_BSA = None if shared.keys_BSA is None else shared.keys_BSA.index_select(0, sentences_B)
            values_BSX = shared.values_BSX.index_select(0, sentences_B)
            shared = Shared(values_BSX, keys_BSA, shared.is_padding_BS.index_select(0, sentences_B))
        weights_RS = state.weights_BKS.flatten(0, 1).index_select(0, index_R)
        weights_BKS = weights_RS.view(len(sentences_B), num_rows, -1)
        return FastState(state.hidden_RH.index_select(0, index_R), weights_BKS, shared)

    def weights(self, state: FastState) -> Tensor | None:
        """See `StepModel.weights`."""
        return state.weights_BKS.flatten(0, 1) if self._attention.is_positional else None

    # ---- parts ----

    def _share(self, memory: Memory, state: State, hidden_BH: Tensor, rows_per_sentence: int) -> tuple[Shared, Tensor]:
        """The memory in the form that steps read, and the weights before the first step."""
        values_BSM, is_padding_BS = memory.values_BSM.to(hidden_BH.dtype), ~memory.mask_BS
        if isinstance(self._score, FixedContext):
            context_BM, state = self._attention.attend(hidden_BH, memory._replace(values_BSM=values_BSM), state)
            fixed_BX = self._project(self._from_context, context_BM)
            return Shared(fixed_BX.unsqueeze(1), None, is_padding_BS), state.weights_BS
        assert memory.keys_BSA is not None
        factor = self._score.scale if isinstance(self._score, DotScore) else -2.0
        keys_BSA = memory.keys_BSA.to(hidden_BH.dtype) * factor
        if rows_per_sentence > 1:
            flat = self._project(self._from_context, values_BSM.flatten(0, 1))
            values_BSM = flat.view(*values_BSM.shape[:2], -1)
        return Shared(values_BSM, keys_BSA, is_padding_BS), state.weights_BS

    def _attend(self, query: Tensor, state: FastState) -> tuple[Tensor, Tensor]:
        """The projected contexts, [R, X], and the weights."""
        shared, (num_sentences, num_rows, _) = state.shared, state.weights_BKS.shape
        if shared.keys_BSA is None:
            return shared.values_BSX.expand(-1, num_rows, -1).flatten(0, 1), state.weights_BKS
        query_BKA = query.view(num_sentences, num_rows, -1)
        if isinstance(self._score, DotScore):
            scores_BKS = torch.bmm(query_BKA, shared.keys_BSA.transpose(1, 2))
        else:
            assert self._score_weight_A is not None
            sigmoid_BKSA = torch.add(shared.keys_BSA.unsqueeze(1), query_BKA.unsqueeze(2)).sigmoid_()
            scores_BKS = torch.mv(sigmoid_BKSA.flatten(0, 2), self._score_weight_A).view(sigmoid_BKSA.shape[:3])
        scores_BKS.masked_fill_(shared.is_padding_BS.unsqueeze(1), -torch.inf)
        weights_BKS = torch.softmax(scores_BKS, dim=-1)
        mixed = torch.bmm(weights_BKS, shared.values_BSX).flatten(0, 1)
        return mixed if num_rows > 1 else self._project(self._from_context, mixed), weights_BKS

    def _embed(self, ids_R: Tensor) -> Tensor:
        if self._table_VX is not None:
            return self._table_VX.index_select(0, ids_R)
        return self._project(self._from_embedding, self._embedding_VE.index_select(0, ids_R))

    def _project(self, product: Product, inputs: Tensor) -> Tensor:
        """What rows of contexts, values or embeddings add to the gates and to the readout, side by side; without a
        readout layer the output layer takes them as they are."""
        projected = product(inputs)
        return projected if self._readout is not None else torch.cat([projected, inputs], dim=1)


class _Weights(NamedTuple):
    weight_OI: Tensor
    bias_O: Tensor | None


class _Parts(NamedTuple):
    """The decoder's weights by what they multiply."""

    state: _Weights
    """to the gates and the query (an additive score's times -2)"""
    context: _Weights
    """to the gates and the readout; so too the embedding"""
    embedding: _Weights
    readout: _Weights | None
    """the state's part of it"""


def _split(decoder: Decoder, score: FastScore) -> _Parts:
    state: Tensor = decoder.recurrent_weight_PH
    context: Tensor = decoder.context_weight_PM
    embedding: Tensor = decoder.embedding_projection.weight
    state_bias, embedding_bias = decoder.recurrent_bias_P, decoder.embedding_projection.bias
    if isinstance(score, AdditiveScore):
        state = torch.cat([state, -2.0 * score.query_weight_AH])
    elif isinstance(score, DotScore) and score.query_weight_AH is not None:
        state = torch.cat([state, score.query_weight_AH])
    readout = None
    if decoder.readout is not None:
        sizes = [decoder.hidden_size, context.shape[1], embedding.shape[1]]
        of_state, of_context, of_embedding = torch.split(decoder.readout.weight, sizes, dim=1)
        readout = _Weights(of_state, decoder.readout.bias)
        context, embedding = torch.cat([context, of_context]), torch.cat([embedding, of_embedding])
    return _Parts(
        _Weights(state, functional.pad(state_bias, (0, len(state) - len(state_bias)))),
        _Weights(context, None),
        _Weights(embedding, functional.pad(embedding_bias, (0, len(embedding) - len(embedding_bias)))),
        readout,
    )


def _autocast(arithmetic: Arithmetic, device: torch.device) -> torch.autocast:
    """For what is not a prepared product, the encoder above all: with int8 in bf16 too, where the CPU has it."""
    has_bf16 = arithmetic == "int8" and getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=arithmetic == "bf16" or has_bf16)


def _cell(inputs_RP: Tensor, recurrent_RP: Tensor, hidden_RH: Tensor) -> Tensor:
    """`gru_cell`, in place in both projections."""
    size = hidden_RH.shape[1]
    both = inputs_RP[:, : 2 * size].add_(recurrent_RP[:, : 2 * size]).sigmoid_()
    new_RH = tanh_(inputs_RP[:, 2 * size :].addcmul_(both[:, :size], recurrent_RP[:, 2 * size :]))
    return torch.lerp(new_RH, hidden_RH, both[:, size:])
