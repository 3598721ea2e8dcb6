"""The decoder's step for search, with constant weights.

It computes the same as the decoder's step and the output (`search.steps.PlainSteps` is the reference), rearranged:

- the contribution of the previous token to gates and readout is looked up in a table over the vocabulary;
- the state's projections to the gates and to the query are one product;
- keys and values are stored once per sentence, for all its beams;
- with several beams, the values are projected once per sentence, W c = sum_j a_j (W h_j), instead of K contexts at each
  step. With one beam that would be a product per source position instead of one per target token, so the context is
  projected;
- the output `lexical` is one product, of the features and its hidden layer side by side;
- the additive score uses tanh(x) = 1 - 2 sigmoid(-2 x), see `attention_gru.py`; the factors are in the weights.

Shapes: B sentences in the batch, K rows (beams) of a sentence, R = B * K, S source positions, H hidden size, M memory
size, A scoring size, E embedding size, F readout features, V target vocabulary, P = 3 * H, X = P + the width of the
readout's part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.nn import functional

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.decoder.bahdanau import Bahdanau
from seq2seq_attn.model.decoder.conditional import Conditional
from seq2seq_attn.model.fast.cells import context_cell, has_known_cells, token_cell
from seq2seq_attn.model.fast.gru import tanh_
from seq2seq_attn.model.fast.product import Product, pack
from seq2seq_attn.model.fast.scores import AdditiveScore, DotScore, FixedContext, Score, known_score
from seq2seq_attn.model.output.lexical import Lexical
from seq2seq_attn.model.output.softmax import Softmax
from seq2seq_attn.model.rows import select_rows
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.speed import offer
from seq2seq_attn.model.top_tokens import forbid_tokens_, top_tokens
from seq2seq_attn.runtime.precision import Precision, multiplies_bf16

_MAX_TABLE_NUMBERS = 1 << 26
"""numbers of projected embeddings in the table, 256 MiB; with larger vocabularies, they are projected at each step"""
_CPU_ROWS = 32
"""rows whose logits are computed and searched together on a CPU: with 8,000 tokens 1 MiB, which stays in the cache, and
which the C library reuses instead of requesting new pages at each step"""


@offer("steps")
def offer_steps(model: Seq2Seq, precision: Precision) -> Callable[[], FastStep] | None:
    """Offer fast steps for the decoders `bahdanau` and `conditional` with GRUs, a known score and the output
    `softmax` or `lexical`."""
    decoder = model.decoder
    if type(model.output) not in (Softmax, Lexical) or known_score(decoder.attention) is None:
        return None
    if not has_known_cells(decoder):
        return None
    return lambda: FastStep(model, precision)


class FastTokens:
    """`search.base.NextTokens` that computes logits for a few rows at a time."""

    def __init__(self, features_RF: Tensor, output: Product, weights_RS: Tensor | None) -> None:
        self._features_RF, self._output = features_RF, output
        self.weights_RS = weights_RS

    def top(self, num_candidates: int, *, forbidden: Sequence[int] = (), stride: int = 1) -> tuple[Tensor, Tensor]:
        features_RF = self._features_RF[::stride]
        num_rows = _CPU_ROWS if features_RF.device.type == "cpu" else len(features_RF)
        chunks = [
            top_tokens(forbid_tokens_(self._log_probs(some_RF), forbidden), num_candidates)
            for some_RF in torch.split(features_RF, num_rows)
        ]
        if len(chunks) == 1:
            return chunks[0]
        log_probs, ids = zip(*chunks, strict=True)
        return torch.cat(log_probs), torch.cat(ids)

    def log_probs(self) -> Tensor:
        """See `NextTokens.log_probs`."""
        return self._log_probs(self._features_RF)

    def _log_probs(self, features_NF: Tensor) -> Tensor:
        return torch.log_softmax(self._output(features_NF).float(), dim=-1)


class Shared(NamedTuple):
    """The memory of a sentence, shared by all its rows."""

    values_BSX: Tensor
    """the values: with one beam as they are, [B, S, M], with several beams projected; for a fixed context, the
    projected context as a single position"""
    keys_BSA: Tensor | None
    """the keys, times the score's factor; None for a fixed context"""
    padding_BS: Tensor | None
    """bool, True = padding; None for a fixed context"""
    weights_BS: Tensor | None
    """those of a fixed context; None for others"""
    embedded_BSE: Tensor | None
    """for the output `lexical`; None for others"""


