"""Exported graphs as JSON and bytes, for the interpreter of a web page (`web/interpreter.js`).

A graph is `{"inputs": [names], "outputs": [names], "nodes": [[operation, name, arguments], ...]}`, with nodes in the
order of execution. Operations are called as in PyTorch, without `aten` and `default`: `tanh`, `add.Tensor`; `add`,
`mul` and `getitem` are those of Python, for sizes and lists. Arguments are positional, in the order of the operation's
schema, without those that concern placement and without defaults at the end. An argument is a number, string, boolean,
null, list, or `{"$": name}`: a value, a weight, `inf`, `-inf` or `nan`. A dtype is a string. The first argument of
`scan` is a graph: its body.
"""

import base64
import math
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from seq2seq_attn.errors import UsageError
from seq2seq_attn.export.graphs import Graphs

_CHECKS = ("_assert_tensor_metadata", "_assert_scalar")
_PLACEMENT = ("layout", "device", "pin_memory", "memory_format", "non_blocking", "cudnn_enable")
WeightFormat = Literal["fp16", "fp32", "int8"]
"""how parameters are stored; `int8`: matrices as integers with a scale for each row, the other parameters as `fp16`"""


class Program(NamedTuple):
    """Two graphs, and the weights that they share."""

    description: dict[str, Any]
    """plain JSON: the graphs `prepare` and `step`, the names of `memory` and `state`, and the name, shape and dtype of
    each of the `weights`"""
    weights: bytes
    """the weights side by side in that order, little-endian, without padding"""

    def weights_base64(self) -> str:
        """The weights as text."""
        return base64.b64encode(self.weights).decode("ascii")


def write_program(graphs: Graphs, weight_format: WeightFormat = "fp16") -> Program:
    """Write graphs with their weights. Each parameter is stored once, even if it serves as two.

    Buffers and constants keep float32, as they may hold ids or numbers that float16 lacks.

    Raises:
        UsageError: a graph has an argument that JSON cannot hold.
    """
    weights = _Weights(weight_format)
    description = {
        "prepare": _write_program(graphs.prepare, weights),
        "step": _write_program(graphs.step, weights),
        "memory": list(graphs.memory),
        "state": list(graphs.state),
        "weights": weights.entries,
    }
    return Program(description, b"".join(weights.parts))


class _Weights:
    """Weights by where they lie in memory, so that a tied matrix is stored once."""

    def __init__(self, weight_format: WeightFormat) -> None:
        self.entries: list[dict[str, Any]] = []
        self.parts: list[bytes] = []
        self._format = weight_format
        self._names: dict[Any, str] = {}

    def add(self, target: str, tensor: Tensor, is_parameter: bool) -> str:
        """The name of a weight, which is stored if it is new."""
        place = tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype
        if place not in self._names:
            dtype, stored = self._stored(tensor.detach().cpu(), is_parameter)
            self._names[place] = name = f"{len(self.entries)}:{target}"  # two constants may have the same target
            self.entries.append({"name": name, "shape": list(tensor.shape), "dtype": dtype})
            self.parts += [part.contiguous().numpy().tobytes() for part in stored]
        return self._names[place]

    def _stored(self, tensor: Tensor, is_parameter: bool) -> tuple[str, list[Tensor]]:
        if not tensor.is_floating_point():
            stored = tensor if tensor.dtype == torch.bool else tensor.int()
        elif is_parameter and self._format == "int8" and tensor.ndim == 2 and tensor.numel():
            scale_N1 = tensor.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny).float() / 127
            return "int8", [(tensor / scale_N1).round().to(torch.int8), scale_N1]
        else:
            stored = tensor.half() if is_parameter and self._format != "fp32" else tensor.float()
        return _name(stored.dtype), [stored]


def _write_program(program: ExportedProgram, weights: _Weights) -> dict[str, Any]:
    placeholders = {node.name: node for node in program.graph_module.graph.find_nodes(op="placeholder")}
    names = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind != InputKind.USER_INPUT and placeholders[spec.arg.name].users:
            assert spec.target is not None
            tensors = program.state_dict if spec.target in program.state_dict else program.constants
            is_parameter = spec.kind == InputKind.PARAMETER
            names[spec.arg.name] = weights.add(spec.target, tensors[spec.target], is_parameter)
    inputs = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    return {"inputs": inputs, **_write_graph(program.graph_module, names)}


def _write_graph(module: fx.GraphModule, names: dict[str, str]) -> dict[str, Any]:
    """The nodes and outputs of a graph. `names`: of placeholders that are weights."""

    def encode(argument: Any) -> Any:
        if isinstance(argument, fx.Node):
            if argument.op != "get_attr":
                return {"$": names.get(argument.name, argument.name)}
            body = getattr(module, str(argument.target))
            return {"inputs": [node.name for node in body.graph.find_nodes(op="placeholder")], **_write_graph(body, {})}
        if isinstance(argument, list | tuple):
            return [encode(item) for item in argument]
        if isinstance(argument, torch.dtype):
            return _name(argument)
        if isinstance(argument, float) and not math.isfinite(argument):
            return {"$": str(argument)}
        if argument is None or isinstance(argument, bool | int | float | str):
            return argument
        raise UsageError(f"this model cannot be exported, as its graph has an argument {argument!r}")

    nodes = []
    for node in module.graph.nodes:
        if node.op == "call_function" and (operation := _operation(node)) not in _CHECKS:
            nodes.append([operation, node.name, encode(_arguments(node))])
    [returned] = module.graph.output_node().args
    return {"outputs": [item["$"] for item in encode(returned)], "nodes": nodes}


def _operation(node: fx.Node) -> str:
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target).removeprefix("aten.").removesuffix(".default")
    return getattr(node.target, "__name__", str(node.target))  # Python's, and `scan`


def _arguments(node: fx.Node) -> list[Any]:
    """Named arguments become positional ones; what concerns placement is left out."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return list(node.args)
    schema = node.target._schema.arguments
    passed = dict(zip((argument.name for argument in schema), node.args, strict=False)) | node.kwargs
    kept = [argument for argument in schema if argument.name not in _PLACEMENT]
    while kept and kept[-1].name not in passed:
        kept.pop()
    return [passed.get(argument.name, argument.default_value) for argument in kept]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
