"""Files: atomic writes, hashes, the data files of the package, and manifests.

The manifest of a folder, `manifest.json`, lists the SHA-256 of its files. A run, its saved state
and a prepared corpus have one each; no other checksum protects them.

    {"config.yaml": ["5a1f..."], "model.safetensors": ["90c2..."]}

A file is replaced in three steps: the manifest lists the new content beside the old, the new file
is renamed into place, and the manifest lists it alone. A process killed at any moment leaves a file
that is listed. A file that the manifest does not list is not checked.
"""

import errno
import hashlib
import json
import math
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

from seq2seq_attn.errors import UsageError, UserError

ContentT = TypeVar("ContentT")
MANIFEST = "manifest.json"
_ADVICE = "copy its folder again, or make it anew"

STDOUT = Path("standard output")
"""its name in errors"""
_PACKAGE_DIR = Path(__file__).parent


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add a path to an OSError of the system that lacks one: a write to a full disk knows only the
    file descriptor."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:  # others have a message of their own
            error.filename = str(path)
        raise


def temporary_name(path: Path) -> Path:
    """A new name next to `path`, for what will replace it. `tempfile` would ignore the user's
    umask."""
    prefix = path.name[:50]  # names have at most 255 bytes
    return path.with_name(f".{prefix}.{secrets.token_hex(4)}.tmp")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Write a file atomically: readers see the old file or the new one, never a part of it.

    Yields a temporary path next to `path`. On success it is synced and renamed to `path`, on
    failure removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)  # less the umask
    os.close(descriptor)
    try:
        with naming(path):
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def link_target(path: Path) -> Path:
    """The file that an output named by a user goes to: a link is written through, and stays. A link
    to a device or a pipe is its own target, since what `/dev/stdout` links to may have no path."""
    is_device = path.exists() and not path.is_file()
    return Path(os.path.realpath(path)) if path.is_symlink() and not is_device else path


@contextmanager
def named_path(path: Path) -> Iterator[Path]:
    """Write a file that a user named: a device or pipe itself, any other file atomically, through a
    link. A file that is replaced keeps its mode."""
    if path.exists() and not path.is_file():
        yield path
        return
    target = link_target(path)
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    with atomic_path(target) as temporary:
        if mode is not None:
            temporary.chmod(mode | 0o600)  # from the start, as the file may be private
        yield temporary
        if mode is not None:
            temporary.chmod(mode)


def check_writable(path: Path) -> None:
    """Check that a file (or an existing device or pipe) can be written, before the work begins. A
    missing folder may be a typo, so none is created. Raises UserError: the file cannot be
    written."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return
    if not path.parent.exists():
        raise UserError(f"{path}: there is no folder {path.parent}; create it first")
    if path.is_dir():
        raise UserError(f"{path}: cannot be written ({os.strerror(errno.EISDIR)})")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None


def file_identity(path: Path) -> object:
    """The identity of a regular file, which all its names and links share. For anything else (a
    terminal may be both input and output) the path; for a file that does not exist, the resolved
    path."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return Path(os.path.realpath(path))
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else path


def check_outputs(outputs: Mapping[str, Path], inputs: Iterable[Path]) -> None:
    """Check, before the work begins, that each output that a user names, by option, can be written
    to a file of its own, which is not an input. Raises UsageError: two outputs go to one file, or
    an output to an input. Raises UserError: a file cannot be written."""
    input_files = {file_identity(path) for path in inputs}
    options_by_file: dict[object, str] = {}
    for option, path in outputs.items():
        is_stdout = path == Path("/dev/stdout")
        name = STDOUT if is_stdout else path
        file = file_identity(path)
        if file in options_by_file:
            raise UsageError(
                f"{options_by_file[file]} and {option}: both write to {name}; name two files"
            )
        if file in input_files:
            raise UsageError(f"{option}: {name} is an input file; choose another output")
        options_by_file[file] = option
        if not is_stdout:
            check_writable(link_target(path))


def write_text(path: Path, text: str, *, is_named: bool = False) -> None:
    """Write UTF-8 text, with line ends as given, atomically; `is_named`: as `named_path`."""
    with (named_path if is_named else atomic_path)(path) as target:
        target.write_bytes(text.encode("utf-8"))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, each with a line feed, as `write_text`."""
    write_text(path, "".join(f"{line}\n" for line in lines))


def finite(value: Any) -> Any:
    """A value for JSON: numbers that are not finite become None, at any depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def write_json(path: Path, value: Any, *, is_named: bool = False) -> None:
    """Write a value as indented JSON, as `write_text`."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n", is_named=is_named)


def read_json(path: Path, read: Callable[[Path], bytes] | None = None) -> Any:
    """Read a JSON file, with `read` in place of `read_regular`. Raises UserError: the file is
    missing or is not JSON."""
    try:
        return json.loads((read or read_regular)(path).decode("utf-8"))
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except Exception as error:  # of any bytes
        raise UserError(f"{path}: not a readable JSON file ({error})") from None


def sha256_of_values(values: Any) -> str:
    """The SHA-256 of values as JSON, whatever the order of their keys."""
    return _digest(json.dumps(values, sort_keys=True).encode())


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading bytes. Reading a pipe or device might never end. Raises
    OSError: it cannot be read, or is not a regular file."""
    stream = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return stream


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file. Raises OSError as `open_regular`."""
    with open_regular(path) as stream:
        return stream.read()


def sha256_of(path: Path) -> str:
    """The SHA-256 of a regular file's bytes, in hexadecimal. Raises OSError as `open_regular`."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def packaged(relative: str) -> Path:
    """The path of a data file or folder (`configs/...`, `data/captions`) in an installed wheel or
    in a source checkout. Raises UserError: the installation lacks the file."""
    for candidate in (_PACKAGE_DIR / "_packaged" / relative, _PACKAGE_DIR.parent / relative):
        if candidate.exists():
            return candidate
    raise UserError(f"{relative}: missing from this installation of seq2seq-attn; install it again")


