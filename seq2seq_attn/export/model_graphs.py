"""Export a model as two graphs of tensor operations: the graph `prepare` encodes sentences, and the
graph `step` makes one decoder step.

`torch.export` records the operations of `Seq2Seq.prepare` and `Seq2Seq.step`, without the fast
implementations of `model/fast/`. This module works for all variants alike. The graphs work for any
number of sentences and of source positions. Dimensions that grow with the steps are dynamic too.

Shapes: B sentences, S source positions, V target vocabulary.
"""

import io
import logging
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export
from torch.utils._pytree import tree_leaves, tree_map, tree_structure, tree_unflatten

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model import speed
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import located
from seq2seq_attn.text.vocab import BOS, EOS, PAD, SPECIALS

_DECOMPOSED = (torch.ops.aten.einsum.default, torch.ops.aten.gru_cell.default)
"""operations that are replaced by simpler operations"""


class Graphs(NamedTuple):
    """The graphs of a model in float32, and the names of the tensors that pass between them."""

    prepare: ExportedProgram
    """takes int64 source ids [B, S], padded with PAD, each sentence ending with EOS, and the ids of
    the same tokens in the extended target vocabulary (`text/vocab.py`), which only outputs that
    copy read; returns the tensors of the memory, then the tensors of the state"""
    step: ExportedProgram
    """takes int64 previous ids [B] (BOS at first), the memory and the state; returns
    log-probabilities [B, V] ([B, V + S] for outputs that copy), attention weights [B, S] and the
    next state"""
    memory: list[str]
    """names of the tensors of the memory"""
    state: list[str]
    """names of the tensors of the decoder state"""


class _Prepare(nn.Module):
    """The module that is exported as the graph `prepare`.

    It returns lists of tensors, because PyTorch's exporter confuses the fields of a structure if
    the name of a field begins with the name of another field.
    """

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids_BS: Tensor, extended_ids_BS: Tensor) -> Any:
        memory, state = self.model.prepare(_source(ids_BS, extended_ids_BS))
        return tree_leaves(memory), tree_leaves(state)


def _source(ids_BS: Tensor, extended_ids_BS: Tensor) -> SourceBatch:
    return SourceBatch(ids_BS, (ids_BS != PAD).sum(dim=1), extended_ids_BS)


class _Step(nn.Module):
    """The module that is exported as the graph `step`.

    It takes lists of tensors, and rebuilds the structures `memory` and `state` of the model.
    """

    def __init__(self, model: Seq2Seq, memory: Any, state: Any) -> None:
        super().__init__()
        self.model = model
        self.memory_structure = tree_structure(memory)
        self.state_structure = tree_structure(state)

    def forward(self, ids_B: Tensor, memory_leaves: list[Any], state_leaves: list[Any]) -> Any:
        memory = tree_unflatten(memory_leaves, self.memory_structure)
        state = tree_unflatten(state_leaves, self.state_structure)
        step = self.model.step(ids_B, state, memory)
        return self.model.output.log_probs(step, memory), step.weights_BS, tree_leaves(step.state)


