"""Tensors on disk: a safetensors file with JSON values in its header, listed in the manifest of its
folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import ListedFiles, write_listed

if TYPE_CHECKING:
    from torch import Tensor

_VALUES = "values"
"""the only entry of the header's metadata: safetensors writes several in random order, and equal
models should give equal files"""


class Saved(NamedTuple):
    """The content of a file."""

    tensors: dict[str, Tensor]
    """by name, on the CPU"""
    values: dict[str, Any]
    sha256: str
    """of the whole file"""


def write_tensors(path: Path, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Write tensors and JSON values, atomically. The same arguments give the same bytes. While the
    file is written, it is held in memory twice: 2 x 121 MiB for a saved state of `multi30k`.

    Raises:
        UserError: a tensor has values that are not finite; the former file stays.
    """
    from safetensors.torch import save

    separate: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise UserError(
                f"{path}: not saved: values of {name} are not finite; lower the learning rate"
            )
        tensor = tensor.detach().cpu().contiguous()
        storage = tensor.untyped_storage().data_ptr()
        if storage in storages:  # tied parameters, which the library refuses
            tensor = tensor.clone()
        storages.add(storage)
        separate[name] = tensor
    write_listed(path, save(separate, {_VALUES: json.dumps(values)}))


def read_tensors(path: Path, files: ListedFiles | None = None) -> Saved:
    """Read what `write_tensors` wrote; `files` are the folder's, if they are open.

    Raises:
        UserError: the file cannot be read, is damaged, or is another kind of file.
    """
    from safetensors.torch import load

    files = files or ListedFiles(path.parent)
    content = files.read(path.name)
    try:
        header_size = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + header_size])["__metadata__"]
        return Saved(load(content), dict(json.loads(metadata[_VALUES])), files.sha256(path.name))
    except Exception as error:  # a file of another kind can raise anything
        reason = " ".join(str(error).split())
        raise UserError(
            f"{path}: not a file that `seq2seq train` wrote ({reason}); name another run"
        ) from None