def write_listed(path: Path, content: bytes) -> None:
    """Write a file and list it in the manifest of its folder. Raises UserError: the manifest is
    damaged."""
    listed = _read(path.parent, is_new=True)
    digest = _digest(content)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
        _write(path.parent, {**listed, path.name: [digest, *listed.get(path.name, [])]})
    _write(path.parent, {**listed, path.name: [digest]})


def list_files(folder: Path, paths: Iterable[Path]) -> None:
    """List complete files of a folder in its manifest. Raises UserError as `write_listed`."""
    listed = _read(folder, is_new=True)
    for path in sorted(paths):
        listed[path.name] = [sha256_of(path)]
    _write(folder, listed)


def remove_listed(path: Path) -> None:
    """Remove a file, if it exists, first from the manifest. Raises UserError as `write_listed`."""
    listed = _read(path.parent, is_new=True)
    if listed.pop(path.name, None):
        _write(path.parent, listed)
    path.unlink(missing_ok=True)


class ListedFiles:
    """The files of a folder with a manifest. The manifest is read once, and each file is checked
    against it when it is read."""

    def __init__(self, folder: Path, within: Path | None = None) -> None:
        """Take the folder, and the one that no link may leave, by default the same. Nothing is read
        yet."""
        self.folder = folder
        self._within = within or folder
        self._sha256: dict[str, str] = {}

    @cached_property
    def listed(self) -> dict[str, list[str]]:
        """The lists of SHA-256 by name. Raises UserError: the manifest cannot be read."""
        self._check_link(MANIFEST)
        return _read(self.folder)

    @cached_property
    def _roots(self) -> list[Path]:
        """The folders that files may lie in."""
        folder = self._within.resolve()
        if folder.parent.name == "snapshots":  # of the hub's cache, where they are links to blobs
            return [folder, folder.parents[1] / "blobs"]
        return [folder]

    def read(self, name: str) -> bytes:
        """The content of a file. Another process may replace the file meanwhile. Raises UserError:
        the file or the manifest cannot be read, the file has changed since it was listed, or it is
        a link that leads out of the folder."""
        return self._verify(name, read_regular, _digest)

    def sha256(self, name: str) -> str:
        """The SHA-256 of a file, which is hashed if it was not read yet. Raises UserError as
        `read`."""
        if name not in self._sha256:
            self._verify(name, sha256_of, str)
        return self._sha256[name]

    def _verify(
        self, name: str, read: Callable[[Path], ContentT], digest: Callable[[ContentT], str]
    ) -> ContentT:
        path = self._check_link(name)
        while True:
            listed = self.listed
            try:
                content = read(path)
            except OSError as error:
                raise UserError(f"{path}: cannot be read ({error.strerror}); {_ADVICE}") from None
            sha256 = digest(content)
            if sha256 in listed.get(name, [sha256]):
                self._sha256[name] = sha256
                return content
            self.listed = _read(self.folder)
            if listed == self.listed:  # else the file was replaced between the two reads
                raise UserError(
                    f"{path}: damaged: not the content that {MANIFEST} lists; {_ADVICE}"
                )

    def _check_link(self, name: str) -> Path:
        path = self.folder / name
        real = path.resolve()
        if not any(real.is_relative_to(root) for root in self._roots):
            raise UserError(
                f"{path}: a link leads out of {self._within}; replace it by the file itself"
            )
        return path

    def read_json(self, name: str) -> dict[str, Any]:
        """The JSON object in a file. Raises UserError as `read`, or the file holds something
        else."""
        content = self.read(name)
        try:
            return dict(json.loads(content))
        except Exception:  # of any bytes
            raise UserError(f"{self.folder / name}: not a JSON object; {_ADVICE}") from None


def write_listed_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object, as `write_listed`."""
    write_listed(path, f"{json.dumps(values, indent=2, ensure_ascii=False)}\n".encode())


def check_files(folder: Path, *, prefix: str = "") -> dict[str, str]:
    """Check the listed files whose names begin with `prefix`, and return their SHA-256 by name.
    Raises UserError as `ListedFiles.read`."""
    files = ListedFiles(folder)
    return {name: files.sha256(name) for name in files.listed if name.startswith(prefix)}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(folder: Path, *, is_new: bool = False) -> dict[str, list[str]]:
    """The lists of SHA-256 by name; `is_new`: empty if there is no manifest."""
    if is_new and not (folder / MANIFEST).exists():
        return {}
    listed = read_json(folder / MANIFEST)
    if isinstance(listed, dict) and all(isinstance(each, list) for each in listed.values()):
        return listed
    raise UserError(f"{folder / MANIFEST}: damaged (not a list of files); {_ADVICE}")


def _write(folder: Path, listed: Mapping[str, list[str]]) -> None:
    write_json(folder / MANIFEST, listed)
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)  # in case of a power failure, before the file that it lists is renamed
    finally:
        os.close(handle)
