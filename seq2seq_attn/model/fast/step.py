"""The decoder's step for search, with constant weights.

It computes the same results as the decoder's step and the output (`search.steps.PlainSteps` is the
reference), in a different order:

- the contribution of the previous token to gates and readout is looked up in a table over the
  vocabulary;
- one product projects the state to the gates and to the query;
- keys and values are stored once per sentence, for all its beams;
- with several beams, the values are projected once per sentence, W c = sum_j a_j (W h_j), instead
  of K contexts at each step. With one beam this would take a product per source position instead of
  a product per target token, so the context is projected instead;
- the output `lexical` is one product, which reads the features and the lexical hidden layer side by
  side;
- the additive score uses tanh(x) = 1 - 2 sigmoid(-2 x), see `attention_gru.py`; the prepared
  weights include the factors.

Shapes: B sentences in the batch, K rows (beams) of a sentence, R = B * K, S source positions, H
hidden size, M memory size, A scoring size, E embedding size, F readout features, V target
vocabulary, P = 3 * H, X = P + the width of the contribution to the readout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, Keys
from seq2seq_attn.model.cell.gru import GRU
from seq2seq_attn.model.decoder.bahdanau import Bahdanau
from seq2seq_attn.model.decoder.conditional import Conditional
from seq2seq_attn.model.fast.attention_gru import Score
from seq2seq_attn.model.fast.gru import cell_forward, tanh_
from seq2seq_attn.model.fast.product import Product, pack
from seq2seq_attn.model.fast.unroll import known_parts
from seq2seq_attn.model.layers import forbid_tokens_, select_rows, top_tokens
from seq2seq_attn.model.output.lexical import Lexical
from seq2seq_attn.model.output.softmax import Softmax
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.speed import offer
from seq2seq_attn.runtime.device import Precision, multiplies_bf16

_MAX_TABLE_NUMBERS = 1 << 26
"""largest size of the table of projected embeddings in numbers, 256 MiB; with larger vocabularies,
embeddings are projected at each step"""
_CPU_LOGITS = 1 << 19
"""number of logits that are computed and searched together on a CPU: 2 MiB, which stay in the
cache, and which the C library reuses instead of requesting new pages at each step. With a quarter
of this number, products of 32 rows took more time: beam search with `multi30k` had 0.92 of the
speed in fp32 and 0.95 in bf16 (Zen 4)"""
_LEAST_CPU_ROWS = 32
"""smallest number of rows that are computed together on a CPU, however large the vocabulary"""
_ALL_ROWS = 1 << 30
"""number of rows that are computed together on a GPU, which means all rows"""


@offer("steps")
def offer_steps(model: Seq2Seq, precision: Precision) -> Callable[[], FastStep] | None:
    """Offer fast steps for the decoders `bahdanau` and `conditional` with GRUs, a known score and
    the output `softmax` or `lexical`."""
    if type(model.output) not in (Softmax, Lexical) or known_parts(model.decoder) is None:
        return None
    if not model.encoder.keeps_positions:
        return None
    return lambda: FastStep(model, precision)


class FastTokens(NamedTuple):
    """An implementation of `search.base.NextTokens` that computes and searches the logits of
    `num_rows` rows at a time."""

    features_RF: Tensor
    output: Product
    weights_RS: Tensor | None
    num_rows: int

    def top(
        self, num_candidates: int, *, forbidden: Sequence[int] = (), stride: int = 1
    ) -> tuple[Tensor, Tensor]:
        chunks = []
        for rows_RF in torch.split(self.features_RF[::stride], self.num_rows):
            log_probs_RV = forbid_tokens_(self._log_probs(rows_RF), forbidden)
            chunks.append(top_tokens(log_probs_RV, num_candidates))
        if len(chunks) == 1:
            return chunks[0]
        log_probs_RJ, ids_RJ = zip(*chunks, strict=True)
        return torch.cat(log_probs_RJ), torch.cat(ids_RJ)

    def log_probs(self) -> Tensor:
        return self._log_probs(self.features_RF)

    def _log_probs(self, features_NF: Tensor) -> Tensor:
        return torch.log_softmax(self.output(features_NF).float(), dim=-1)


class Scored(NamedTuple):
    """The memory of an attention with scores, shared by all rows of a sentence."""

    keys_BSA: Tensor
    """the keys, times the score's factor"""
    padding_BS: Tensor
    """bool, True = padding"""
    values_BSX: Tensor
    """the values' contributions to gates and readout if a sentence has several rows; the values as
    they are if it has one row"""


class FastState(NamedTuple):
    """The search state."""

    hidden_RH: Tensor
    attention: Attended | Scored
    """`Attended` if the context is constant: the context's contribution to gates and readout, and
    the weights"""
    embedded_BSE: Tensor | None
    """embeddings of the source tokens, for the output `lexical`"""
    rows_per_sentence: int


