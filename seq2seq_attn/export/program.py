"""Write exported graphs as JSON and bytes for the interpreter of a web page (`web/interpreter.js`).

A graph is `{"inputs": [names], "outputs": [names], "nodes": [[operation, name, arguments], ...]}`,
with nodes in the order of execution. Operations have PyTorch's names without `aten` and `default`,
for example `tanh` or `add.Tensor`. `add`, `mul` and `getitem` are Python's operations, on sizes and
lists.

Arguments are positional, in the order of the operation's schema. Arguments that concern placement,
such as the device, are left out, and so are arguments at the end that have their defaults. An
argument is a number, string, boolean, null, list, or `{"$": name}`, which names a node, an input, a
weight, `inf`, `-inf` or `nan`. A dtype is a string. The first argument of `scan` is a graph, the
body of the loop.

In this file, "weights" are the parameters and constants of the graphs.
"""

import base64
import json
import math
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, TensorArgument

from seq2seq_attn.errors import UsageError
from seq2seq_attn.export.model_graphs import Graphs, decompose
from seq2seq_attn.files import JsonObject

_CHECKS = ("_assert_tensor_metadata", "_assert_scalar", "_assert_async.msg")
_KNOWN = json.loads((Path(__file__).parent / "web" / "operations.json").read_bytes())
"""the dtypes of the interpreter, and the largest number of arguments of each operation"""
_PLACEMENT = ("layout", "device", "pin_memory", "memory_format", "non_blocking", "cudnn_enable")
WeightFormat = Literal["int16", "fp32", "int8"]
"""The format in which parameters that are matrices are stored: `int16` and `int8` are integers with
a scale for each row. Other tensors are never rounded. For the models of the demo, the error of
integers of 16 bits is 7 times smaller than that of float16."""


def write_program(graphs: Graphs, weight_format: WeightFormat = "int16") -> JsonObject:
    """Return the graphs and weights of a model as plain JSON.

    Returns:
        `program` has the graphs `prepare` and `step`, the names of the tensors of `memory` and
        `state`, and the name, shape and dtype of each weight. `weights` has the data of all weights
        in the order of the list in `program`, little-endian, in base64.

    Raises:
        UsageError: a graph has an operation, a dtype or an argument that the interpreter does not
            know.
    """
    weights = _Weights(weight_format)
    program = {
        "prepare": _write_program(graphs.prepare, weights),
        "step": _write_program(graphs.step, weights),
        "memory": graphs.memory,
        "state": graphs.state,
        "weights": list(weights.entries.values()),
    }
    data = base64.b64encode(b"".join(weights.data)).decode("ascii")
    return {"program": program, "weights": data}


class _Weights:
    """The weights of several graphs. A weight that graphs share is stored once.

    Two tensors are the same weight if their address, shape, strides and dtype are equal.
    """

    def __init__(self, weight_format: WeightFormat) -> None:
        self.entries: dict[Any, JsonObject] = {}
        self.data: list[bytes] = []
        self._format = weight_format

    def add(self, target: str, tensor: Tensor, is_parameter: bool) -> str:
        """Return the name of a weight, and store the weight if it is new."""
        place = tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype
        if place not in self.entries:
            dtype, stored = self._encode(tensor.detach().cpu(), is_parameter)
            # The number makes the name unique: constants of both graphs may have the same target.
            name = f"{len(self.entries)}:{target}"
            self.entries[place] = {"name": name, "shape": list(tensor.shape), "dtype": dtype}
            self.data += [values.contiguous().numpy().tobytes() for values in stored]
        return str(self.entries[place]["name"])

    def _encode(self, tensor: Tensor, is_parameter: bool) -> tuple[str, list[Tensor]]:
        """Return the name of the dtype in which a tensor is stored, and the tensors to store: the
        converted tensor, or integers and the scale of each row."""
        if tensor.dtype == torch.bool:
            return "bool", [tensor]
        if not tensor.is_floating_point():
            return "int32", [tensor.int()]
        if self._format == "fp32" or not is_parameter or tensor.ndim < 2 or not tensor.numel():
            return "float32", [tensor.float()]
        dtype = getattr(torch, self._format)
        rows = tensor.flatten(1).float()
        largest_N1 = rows.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
        scale_N1 = largest_N1 / torch.iinfo(dtype).max
        return self._format, [(rows / scale_N1).round().to(dtype), scale_N1]


