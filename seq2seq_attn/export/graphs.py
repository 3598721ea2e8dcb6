"""A model as two graphs of tensor operations: one encodes sentences, one makes a decoder step.

Nothing here depends on the variants: `torch.export` records the operations of `Seq2Seq.prepare` and `Seq2Seq.step`, of
the plain code. Numbers of sentences and of source positions are free; so is any dimension that grows with the steps.

Shapes: B sentences, S source positions, V target vocabulary.
"""

import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export
from torch.utils._pytree import tree_flatten, tree_unflatten

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model import speed
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.text.vocab import EOS, SPECIALS

KINDS = ("memory", "state")
_EXAMPLES = ((3, 5, 2), (2, 7, 3))
"""numbers of sentences, positions and steps: a dimension that differs between the two is free"""


class Graphs(NamedTuple):
    """The graphs of a model in float32, and the names of what they exchange."""

    prepare: ExportedProgram
    """int64 source ids [B, S], each sentence with EOS, padded with PAD, and the ids of the same tokens in the extended
    target vocabulary (`text/vocab.py`), which outputs that copy read -> the memory, then the state"""
    step: ExportedProgram
    """int64 previous ids [B] (BOS at first), the memory, the state -> log-probabilities [B, V] (of outputs that copy
    [B, V + S]), attention weights [B, S], the next state"""
    memory: Sequence[str]
    state: Sequence[str]


class _Prepare(nn.Module):
    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids_BS: Tensor, extended_ids_BS: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        lengths_B = torch.zeros(0)  # searches read lengths, encoders do not
        memory, state = self.model.prepare(SourceBatch(ids_BS, lengths_B, extended_ids_BS))
        return _tensors(memory), _tensors(state)


class _Step(nn.Module):
    """A step that takes memory and state as lists of tensors."""

    def __init__(self, model: Seq2Seq, memory: Any, state: Any) -> None:
        super().__init__()
        self.model = model
        self._memory, self._state = memory, state  # examples, for their structure

    def forward(self, ids_B: Tensor, memory: list[Tensor], state: list[Tensor]) -> tuple[Tensor, Tensor, list[Tensor]]:
        whole = _filled(self._memory, memory)
        step = self.model.step(ids_B, _filled(self._state, state), whole)
        return self.model.output.log_probs(step, whole), step.weights_BS, _tensors(step.state)


def export_graphs(model: Seq2Seq) -> Graphs:
    """Export a model.

    Raises:
        UsageError: its operations depend on values, as with several sources; or its state changes its form.
    """
    if model.output.needs_history:
        raise UsageError("this model cannot be exported, as its output points to earlier target tokens")
    model = model.eval()
    with torch.no_grad(), speed.plain(), quiet():
        (ids_BS, memory, state), other = (_example(model, *numbers) for numbers in _EXAMPLES)
        free = [_free_dimensions(*pair) for pair in zip((memory, state), other[1:], strict=True)]
        prepare, step = _Prepare(model), _Step(model, memory, state)
        previous_B = torch.full((len(ids_BS),), EOS)
        try:
            programs = [
                export(
                    prepare,
                    (ids_BS, ids_BS.clone()),
                    dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},) * 2,
                    strict=False,
                ),
                export(
                    step,
                    (previous_B, _tensors(memory), _tensors(state)),
                    dynamic_shapes=({0: Dim.DYNAMIC}, *free),
                    strict=False,
                ),
            ]
        except Exception as error:  # of many kinds, private ones among them
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise UsageError(f"this model cannot be exported, as PyTorch's exporter says: {reason[:300]}") from error
        prepared, stepped = (program.run_decompositions({}) for program in programs)
    names = [[f"{kind}_{index}" for index in range(len(each))] for kind, each in zip(KINDS, free, strict=True)]
    return Graphs(prepared, stepped, *names)


@contextmanager
def quiet() -> Iterator[None]:
    """Discard warnings, logs and prints of PyTorch's exporters: none concerns the graphs, and errors are raised."""
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _example(model: Seq2Seq, num_sentences: int, num_positions: int, num_steps: int) -> tuple[Tensor, Any, Any]:
    """Source ids, and memory and state after some steps."""
    ids_BS = torch.full((num_sentences, num_positions), len(SPECIALS))
    ids_BS[:, -num_steps:] = EOS  # as of several sentences: their number is free
    memory, state = model.prepare(SourceBatch(ids_BS, torch.full((num_sentences,), num_positions), ids_BS))
    for _ in range(num_steps):
        state = model.step(torch.full((num_sentences,), EOS), state, memory).state
    return ids_BS, memory, state


def _tensors(structure: Any) -> list[Tensor]:
    """The tensors of a named tuple, in their order; None is left out."""
    return [leaf for leaf in tree_flatten(structure)[0] if leaf is not None]


def _filled(structure: Any, tensors: list[Tensor]) -> Any:
    """The structure with other tensors."""
    leaves, form = tree_flatten(structure)
    rest = iter(tensors)
    return tree_unflatten([None if leaf is None else next(rest) for leaf in leaves], form)


def _free_dimensions(structure: Any, other: Any) -> list[dict[int, Any]]:
    """For each tensor, the dimensions that differ from those of another example."""
    return [
        {
            axis: Dim.DYNAMIC
            for axis, (size, other_size) in enumerate(zip(a.shape, b.shape, strict=True))
            if size != other_size
        }
        for a, b in zip(_tensors(structure), _tensors(other), strict=True)
    ]
