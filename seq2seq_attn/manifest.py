"""The manifest of a folder: `manifest.json` lists the SHA-256 of its files.

A run, its saved state and a prepared corpus have one each; no other checksum protects them.

    {"config.yaml": ["5a1f..."], "model.safetensors": ["90c2..."]}

A file is replaced in three steps: the manifest lists the new content beside the old, the new file is renamed into
place, and the manifest lists it alone. A process killed at any moment leaves a file that is listed. A file that the
manifest does not list is not checked.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import atomic_path, read_json, read_regular, sha256_of, write_json

MANIFEST = "manifest.json"
_ADVICE = "copy its folder again, or make it anew"


def write_listed(path: Path, content: bytes) -> None:
    """Write a file, and list it in the manifest of its folder. Raises UserError: the manifest is damaged."""
    listed = _read(path.parent, is_new=True)
    digest = hashlib.sha256(content).hexdigest()
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
        _write(path.parent, {**listed, path.name: [digest, *listed.get(path.name, [])]})
    _write(path.parent, {**listed, path.name: [digest]})


def list_files(folder: Path, paths: Iterable[Path]) -> None:
    """List complete files of a folder in its manifest. Raises UserError as `write_listed`."""
    listed = _read(folder, is_new=True)
    _write(folder, {**listed, **{path.name: [sha256_of(path)] for path in sorted(paths)}})


def remove_listed(path: Path) -> None:
    """Remove a file, if it exists, first from the manifest. Raises UserError as `write_listed`."""
    listed = _read(path.parent, is_new=True)
    if listed.pop(path.name, None):
        _write(path.parent, listed)
    path.unlink(missing_ok=True)


def read_listed(path: Path) -> tuple[bytes, str]:
    """The content of a file, and its SHA-256. The file is read once; another process may replace it meanwhile. Raises
    UserError: the file or the manifest cannot be read, or the file has changed since it was listed."""
    while True:
        listed = _read(path.parent)
        try:
            content = read_regular(path)
        except OSError as error:
            raise _unreadable(path, error) from None
        digest = hashlib.sha256(content).hexdigest()
        if digest in listed.get(path.name, [digest]):
            return content, digest
        if listed == _read(path.parent):  # else it was replaced between the two reads
            raise _damaged(path)


def write_listed_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object, as `write_listed`."""
    write_listed(path, f"{json.dumps(values, indent=2, ensure_ascii=False)}\n".encode())


def read_listed_json(path: Path) -> dict[str, Any]:
    """Read a JSON object. Raises UserError as `read_listed`, or the file holds something else."""
    content, _ = read_listed(path)
    try:
        return dict(json.loads(content))
    except Exception:  # of any bytes
        raise UserError(f"{path}: not a JSON object; {_ADVICE}") from None


def check_files(folder: Path, *, prefix: str = "") -> dict[str, str]:
    """Check the listed files whose names begin with `prefix`, and return their SHA-256 by name. Raises UserError as
    `read_listed`."""
    digests, listed = {}, _read(folder)
    for name, expected in listed.items():
        if name.startswith(prefix):
            try:
                digests[name] = sha256_of(folder / name)
            except OSError as error:
                raise _unreadable(folder / name, error) from None
            if digests[name] not in expected:
                if listed != _read(folder):  # it has just been replaced
                    return check_files(folder, prefix=prefix)
                raise _damaged(folder / name)
    return digests


def _read(folder: Path, *, is_new: bool = False) -> dict[str, list[str]]:
    """The lists of SHA-256 by name; `is_new`: empty if there is no manifest."""
    if is_new and not (folder / MANIFEST).exists():
        return {}
    listed = read_json(folder / MANIFEST)
    if not isinstance(listed, dict) or not all(isinstance(digests, list) for digests in listed.values()):
        raise UserError(f"{folder / MANIFEST}: damaged (not a list of files); {_ADVICE}")
    return listed


def _write(folder: Path, listed: Mapping[str, list[str]]) -> None:
    write_json(folder / MANIFEST, listed)
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)  # in case of a power failure, before the file that it lists is renamed
    finally:
        os.close(handle)


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: cannot be read ({error.strerror}); {_ADVICE}")


def _damaged(path: Path) -> UserError:
    return UserError(f"{path}: damaged: not the content that {MANIFEST} lists; {_ADVICE}")
