"""Write a run as ONNX: `prepare.onnx`, `step.onnx`, `model.json`, and a manifest of their SHA-256.

A program that translates needs only these files.
"""

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram

from seq2seq_attn.errors import UsageError
from seq2seq_attn.export.model_graphs import Graphs, export_graphs
from seq2seq_attn.export.tokens import describe_run
from seq2seq_attn.files import MANIFEST, list_files, write_json
from seq2seq_attn.leftovers import replaced_folder
from seq2seq_attn.run import Run
from seq2seq_attn.runtime.extras import require
from seq2seq_attn.text.vocab import BOS, EOS, UNK

FILES = ("prepare.onnx", "step.onnx", "*.onnx.data", "model.json", MANIFEST)
"""patterns of the names of the files that are written"""


def export_onnx(run: Run, folder: Path) -> None:
    """Write the best model of a run as ONNX into a folder, which is created.

    Raises:
        UserError: a package is missing, or a file of the run is missing or damaged.
        UsageError: the model cannot be exported or its graphs cannot be run, or the folder holds
            other files.
    """
    require("onnx", "onnx", "onnxscript")
    model, _ = run.load_model(run.config.model)
    graphs = export_graphs(model)
    described = describe_run(run)
    described["copies_source"] = model.output.copies_source
    described["memory"] = graphs.memory
    described["state"] = graphs.state
    with replaced_folder(folder, FILES) as temporary:
        write_graphs(graphs, temporary)
        write_json(temporary / "model.json", described)
        list_files(temporary, temporary.iterdir())


def write_graphs(graphs: Graphs, folder: Path) -> None:
    """Write `prepare.onnx` and `step.onnx` into a folder, which is created, and run both graphs for
    a sentence. Raises UsageError if a graph cannot be written or run."""
    folder.mkdir(parents=True, exist_ok=True)
    memory_and_state = [*graphs.memory, *graphs.state]
    next_state = [f"next_{name}" for name in graphs.state]
    prepare_inputs = ["source_ids", "extended_ids"]
    step_inputs = ["previous_ids", *memory_and_state]
    step_outputs = ["log_probs", "weights", *next_state]
    ids = np.array([[UNK, EOS]])
    values = {"source_ids": ids, "extended_ids": ids, "previous_ids": np.array([BOS])}
    _write_graph(graphs.prepare, folder / "prepare.onnx", prepare_inputs, memory_and_state, values)
    _write_graph(graphs.step, folder / "step.onnx", step_inputs, step_outputs, values)


def _write_graph(
    program: ExportedProgram,
    path: Path,
    inputs: Sequence[str],
    outputs: Sequence[str],
    values: dict[str, Any],
) -> None:
    """Write a graph, run the graph with the inputs in `values`, and add the outputs to `values`."""
    from onnx.reference import ReferenceEvaluator

    # PyTorch logs warnings of missing packages that this export does not need.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(action="ignore"):
        try:
            written = torch.onnx.export(
                program, input_names=inputs, output_names=outputs, dynamo=True, verbose=False
            )
            assert written is not None
            written.save(path)
            graph = ReferenceEvaluator(str(path))
            results: Any = graph.run(None, {name: values[name] for name in graph.input_names})
            values |= zip(outputs, results, strict=True)
        except Exception as error:
            cause: BaseException = error
            while cause.__cause__ is not None:  # the innermost error names the operation
                cause = cause.__cause__
            reason = " ".join(str(cause).split())
            raise UsageError(f"this model cannot be written as ONNX: {reason[:300]}") from error
