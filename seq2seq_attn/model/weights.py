"""Model weights on disk: a safetensors file with a checksum of the whole file in its header.

All metadata is one JSON string with sorted keys, because safetensors writes several entries in random order and equal
models should give equal files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import atomic_path, open_regular

if TYPE_CHECKING:
    from torch import Tensor

FORMAT_VERSION = 2
"""Increased when older versions of the package cannot read the file."""
_FORMAT = "seq2seq-attn model"
_METADATA = "seq2seq-attn"
_FLOATING = ("F64", "F32", "F16", "BF16")
_NO_DIGEST = "0" * 64


@dataclass(frozen=True)
class WeightsInfo:
    """The metadata of a file of weights."""

    about: dict[str, str]
    """metadata of the model (update, score, ...), with `format` and `format_version`"""
    files: dict[str, str]
    """the SHA-256 of each file that belongs to the weights, by name"""


def write_weights(
    path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str], files: Mapping[str, str]
) -> None:
    """Write tensors and metadata, atomically. The same arguments give the same bytes."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    # tied parameters share memory, which the format rejects, so each name gets its own copy
    copies = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
    metadata = {"about": dict(about), "files": dict(files), "format": _FORMAT, "format_version": str(FORMAT_VERSION)}
    with atomic_path(path) as temporary:
        # the checksum is taken over the file with zeros in its place
        mode = temporary.stat().st_mode  # safetensors puts a file that only its owner may read in its place
        text = json.dumps({**metadata, "sha256": _NO_DIGEST}, sort_keys=True, separators=(",", ":"))
        try:
            save_file(copies, temporary, metadata={_METADATA: text})
        except SafetensorError as error:  # safetensors raises this for a full disk
            raise UserError(f"{path}: cannot be written ({error})") from None
        temporary.chmod(mode)
        with temporary.open("r+b") as stream:
            head, digest = _hash(stream, _NO_DIGEST)
            stream.seek(head.index(_sealed(_NO_DIGEST)))
            stream.write(_sealed(digest))


def read_info(path: Path) -> WeightsInfo:
    """The metadata of a file. The checksum of the whole file is verified.

    Raises:
        UserError: the file cannot be read, is damaged, of another version, or not a model.
    """
    with _opened(path) as file:
        metadata = file.metadata() or {}
        info = _info(path, metadata)
        _check_sum(path, json.loads(metadata[_METADATA]).get("sha256"))
        return info


def read_tensors(path: Path, expected: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
    """The tensors of a file, on the CPU.

    Args:
        expected: tensors with the names and shapes that the file must have, checked before memory is allocated.

    Raises:
        UserError: the file cannot be read, its values are not floating-point, or it is not the expected model.
    """
    with _opened(path) as file:
        names = list(file.keys())
        if expected is not None:
            _check_shapes(path, {name: file.get_slice(name).get_shape() for name in names}, expected)
        _check_types(path, {name: file.get_slice(name).get_dtype() for name in names})
        return {name: file.get_tensor(name) for name in names}


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        open_regular(path).close()
        with safe_open(path, framework="pt") as file:
            yield file
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (SafetensorError, ValueError) as error:
        raise UserError(f"{path}: not a safetensors file, or damaged ({error}); train or copy the run again") from None


def _info(path: Path, metadata: Mapping[str, str]) -> WeightsInfo:
    values = json.loads(metadata.get(_METADATA, "{}"))
    if not isinstance(values, dict) or values.get("format") != _FORMAT:
        raise UserError(
            f"{path}: a safetensors file, but not a model of seq2seq-attn; name a run that `seq2seq train` wrote"
        )
    version = values.get("format_version")
    if version != str(FORMAT_VERSION):
        raise UserError(
            f"{path}: model of format {version}, but this version of seq2seq-attn reads format {FORMAT_VERSION}; "
            "use the version that trained it or train again"
        )
    about, files = values.get("about"), values.get("files")
    if not (isinstance(about, dict) and isinstance(files, dict)):
        raise ValueError("its metadata is incomplete")
    about = {**about, "format": _FORMAT, "format_version": version}
    return WeightsInfo(about, files)


def _check_sum(path: Path, digest: object) -> None:
    with open_regular(path) as stream:
        _, actual = _hash(stream, str(digest))
    if actual != digest:
        raise ValueError("its contents do not match its SHA-256")


def _check_shapes(path: Path, actual: Mapping[str, list[int]], expected: Mapping[str, Tensor]) -> None:
    shapes = {name: list(tensor.shape) for name, tensor in expected.items()}
    different = [name for name in {**actual, **shapes} if actual.get(name) != shapes.get(name)]
    if different:
        name = different[0]
        in_file, by_config = (f"{shape_of[name]}" if name in shape_of else "absent" for shape_of in (actual, shapes))
        others = f", and {len(different) - 1} more" if len(different) > 1 else ""
        raise UserError(
            f"{path}: not the model of this run's config.yaml and vocabularies ({name}: {in_file} in the file, "
            f"{by_config} by the configuration{others}); copy the run again"
        )


def _check_types(path: Path, types: Mapping[str, str]) -> None:
    for name, dtype in types.items():
        if dtype not in _FLOATING:
            raise UserError(
                f"{path}: {name} holds {dtype} values; weights must be {', '.join(_FLOATING)}; "
                "train or copy the run again"
            )


def _sealed(digest: str) -> bytes:
    """The checksum's entry in the header: JSON inside a JSON string."""
    return f'\\"sha256\\":\\"{digest}\\"'.encode()


def _hash(stream: BinaryIO, digest: str) -> tuple[bytes, str]:
    """The header with its length, and the SHA-256 of the file with zeros in place of `digest`.

    Raises:
        ValueError: the header does not hold `digest` exactly once.
    """
    head = stream.read(8)
    head += stream.read(int.from_bytes(head, "little"))
    if head.count(_sealed(digest)) != 1:
        raise ValueError("its header holds no checksum")
    sha256 = hashlib.sha256(head.replace(_sealed(digest), _sealed(_NO_DIGEST)))
    while chunk := stream.read(1 << 20):
        sha256.update(chunk)
    return head, sha256.hexdigest()
