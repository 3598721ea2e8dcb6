"""Tensors on disk: a safetensors file with JSON values in its header, listed in the manifest of its
folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_listed, write_listed

if TYPE_CHECKING:
    from torch import Tensor

_VALUES = "values"
"""the only entry of the header's metadata: safetensors writes several in random order, and equal
models should give equal files"""
_TYPES = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "float16",
    "bfloat16",
    "int32",
    "float32",
    "float64",
    "int64",
)
"""torch's names of types, in the order of safetensors, which writes the widest first"""
_CODES = ("BOOL", "U8", "I8", "I16", "F16", "BF16", "I32", "F32", "F64", "I64")
"""the format's names"""


class Saved(NamedTuple):
    """The content of a file."""

    tensors: dict[str, Tensor]
    """by name, on the CPU"""
    values: dict[str, Any]
    sha256: str
    """of the whole file"""


def write_tensors(path: Path, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Write tensors and JSON values, atomically. The same arguments give the same bytes.

    Raises:
        UserError: a tensor has values that are not finite; the former file stays.
    """
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise UserError(
                f"{path}: not saved: values of {name} are not finite; lower the learning rate"
            )
    write_listed(path, _serialize(tensors, values))


def _serialize(
    tensors: Mapping[str, Tensor], values: Mapping[str, Any]
) -> Iterator[bytes | memoryview]:
    """The parts of the file. `safetensors.torch.save` makes the same bytes, but of all tensors at
    once: with the state of `multi30k`, 126 MiB more at the peak of training. It refuses tied
    parameters too; here each name gets the values.
    """
    import torch

    types = {
        name: _TYPES.index(str(tensor.dtype).removeprefix("torch."))
        for name, tensor in tensors.items()
    }
    order = sorted(tensors, key=lambda name: (-types[name], name))
    header: dict[str, Any] = {"__metadata__": {_VALUES: json.dumps(values)}}
    end = 0
    for name in order:
        start, end = end, end + tensors[name].nbytes
        shape, code = list(tensors[name].shape), _CODES[types[name]]
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the tensors are aligned
    yield len(text).to_bytes(8, "little")
    yield text
    for name in order:
        yield tensors[name].detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data


def read_tensors(path: Path) -> Saved:
    """Read what `write_tensors` wrote, from one open file.

    Raises:
        UserError: the file cannot be read, is damaged, or is another kind of file.
    """
    from safetensors.torch import load

    content, sha256 = read_listed(path)
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return Saved(load(content), dict(json.loads(header["__metadata__"][_VALUES])), sha256)
    except Exception as error:  # a file of another kind can raise anything
        reason = " ".join(str(error).split())
        raise UserError(
            f"{path}: not a file that `seq2seq train` wrote ({reason}); name another run"
        ) from None
