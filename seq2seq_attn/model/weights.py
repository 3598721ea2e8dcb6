"""Tensors on disk: a safetensors file with JSON values in its header, listed in the manifest of its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_listed, write_listed

if TYPE_CHECKING:
    from torch import Tensor

_VALUES = "values"
"""the only entry of the header's metadata: safetensors writes several in random order, and equal models should give
equal files"""


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
    from safetensors.torch import save

    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise UserError(f"{path}: not saved: values of {name} are not finite; lower the learning rate")
    # tied parameters share memory, which the format rejects, so each further name gets its own copy
    saved, storages = {}, set[int]()
    for name, tensor in tensors.items():
        storage = tensor.untyped_storage().data_ptr()
        saved[name] = tensor.detach().to("cpu", copy=storage in storages).contiguous()
        storages.add(storage)
    write_listed(path, save(saved, {_VALUES: json.dumps(values)}))


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
        raise UserError(f"{path}: not a file that `seq2seq train` wrote ({reason}); name another run") from None
