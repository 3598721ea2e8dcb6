"""Write and read tensors: a safetensors file with JSON values in its header. The file is listed in
the manifest of its folder."""

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
"""the only entry of the header's metadata: safetensors writes several entries in random order, and
equal models should give equal files"""


class Saved(NamedTuple):
    """The content of a file that `write_tensors` wrote."""

    tensors: dict[str, Tensor]
    """tensors by name, on the CPU"""
    values: dict[str, Any]
    sha256: str
    """SHA-256 of the whole file"""


def write_tensors(path: Path, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Write tensors and JSON values to a file, atomically. Equal arguments give equal bytes. While
    the file is written, memory holds its content twice: 2 x 121 MiB for a saved state of
    `multi30k`.

    Raises:
        UserError: a tensor has values that are not finite; the previous file is kept.
    """
    from safetensors.torch import save

    not_finite = _find_not_finite(tensors)
    if not_finite:
        raise UserError(
            f"{path}: not saved: values of {not_finite} are not finite; lower the learning rate"
        )
    separate = {}
    storages: set[int] = set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        storage = tensor.untyped_storage().data_ptr()
        if storage in storages:  # safetensors does not accept tied parameters
            tensor = tensor.clone()
        storages.add(storage)
        separate[name] = tensor
    write_listed(path, save(separate, {_VALUES: json.dumps(values)}))


def read_tensors(path: Path, files: ListedFiles | None = None) -> Saved:
    """Read a file that `write_tensors` wrote. If the folder's `ListedFiles` is given as `files`,
    its manifest is not read again.

    Raises:
        UserError: the file cannot be read, is damaged, or is not a file of this format, or a tensor
            has values that are not finite.
    """
    from safetensors.torch import load

    files = files or ListedFiles(path.parent)
    content = files.read(path.name)
    try:
        header_size = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + header_size])["__metadata__"]
        values = dict(json.loads(metadata[_VALUES]))
        saved = Saved(load(content), values, files.sha256(path.name))
    except Exception as error:  # reading a file of another format can raise any exception
        reason = " ".join(str(error).split())
        raise UserError(
            f"{path}: not a file that `seq2seq train` wrote ({reason}); name another run"
        ) from None
    not_finite = _find_not_finite(saved.tensors)
    if not_finite:
        raise UserError(
            f"{path}: values of {not_finite} are not finite numbers; train again, or name another "
            "run"
        )
    return saved


def _find_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """Return the name of a tensor that has values which are not finite, or None."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            return name
    return None