class FastState(NamedTuple):
    """The search state."""

    hidden_RH: Tensor
    shared: Shared
    rows_per_sentence: int


class FastStep:
    """A `search.base.StepModel` for the models that `offer_steps` supports.

    The weights must not change while it is in use: some are copied at its creation, others are the model's own.
    """

    def __init__(self, model: Seq2Seq, precision: Precision = "fp32") -> None:
        decoder = cast(Bahdanau | Conditional, model.decoder)
        score = known_score(decoder.attention)
        assert score is not None
        self._prepare, self._precision = model.prepare, precision
        self._attention, self._score = decoder.attention, score
        self._hidden, self._num_gates = context_cell(decoder).hidden, 3 * context_cell(decoder).hidden_size
        self._score_weight_A = -2.0 * score.score_weight_A.detach() if isinstance(score, AdditiveScore) else None
        parts = _split(decoder, score)
        self._from_previous = None if parts.previous is None else pack(*parts.previous, precision)
        self._from_state = pack(*parts.state, precision)
        self._from_context = pack(*parts.context, precision)
        self._from_embedding = pack(*parts.embedding, precision)
        self._readout = None if parts.readout is None else pack(*parts.readout, precision)
        projection = cast(Softmax | Lexical, model.output).projection
        weight, self._lexical_layer = projection.weight, None
        if isinstance(model.output, Lexical):
            weight = torch.cat([weight, model.output.lexical_projection.weight], dim=1)
            self._lexical_layer = pack(model.output.layer.weight, None, precision)
        self._output = pack(weight, projection.bias, precision)
        self._embedding_VE = model.embedding.weight.detach()
        self._table_VX: Tensor | None = None
        if len(self._embedding_VE) * len(parts.embedding.weight_OI) <= _MAX_TABLE_NUMBERS:
            self._table_VX = self._project(self._from_embedding, self._embedding_VE)

    def start(self, source: SourceBatch, rows_per_sentence: int) -> FastState:
        with _autocast(self._precision, source.ids_BS.device):
            memory, state = self._prepare(source)
        hidden_BH = self._hidden(state.cell)
        shared = self._share(memory.attention, hidden_BH, rows_per_sentence)
        if self._lexical_layer is not None:
            shared = shared._replace(embedded_BSE=memory.output.to(hidden_BH.dtype))
        return FastState(hidden_BH.repeat_interleave(rows_per_sentence, dim=0), shared, rows_per_sentence)

    def step(self, prev_ids_R: Tensor, state: FastState) -> tuple[FastTokens, FastState]:
        hidden_RH, embedded_RX = state.hidden_RH, self._embed(prev_ids_R)
        if self._from_previous is not None:
            gates_RP = embedded_RX[:, : self._num_gates]
            hidden_RH = _cell(gates_RP, self._from_previous(hidden_RH), hidden_RH)
            gates_RP.zero_()  # the second cell does not read the embedding
        from_state = self._from_state(hidden_RH)
        recurrent_RP, query = from_state[:, : self._num_gates], from_state[:, self._num_gates :]
        if isinstance(self._score, DotScore) and self._score.query_weight_AH is None:
            query = hidden_RH
        context_RX, weights_BKS = self._attend(query, state)
        if self._readout is None:
            inputs_RP = embedded_RX[:, : self._num_gates] + context_RX[:, : self._num_gates]
            hidden_RH = _cell(inputs_RP, recurrent_RP, hidden_RH)
            rest = [part[:, self._num_gates :] for part in (context_RX, embedded_RX)]
            features_RF = torch.cat([hidden_RH, *rest], dim=1)
        else:
            embedded_RX += context_RX
            hidden_RH = _cell(embedded_RX[:, : self._num_gates], recurrent_RP, hidden_RH)
            features_RF = tanh_(self._readout(hidden_RH).add_(embedded_RX[:, self._num_gates :]))
        if self._lexical_layer is not None:
            features_RF = torch.cat([features_RF, self._lexical(weights_BKS, state.shared)], dim=1)
        weights_RS = weights_BKS.flatten(0, 1) if self._attention.is_positional else None
        return FastTokens(features_RF, self._output, weights_RS), state._replace(hidden_RH=hidden_RH)

    def reorder(self, state: FastState, index_R: Tensor) -> FastState:
        shared, num_rows = state.shared, state.rows_per_sentence
        sentences_B = index_R[::num_rows] // num_rows
        if not torch.equal(sentences_B, torch.arange(len(shared.values_BSX), device=index_R.device)):
            shared = select_rows(shared, sentences_B)
        return FastState(state.hidden_RH.index_select(0, index_R), shared, num_rows)

    # ---- parts ----

    def _share(self, memory: Any, hidden_BH: Tensor, rows_per_sentence: int) -> Shared:
        """Convert the attention's memory for the steps."""
        if isinstance(self._score, FixedContext):
            fixed_BX = self._project(self._from_context, memory.context_BM.to(hidden_BH.dtype))
            return Shared(fixed_BX.unsqueeze(1), None, None, memory.weights_BS, None)
        values_BSM = memory.values_BSM.to(hidden_BH.dtype)
        factor = self._score.scale if isinstance(self._score, DotScore) else -2.0
        keys_BSA = memory.keys_BSA.to(hidden_BH.dtype) * factor
        if rows_per_sentence > 1:
            flat = self._project(self._from_context, values_BSM.flatten(0, 1))
            values_BSM = flat.view(*values_BSM.shape[:2], -1)
        return Shared(values_BSM, keys_BSA, ~memory.mask_BS, None, None)

    def _attend(self, query: Tensor, state: FastState) -> tuple[Tensor, Tensor]:
        """The projected contexts, [R, X], and the weights."""
        shared, num_rows = state.shared, state.rows_per_sentence
        num_sentences = len(shared.values_BSX)
        if shared.weights_BS is not None:
            weights_BKS = shared.weights_BS.unsqueeze(1).expand(-1, num_rows, -1)
            return shared.values_BSX.expand(-1, num_rows, -1).flatten(0, 1), weights_BKS
        assert shared.keys_BSA is not None
        assert shared.padding_BS is not None
        query_BKA = query.view(num_sentences, num_rows, -1)
        if isinstance(self._score, DotScore):
            scores_BKS = torch.bmm(query_BKA, shared.keys_BSA.transpose(1, 2))
        else:
            assert self._score_weight_A is not None
            sigmoid_BKSA = torch.add(shared.keys_BSA.unsqueeze(1), query_BKA.unsqueeze(2)).sigmoid_()
            scores_BKS = torch.mv(sigmoid_BKSA.flatten(0, 2), self._score_weight_A).view(sigmoid_BKSA.shape[:3])
        scores_BKS.masked_fill_(shared.padding_BS.unsqueeze(1), -torch.inf)
        weights_BKS = torch.softmax(scores_BKS, dim=-1)
        mixed = torch.bmm(weights_BKS, shared.values_BSX).flatten(0, 1)
        return mixed if num_rows > 1 else self._project(self._from_context, mixed), weights_BKS

    def _lexical(self, weights_BKS: Tensor, shared: Shared) -> Tensor:
        """The hidden layer h^l of the output `lexical`, [R, E]."""
        assert shared.embedded_BSE is not None
        assert self._lexical_layer is not None
        average_RE = tanh_(torch.bmm(weights_BKS, shared.embedded_BSE).flatten(0, 1))
        return tanh_(self._lexical_layer(average_RE)).add_(average_RE)

    def _embed(self, ids_R: Tensor) -> Tensor:
        if self._table_VX is not None:
            return self._table_VX.index_select(0, ids_R)
        return self._project(self._from_embedding, self._embedding_VE.index_select(0, ids_R))

    def _project(self, product: Product, inputs: Tensor) -> Tensor:
        """The contributions of contexts, values or embeddings to the gates and to the readout, side by side. Without a
        readout layer, the output layer reads them as they are."""
        projected = product(inputs)
        return projected if self._readout is not None else torch.cat([projected, inputs], dim=1)