def export_graphs(model: Seq2Seq) -> Graphs:
    """Export a model as graphs.

    Raises:
        UsageError: the operations of the model depend on values, as with several sources; the
            structure of the state changes from step to step; the output layer points to earlier
            tokens; or the graphs give other results than the model.
    """
    if model.output.needs_history:
        raise UsageError(
            "this model cannot be exported, as its output points to earlier target tokens"
        )
    model = model.eval()
    ids_BS = torch.full((3, 5), len(SPECIALS))
    ids_BS[:, -2:] = EOS  # two EOS per line, as in a line of two sentences
    previous_B = ids_BS[:, -1].clone()
    # Warnings of PyTorch's exporter do not matter here.
    with torch.no_grad(), speed.plain(), warnings.catch_warnings(action="ignore"):
        memory, state = model.prepare(_source(ids_BS, ids_BS))
        for _ in range(2):  # after two steps, dimensions that grow with the steps exceed 1
            state = model.step(previous_B, state, memory).state
        memory_leaves = tree_leaves(memory)
        state_leaves = tree_leaves(state)
        step_inputs = (previous_B, memory_leaves, state_leaves)
        logging.getLogger("torch.fx").setLevel(logging.ERROR)
        try:
            with redirect_stderr(io.StringIO()):  # after an error, the exporter prints its graph
                prepare = _export(_Prepare(model), (ids_BS, ids_BS.clone()), Dim.DYNAMIC)
                step = _export(_Step(model, memory, state), step_inputs, Dim.AUTO)
        except Exception as error:  # the exporter raises private classes of errors
            raise UsageError(f"this model cannot be exported: {_reason(error)}") from error
    graphs = Graphs(prepare, step, _names("memory", memory_leaves), _names("state", state_leaves))
    _check_sentence(graphs, model)
    return graphs


@torch.no_grad()
def _check_sentence(graphs: Graphs, model: Seq2Seq) -> None:
    """Make two steps for two sentences by the graphs and by the model, and compare the results. The
    numbers of sentences and positions differ from those with which the graphs were recorded.

    Raises:
        UsageError: the graphs fail or give other results than the model.
    """
    ids_BS = torch.full((2, 8), len(SPECIALS))  # guards of PyTorch may exclude one sentence
    ids_BS[:, -1] = EOS
    previous_B = torch.tensor([BOS, BOS])
    with speed.plain():
        memory, state = model.prepare(_source(ids_BS, ids_BS))
        try:
            leaves, state_leaves = graphs.prepare.module()(ids_BS, ids_BS)
            make_step = graphs.step.module()
            for _ in range(2):
                step = model.step(previous_B, state, memory)
                state = step.state
                log_probs_BV, _, state_leaves = make_step(previous_B, leaves, state_leaves)
                expected_BV = model.output.log_probs(step, memory)
                torch.testing.assert_close(log_probs_BV, expected_BV, rtol=1e-3, atol=1e-3)
        except Exception as error:  # operations of PyTorch raise many classes of errors
            raise UsageError(
                f"this model cannot be exported, as its graphs do not translate like the model: "
                f"{_reason(error)}"
            ) from error


def _reason(error: Exception) -> str:
    return " ".join(located(error).split())[:400]


def _names(kind: str, leaves: Sequence[Tensor | None]) -> list[str]:
    """Return a name for each leaf that is a tensor, such as `state_0`."""
    num_tensors = sum(leaf is not None for leaf in leaves)
    return [f"{kind}_{index}" for index in range(num_tensors)]


def _export(module: nn.Module, inputs: tuple[Any, ...], dimension: Any) -> ExportedProgram:
    """Export a module. All dimensions of its inputs are dynamic, of the kind `dimension`, except
    dimensions of size 0 or 1, which PyTorch's exporter fixes."""

    def free_dimensions(leaf: Tensor | None) -> dict[int, Any] | None:
        if leaf is None:
            return None
        return {axis: dimension for axis, size in enumerate(leaf.shape) if size > 1}

    free = tree_map(free_dimensions, inputs)
    program = export(module, inputs, dynamic_shapes=free, strict=False)
    table = torch.export.default_decompositions()
    decompositions = {operation: table[operation] for operation in _DECOMPOSED}
    return decompose(program, decompositions)


def decompose(program: ExportedProgram, decompositions: dict[Any, Any]) -> ExportedProgram:
    """Replace operations by simpler operations. Drop the checks of sizes ("guards"), which raise
    errors for some encoders; `_check_sentence` tries other sizes instead."""
    program._guards_code = []
    with warnings.catch_warnings(action="ignore"):
        decomposed: ExportedProgram = program.run_decompositions(decompositions)
    decomposed._guards_code = []
    return decomposed