class Products(NamedTuple):
    """Products with the model's weights, grouped by their input."""

    previous: Product | None
    """from the previous state to the gates of a first cell, if there is one"""
    state: Product
    """from the state that the step starts from to gates and query (times -2 for an additive
    score)"""
    context: Product
    """from the context to gates and readout"""
    embedding: Product
    """from the embedding to the readout and to the gates of the first cell, or of the only cell"""
    readout: Product | None
    """from the state to the readout; None if the output layer reads state, context and embedding as
    they are"""
    output: Product
    """from the features to logits"""
    lexical: Product | None
    """the hidden layer of the output `lexical`"""


class FastStep:
    """A `search.base.StepModel` for the models that `offer_steps` supports.

    The weights must not change while it is in use: some are copied at its creation, others are the
    model's own.
    """

    def __init__(self, model: Seq2Seq, precision: Precision = "fp32") -> None:
        decoder = cast(Bahdanau | Conditional, model.decoder)
        parts = known_parts(decoder)
        assert parts is not None
        _, cell, score = parts
        self._model = model
        self._precision = precision
        self._score = score
        self._num_gates = 3 * cell.hidden_size
        self._score_weight_A: Tensor | None = None
        if score.score_weight_A is not None:
            self._score_weight_A = -2.0 * score.score_weight_A.detach()
        output = cast(Softmax | Lexical, model.output)
        self._products = _pack_all(*parts, decoder.readout.projection, output, precision)
        self._embedding_VE = model.embedding.weight.detach()
        num_ids = len(self._embedding_VE)
        self._num_rows = _ALL_ROWS
        if self._embedding_VE.device.type == "cpu":
            self._num_rows = max(_LEAST_CPU_ROWS, _CPU_LOGITS // num_ids)
        self._table_VX: Tensor | None = None
        if num_ids * (self._num_gates + decoder.feature_size) <= _MAX_TABLE_NUMBERS:
            self._table_VX = self._project(self._products.embedding, self._embedding_VE)

    def start(self, source: SourceBatch, rows_per_sentence: int) -> FastState:
        # Autocast applies to all computations except the prepared products, mainly to the encoder.
        # With int8, the encoder runs in bf16 where the device multiplies bf16 fast.
        device = source.ids_BS.device
        precision = self._precision
        is_bf16 = precision == "bf16" or (precision == "int8" and multiplies_bf16(device))
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_bf16):
            memory, state = self._model.prepare(source)
        hidden_BH = state.cell.hidden_BH
        embedded_BSE = None
        if self._products.lexical is not None:
            embedded_BSE = memory.output.to(hidden_BH.dtype)
        return FastState(
            hidden_BH.repeat_interleave(rows_per_sentence, dim=0),
            self._share(memory.attention, hidden_BH.dtype, rows_per_sentence),
            embedded_BSE,
            rows_per_sentence,
        )

    def step(self, prev_ids_R: Tensor, state: FastState) -> tuple[FastTokens, FastState]:
        products = self._products
        num_gates = self._num_gates
        hidden_RH = state.hidden_RH
        if self._table_VX is not None:
            embedded_RX = self._table_VX.index_select(0, prev_ids_R)
        else:
            embedded_RE = self._embedding_VE.index_select(0, prev_ids_R)
            embedded_RX = self._project(products.embedding, embedded_RE)
        gates_RP = embedded_RX[:, :num_gates]
        if products.previous is not None:
            hidden_RH = cell_forward(gates_RP, products.previous(hidden_RH), hidden_RH)
            gates_RP.zero_()  # the second cell does not read the embedding
        from_state = products.state(hidden_RH)
        has_projection = self._score.query_weight_AH is not None
        query = from_state[:, num_gates:] if has_projection else hidden_RH
        context_RX, weights_BKS = self._attend(query, state)
        gates_RP += context_RX[:, :num_gates]
        hidden_RH = cell_forward(gates_RP, from_state, hidden_RH)
        read = [context_RX[:, num_gates:], embedded_RX[:, num_gates:]]
        if products.readout is None:
            features_RF = torch.cat([hidden_RH, *read], dim=1)
        else:
            features_RF = tanh_(products.readout(hidden_RH).add_(read[0] + read[1]))
        if products.lexical is not None and state.embedded_BSE is not None:
            average_RE = tanh_(torch.bmm(weights_BKS, state.embedded_BSE).flatten(0, 1))
            lexical_RE = tanh_(products.lexical(average_RE)).add_(average_RE)
            features_RF = torch.cat([features_RF, lexical_RE], dim=1)
        weights_RS = weights_BKS.flatten(0, 1) if self._model.has_attention else None
        tokens = FastTokens(features_RF, products.output, weights_RS, self._num_rows)
        return tokens, state._replace(hidden_RH=hidden_RH)

    def reorder(self, state: FastState, index_R: Tensor) -> FastState:
        hidden_RH, attention, embedded_BSE, num_rows = state
        num_sentences = len(hidden_RH) // num_rows
        if num_sentences > 1 or len(index_R) != num_rows:  # a single sentence keeps its place
            sentences_B = index_R[::num_rows] // num_rows
            if not torch.equal(sentences_B, torch.arange(num_sentences, device=index_R.device)):
                attention = select_rows(attention, sentences_B)
                embedded_BSE = select_rows(embedded_BSE, sentences_B)
        return FastState(hidden_RH.index_select(0, index_R), attention, embedded_BSE, num_rows)

    def _share(
        self, memory: Keys | Attended, dtype: torch.dtype, rows_per_sentence: int
    ) -> Attended | Scored:
        """Convert the attention's memory for the steps."""
        context = self._products.context
        if isinstance(memory, Attended):
            return Attended(self._project(context, memory.context_BM.to(dtype)), memory.weights_BS)
        values_BSX = memory.values_BSM.to(dtype)
        if rows_per_sentence > 1:
            projected = self._project(context, values_BSX.flatten(0, 1))
            values_BSX = projected.view(*values_BSX.shape[:2], -1)
        factor = self._score.scale if self._score_weight_A is None else -2.0
        return Scored(memory.keys_BSA.to(dtype) * factor, ~memory.mask_BS, values_BSX)

    def _attend(self, query: Tensor, state: FastState) -> tuple[Tensor, Tensor]:
        """Return the projected contexts, [R, X], and `weights_BKS`."""
        attention = state.attention
        num_rows = state.rows_per_sentence
        if isinstance(attention, Attended):
            context_BKX = attention.context_BM.unsqueeze(1).expand(-1, num_rows, -1)
            weights_BKS = attention.weights_BS.unsqueeze(1).expand(-1, num_rows, -1)
            return context_BKX.flatten(0, 1), weights_BKS
        keys_BSA, padding_BS, values_BSX = attention
        query_BKA = query.view(len(keys_BSA), num_rows, -1)
        if self._score_weight_A is None:
            scores_BKS = torch.bmm(query_BKA, keys_BSA.transpose(1, 2))
        else:
            sigmoid_BKSA = torch.add(keys_BSA.unsqueeze(1), query_BKA.unsqueeze(2)).sigmoid_()
            scores = torch.mv(sigmoid_BKSA.flatten(0, 2), self._score_weight_A)
            scores_BKS = scores.view(sigmoid_BKSA.shape[:3])
        scores_BKS.masked_fill_(padding_BS.unsqueeze(1), -torch.inf)
        weights_BKS = torch.softmax(scores_BKS, dim=-1)
        context_RX = torch.bmm(weights_BKS, values_BSX).flatten(0, 1)
        if num_rows == 1:
            context_RX = self._project(self._products.context, context_RX)
        return context_RX, weights_BKS

    def _project(self, product: Product, inputs: Tensor) -> Tensor:
        """Return the contributions of contexts, values or embeddings to the gates and to the
        readout, side by side. Without a readout layer, the contribution to the readout is the input
        itself, which the output layer reads."""
        projected = product(inputs)
        if self._products.readout is None:
            projected = torch.cat([projected, inputs], dim=1)
        return projected