class _Weights(NamedTuple):
    weight_OI: Tensor
    bias_O: Tensor | None


class _Parts(NamedTuple):
    """The decoder's weights, grouped by their input."""

    previous: _Weights | None
    """from the previous state to the gates of a first cell"""
    state: _Weights
    """from the state that the step starts from to gates and query (times -2 for an additive score)"""
    context: _Weights
    """from the context to gates and readout"""
    embedding: _Weights
    """from the embedding to gates (those of the first cell if there is one) and readout"""
    readout: _Weights | None
    """from the state to the readout"""


def _split(decoder: Bahdanau | Conditional, score: Score) -> _Parts:
    cell, first = context_cell(decoder), token_cell(decoder)
    state: Tensor = cell.recurrent_weight_PH
    state_bias, context_bias, previous = cell.recurrent_bias_P, None, None
    if first is None:
        embedding, context = cell.input_weights
        embedding_bias = cell.input_bias_P
    else:
        [embedding], [context] = first.input_weights, cell.input_weights
        embedding_bias, context_bias = first.input_bias_P, cell.input_bias_P
        previous = _Weights(first.recurrent_weight_PH, first.recurrent_bias_P)
    if isinstance(score, AdditiveScore):
        state = torch.cat([state, -2.0 * score.query_weight_AH])
    elif isinstance(score, DotScore) and score.query_weight_AH is not None:
        state = torch.cat([state, score.query_weight_AH])
    readout = None
    if (projection := decoder.readout.projection) is not None:
        sizes = [cell.hidden_size, context.shape[1], embedding.shape[1]]
        of_state, of_context, of_embedding = torch.split(projection.weight, sizes, dim=1)
        readout = _Weights(of_state, projection.bias)
        context, embedding = torch.cat([context, of_context]), torch.cat([embedding, of_embedding])
    return _Parts(
        previous,
        _Weights(state, _padded(state_bias, len(state))),
        _Weights(context, None if context_bias is None else _padded(context_bias, len(context))),
        _Weights(embedding, _padded(embedding_bias, len(embedding))),
        readout,
    )


def _padded(bias_P: Tensor, size: int) -> Tensor:
    return functional.pad(bias_P, (0, size - len(bias_P)))


def _autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """Autocast for everything except prepared products, mainly the encoder. With int8 it is bf16 where that is fast."""
    has_bf16 = precision == "int8" and multiplies_bf16(device)
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16" or has_bf16)


def _cell(inputs_RP: Tensor, recurrent_RP: Tensor, hidden_RH: Tensor) -> Tensor:
    """The step of `cell/gru.py`, in place on both projections."""
    size = hidden_RH.shape[1]
    both = inputs_RP[:, : 2 * size].add_(recurrent_RP[:, : 2 * size]).sigmoid_()
    new_RH = tanh_(inputs_RP[:, 2 * size :].addcmul_(both[:, :size], recurrent_RP[:, 2 * size :]))
    return torch.lerp(new_RH, hidden_RH, both[:, size:])
