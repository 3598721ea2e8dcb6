"""Step models, which a search calls: any model, its fast implementation, or an ensemble.

Shapes: B sentences, K rows of a sentence, R = B * K, S source positions, V target vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model import speed
from seq2seq_attn.model.decoder.base import Memory
from seq2seq_attn.model.layers import select_rows
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.runtime.device import Precision
from seq2seq_attn.search.base import StepModel, TokenScores


def step_model(model: Seq2Seq, precision: Precision = "fp32") -> StepModel[Any]:
    """Return the fastest `StepModel` of a model, with the current parameters of the model.

    Raises:
        UsageError: `precision` is `int8` and the model has no fast implementation.
    """
    fast = speed.find("steps", model, precision)
    if fast is not None:
        steps: StepModel[Any] = fast()
        return steps
    if precision == "int8":
        raise UsageError(
            "precision 'int8': not supported for this decoder, cell, attention and output; use "
            "bf16 or fp32"
        )
    return PlainSteps(model, precision)


class State(NamedTuple):
    """The search state: the decoder's state and memory, both with R rows."""

    decoder: Any
    memory: Memory
    rows_per_sentence: int


@dataclass(frozen=True)
class PlainSteps(StepModel[State]):
    """The steps of any model, computed by `Seq2Seq.step`."""

    model: Seq2Seq
    precision: Precision = "fp32"

    def start(self, source: SourceBatch, rows_per_sentence: int) -> State:
        with self._autocast(source.ids_BS):
            memory, state = self.model.prepare(source)
        if rows_per_sentence > 1:
            sentences_B = torch.arange(len(source.ids_BS), device=source.ids_BS.device)
            rows_R = sentences_B.repeat_interleave(rows_per_sentence)
            memory = select_rows(memory, rows_R)
            state = select_rows(state, rows_R)
        return State(state, memory, rows_per_sentence)

    def step(self, prev_ids_R: Tensor, state: State) -> tuple[TokenScores, State]:
        with self._autocast(prev_ids_R):
            step = self.model.step(prev_ids_R, state.decoder, state.memory)
            log_probs_RV = self.model.output.log_probs(step, state.memory)
        weights_RS = step.weights_BS if self.model.has_attention else None
        return TokenScores(log_probs_RV.float(), weights_RS), state._replace(decoder=step.state)

    def reorder(self, state: State, index_R: Tensor) -> State:
        """Return the state whose row i is the old row `index_R[i]`.

        The rows of a sentence have equal copies of its memory, so the memory is only reordered when
        sentences leave the batch.
        """
        memory = state.memory
        rows = state.rows_per_sentence
        sentences_B = index_R[::rows] // rows
        num_sentences = len(memory.source_ids_BS) // rows
        if not torch.equal(sentences_B, torch.arange(num_sentences, device=index_R.device)):
            memory = select_rows(memory, index_R)
        return State(select_rows(state.decoder, index_R), memory, rows)

    def _autocast(self, tensor: Tensor) -> torch.autocast:
        is_bf16 = self.precision == "bf16"
        return torch.autocast(tensor.device.type, dtype=torch.bfloat16, enabled=is_bf16)


@dataclass(frozen=True)
class Ensemble(StepModel[tuple[Any, ...]]):
    """Several models that translate as one (Sutskever, Vinyals, Le 2014, section 3.6).

        log p(y_t | y_<t, x) = log 1/N sum_n p_n(y_t | y_<t, x)

    All models have the same vocabularies, and either all or none copy source tokens; they may
    differ in everything else. The attention is the mean over the models that have attention over
    source positions. The state is the tuple of the models' states.
    """

    models: Sequence[StepModel[Any]]
    has_attention: bool = True
    """whether at least one of the models has attention over source positions"""
    keeps_positions: bool = True
    """whether all encoders have a value for each source token"""
    copies_source: bool = False
    """whether the outputs of the models copy source tokens (see `Output`)"""

    def start(self, source: SourceBatch, rows_per_sentence: int) -> tuple[Any, ...]:
        return tuple(model.start(source, rows_per_sentence) for model in self.models)

    def step(
        self, prev_ids_R: Tensor, state: tuple[Any, ...]
    ) -> tuple[TokenScores, tuple[Any, ...]]:
        log_probs = []
        weights = []
        states = []
        for model, model_state in zip(self.models, state, strict=True):
            tokens, next_state = model.step(prev_ids_R, model_state)
            log_probs.append(tokens.log_probs())
            states.append(next_state)
            if tokens.weights_RS is not None:
                weights.append(tokens.weights_RS)
        mean_RV = torch.stack(log_probs).logsumexp(dim=0) - math.log(len(log_probs))
        mean_RS = torch.stack(weights).mean(dim=0) if weights else None
        return TokenScores(mean_RV, mean_RS), tuple(states)

    def reorder(self, state: tuple[Any, ...], index_R: Tensor) -> tuple[Any, ...]:
        pairs = zip(self.models, state, strict=True)
        return tuple(model.reorder(model_state, index_R) for model, model_state in pairs)