def _pack_all(
    first: GRU | None,
    cell: GRU,
    score: Score,
    projection: nn.Linear | None,
    output: Softmax | Lexical,
    precision: Precision,
) -> Products:
    """Group the weights of the cells, of the readout's `projection` and of the output by their
    input."""
    state: Tensor = cell.recurrent_weight_PH
    context: Tensor = cell.input_weights[-1]
    previous = None
    readout = None
    context_bias = None
    reader = first or cell
    embedding: Tensor = reader.input_weights[0]
    if first is not None:
        previous = pack(first.recurrent_weight_PH, first.recurrent_bias_P, precision)
        context_bias = cell.input_bias_P
    if score.query_weight_AH is not None:
        factor = 1.0 if score.score_weight_A is None else -2.0
        state = torch.cat([state, score.query_weight_AH * factor])
    if projection is not None:
        sizes = [cell.hidden_size, context.shape[1], embedding.shape[1]]
        state_part, context_part, embedding_part = torch.split(projection.weight, sizes, dim=1)
        readout = pack(state_part, projection.bias, precision)
        context = torch.cat([context, context_part])
        embedding = torch.cat([embedding, embedding_part])
    lexical = None
    weight_VF = output.projection.weight
    if isinstance(output, Lexical):
        lexical = pack(output.layer.weight, None, precision)
        weight_VF = torch.cat([weight_VF, output.lexical_projection.weight], dim=1)
    return Products(
        previous,
        pack(state, cell.recurrent_bias_P, precision),
        pack(context, context_bias, precision),
        pack(embedding, reader.input_bias_P, precision),
        readout,
        pack(weight_VF, output.projection.bias, precision),
        lexical,
    )