def _write_program(program: ExportedProgram, weights: _Weights) -> JsonObject:
    """Return a graph as plain JSON, and add the weights of the graph to `weights`."""
    program = _with_known_operations(program)
    placeholders = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    inputs = []
    names = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            if isinstance(spec.arg, TensorArgument):
                inputs.append(spec.arg.name)
        elif placeholders[spec.arg.name].users:
            assert spec.target is not None
            tensors = program.state_dict if spec.target in program.state_dict else program.constants
            names[spec.arg.name] = weights.add(
                spec.target, tensors[spec.target], spec.kind == InputKind.PARAMETER
            )
    return {"inputs": inputs, **_write_graph(program.graph_module, names)}


def _with_known_operations(program: ExportedProgram) -> ExportedProgram:
    """Replace operations that the interpreter lacks by simpler operations, if PyTorch can."""
    table: Any = torch.export.default_decompositions()
    unknown = {}
    for operation, rule in table.items():
        if _name(operation) not in _KNOWN["operations"]:
            unknown[operation] = rule
    return decompose(program, unknown)


def _write_graph(module: fx.GraphModule, names: dict[str, str]) -> JsonObject:
    """Return the nodes and outputs of a graph as plain JSON.

    Args:
        names: the names of weights by the names of their placeholders.
    """

    def encode(argument: Any) -> Any:
        if isinstance(argument, fx.Node):
            if argument.op != "get_attr":
                return {"$": names.get(argument.name, argument.name)}
            body = getattr(module, str(argument.target))
            inputs = [node.name for node in body.graph.find_nodes(op="placeholder")]
            return {"inputs": inputs, **_write_graph(body, {})}
        if isinstance(argument, list | tuple):
            return [encode(item) for item in argument]
        if isinstance(argument, torch.dtype):
            dtype = str(argument).removeprefix("torch.")
            if dtype not in _KNOWN["dtypes"]:
                raise UsageError(f"a page cannot run this model: it does not know dtype {dtype}")
            return dtype
        if isinstance(argument, float) and not math.isfinite(argument):
            return {"$": str(argument)}
        if argument is None or isinstance(argument, bool | int | float | str):
            return argument
        raise UsageError(
            f"this model cannot be exported, as its graph has an argument {argument!r}"
        )

    nodes = []
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        name, arguments = _operation(node)
        if name in _CHECKS:
            continue
        if len(arguments) > _KNOWN["operations"].get(name, -1):
            raise UsageError(
                f"a page cannot run this model: it does not know the operation {name}"
                f"({', '.join(map(str, arguments))}); use other operations, or export ONNX"
            )
        nodes.append([name, node.name, encode(arguments)])
    [returned] = module.graph.output_node().args
    outputs = [value["$"] for value in encode(returned) if value is not None]
    return {"outputs": outputs, "nodes": nodes}


def _name(operation: Any) -> str:
    return str(operation).removeprefix("aten.").removesuffix(".default")


def _operation(node: fx.Node) -> tuple[str, list[Any]]:
    """Return the name of a node's operation, and the positional arguments as the module's docstring
    describes them."""
    if not isinstance(node.target, torch._ops.OpOverload):
        # The operation is a function of Python's module `operator`, or `scan`.
        return getattr(node.target, "__name__", str(node.target)), list(node.args)
    schema = node.target._schema.arguments
    passed = dict(node.kwargs)
    for argument, value in zip(schema, node.args, strict=False):
        passed[argument.name] = value
    kept = [argument for argument in schema if argument.name not in _PLACEMENT]
    while kept and kept[-1].name not in passed:
        kept.pop()
    return _name(node.target), [
        passed.get(argument.name, argument.default_value) for argument in kept
    ]
