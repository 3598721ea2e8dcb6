"""Write a run as ONNX: `prepare.onnx`, `step.onnx` and `model.json`, all that a program needs to translate tokens."""

import importlib.util
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.export.graphs import Graphs, export_graphs
from seq2seq_attn.export.tokens import describe_run
from seq2seq_attn.files import write_json
from seq2seq_attn.run_dir import RunDir

PACKAGES = ("onnx", "onnxscript")


def export_onnx(run: RunDir, folder: Path) -> None:
    """Write a run's best model into a folder, which is made.

    Raises:
        UserError: a package is missing, or a file of the run is missing or damaged.
        UsageError: the model cannot be exported.
    """
    if missing := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
        raise UserError(f"{', '.join(missing)}: not installed; run: pip install 'seq2seq-attn[onnx]'")
    model, _ = run.load_model(run.config().model)
    try:
        graphs, described = export_graphs(model), describe_run(run)
    except UsageError as error:
        raise UsageError(f"{run.path}: {error}") from error
    folder.mkdir(parents=True, exist_ok=True)
    _write(graphs, folder)
    described |= {"copies_source": model.output.copies_source, "memory": graphs.memory, "state": graphs.state}
    write_json(folder / "model.json", described)


def _write(graphs: Graphs, folder: Path) -> None:
    memory, state = list(graphs.memory), list(graphs.state)
    after = [f"next_{name}" for name in state]
    _write_graph(graphs.prepare, folder / "prepare.onnx", ["source_ids"], [*memory, *state])
    _write_graph(graphs.step, folder / "step.onnx", ["previous_ids", *memory, *state], ["log_probs", "weights", *after])


def _write_graph(
    program: torch.export.ExportedProgram, path: Path, inputs: Sequence[str], outputs: Sequence[str]
) -> None:
    """Without the exporter's warnings, of which none is about the graph."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            written = torch.onnx.export(
                program, (), input_names=inputs, output_names=outputs, dynamo=True, verbose=False, optimize=True
            )
        assert written is not None
        written.save(path)
    finally:
        logger.setLevel(level)
