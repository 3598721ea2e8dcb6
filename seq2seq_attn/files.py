"""Files: atomic writes, plain or gzipped text, hashes, and the data files that travel with the package."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from seq2seq_attn.errors import UserError

_PACKAGE_DIR = Path(__file__).parent


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success fsync it and rename it to `path`, on failure remove it.

    A reader therefore sees the old file or the new one, never half of one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o644)  # mkstemp makes 0600: a run directory is meant to be shared
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """See to it that a file can be written, or a device or pipe that is there, before the work for it begins.

    Raises:
        UserError: it cannot.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        return
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically, line ends as given."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        UserError: the file is missing or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a readable JSON file ({error})") from None


def open_text_bytes(path: Path) -> IO[bytes]:
    """Open a plain or gzipped (`.gz`) file for reading bytes."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def packaged(relative: str) -> Path:
    """The path of a data file (`configs/...`, `captions.yaml`) in an installed wheel or in a source checkout.

    Raises:
        UserError: the installation lacks the file.
    """
    in_checkout = {"captions.yaml": "data/captions.yaml"}.get(relative, relative)
    for candidate in (_PACKAGE_DIR / "_packaged" / relative, _PACKAGE_DIR.parent / in_checkout):
        if candidate.exists():
            return candidate
    raise UserError(f"{relative}: missing from this installation of seq2seq-attn; install it again")
