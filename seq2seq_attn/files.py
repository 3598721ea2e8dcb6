"""Files: atomic writes, hashes, the data files of the package, and manifests.

The manifest of a folder, `manifest.json`, lists the SHA-256 of its files. A run, its saved state
and a prepared corpus have one manifest each. No other checksum protects these files.

    {"config.yaml": ["5a1f..."], "model.safetensors": ["90c2..."]}

A file is replaced in three steps. The manifest lists the hash of the new content beside the old
hash. The new file is renamed into place. The manifest lists the new hash alone. So a process that
is killed at any moment leaves a file whose content is listed. A file that the manifest does not
list is not checked.
"""

import errno
import glob
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

from pydantic_core import to_jsonable_python

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.leftovers import locking, naming, remove_leftovers, temporary_name

ContentT = TypeVar("ContentT")
Read = Callable[[Path], bytes]
"""returns the bytes of a file"""
JsonObject = dict[str, Any]
"""plain values by name, which can be written as a JSON object"""
MANIFEST = "manifest.json"
_ADVICE = "copy its folder again, or make it anew"

STDOUT = Path("standard output")
"""name of the standard output in error messages"""
_PACKAGE_DIR = Path(__file__).parent


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Write a file atomically: readers see the old file or the new file, never an incomplete file.

    Yield a temporary path next to `path`. If the block succeeds, the temporary file is synced and
    renamed to `path`. If the block fails, it is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, glob.escape(path.name[:50]))
    temporary = temporary_name(path)
    # The system removes the bits of the umask from this mode.
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        with naming(path), locking(descriptor):
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def link_target(path: Path) -> Path:
    """Return the file that an output path leads to. A symbolic link is followed, so that a write
    replaces the target and keeps the link. A link to a device or a pipe is returned unchanged,
    because the target of `/dev/stdout` may have no path."""
    is_device = path.exists() and not path.is_file()
    return Path(os.path.realpath(path)) if path.is_symlink() and not is_device else path


@contextmanager
def named_path(path: Path) -> Iterator[Path]:
    """Write an output file that a user named. A device or pipe is written directly. Any other file
    is written atomically, and a symbolic link to it is kept. A file that is replaced keeps its
    mode."""
    if path.exists() and not path.is_file():
        yield path
        return
    target = link_target(path)
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    with atomic_path(target) as temporary:
        if mode is not None:
            temporary.chmod(mode | 0o600)  # set before writing: the file may be private
        yield temporary
        if mode is not None:
            temporary.chmod(mode)


def check_writable(path: Path) -> None:
    """Check that a file, or an existing device or pipe, can be written, before the work begins. A
    missing folder is not created, because its name may be a typo. Raises UserError: the file cannot
    be written."""
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
    """Return a value that identifies a file. It is equal for all names and links of a regular file.
    For a path that does not exist, it is the resolved path. For any other path, such as a device,
    it is the path itself, because a terminal may be both input and output."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return Path(os.path.realpath(path))
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else path


def check_outputs(outputs: Mapping[str, Path], inputs: Iterable[Path]) -> None:
    """Check the output files that a user named, before the work begins. `outputs` maps each option
    to its path.

    Raises:
        UsageError: two outputs go to the same file, or an output goes to an input file.
        UserError: a file cannot be written.
    """
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


def list_names(names: str | Path | Iterable[str | Path]) -> list[str]:
    """Return the names of one or several files as a list."""
    return [str(names)] if isinstance(names, str | Path) else list(map(str, names))


def write_text(path: Path, text: str, *, is_named: bool = False) -> None:
    """Write UTF-8 text atomically, without changing its line ends. With `is_named`, write it as
    `named_path` does."""
    with (named_path if is_named else atomic_path)(path) as target:
        target.write_bytes(text.encode("utf-8"))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines atomically. Each line ends with a line feed."""
    write_text(path, "".join(f"{line}\n" for line in lines))


def finite(value: Any) -> Any:
    """Return a value for JSON in which None replaces numbers that are not finite, at any depth."""
    return to_jsonable_python(value, inf_nan_mode="null")


def write_json(path: Path, value: Any, *, is_named: bool = False) -> None:
    """Write a value as indented JSON. `is_named` has the same meaning as in `write_text`."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n", is_named=is_named)


def read_json(path: Path, read: Read | None = None) -> Any:
    """Read a JSON file. `read` returns the bytes of the file; the default is `read_regular`. Raises
    UserError: the file is missing or is not JSON."""
    try:
        return json.loads((read or read_regular)(path).decode("utf-8"))
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except Exception as error:  # the file may hold any bytes
        raise UserError(f"{path}: not a readable JSON file ({error})") from None


def sha256_of_values(values: Any) -> str:
    """Return the SHA-256 of values as JSON. It does not depend on the order of keys."""
    return _digest(json.dumps(values, sort_keys=True).encode())


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading bytes. Pipes and devices are rejected, because reading them
    might never end. Raises OSError: the file cannot be read, or is not a regular file."""
    stream = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return stream


def read_regular(path: Path) -> bytes:
    """Return the bytes of a regular file. Raises OSError as `open_regular`."""
    with open_regular(path) as stream:
        return stream.read()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of the bytes of a regular file, in hexadecimal. Raises OSError as
    `open_regular`."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def packaged(relative: str) -> Path:
    """Return the path of a data file or folder of the package (`configs/...`, `data/captions`), in
    an installed wheel or in a source checkout. Raises UserError: the installation lacks the
    file."""
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
    """Add files of a folder to its manifest. The files must be complete. Raises UserError as
    `write_listed`."""
    listed = _read(folder, is_new=True)
    for path in sorted(paths):
        listed[path.name] = [sha256_of(path)]
    _write(folder, listed)


def remove_listed(path: Path) -> None:
    """Remove a file, if it exists, and its entry in the manifest. The entry is removed first.
    Raises UserError as `write_listed`."""
    listed = _read(path.parent, is_new=True)
    if listed.pop(path.name, None):
        _write(path.parent, listed)
    path.unlink(missing_ok=True)


class ListedFiles:
    """Reads the files of a folder that has a manifest. The manifest is read once. Each file is
    checked against it when the file is read."""

    def __init__(self, folder: Path, within: Path | None = None) -> None:
        """Store the paths; no file is read yet. Symbolic links in `folder` must not lead out of
        `within`, which is `folder` itself by default."""
        self.folder = folder
        self._within = within or folder
        self._sha256: dict[str, str] = {}

    @cached_property
    def listed(self) -> dict[str, list[str]]:
        """The manifest: for each file name, a list of SHA-256. Raises UserError: the manifest
        cannot be read."""
        self._check_link(MANIFEST)
        return _read(self.folder)

    @cached_property
    def _roots(self) -> list[Path]:
        """The folders in which the targets of links may lie."""
        folder = self._within.resolve()
        if folder.parent.name == "snapshots":  # in the cache of the hub, files link to blobs
            return [folder, folder.parents[1] / "blobs"]
        return [folder]

    def read(self, name: str) -> bytes:
        """Return the content of a file. Another process may replace the file during the call.
        Raises UserError: the file or the manifest cannot be read, the content is not the listed
        content, or the file is a link that leads out of the folder."""
        return self._verify(name, read_regular, _digest)

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of a file. The file is hashed at the first call, unless it has been
        read. Raises UserError as `read`."""
        if name not in self._sha256:
            self._verify(name, sha256_of, str)
        return self._sha256[name]

    def _verify(
        self, name: str, read: Callable[[Path], ContentT], digest: Callable[[ContentT], str]
    ) -> ContentT:
        """Read a file with `read` and check the SHA-256 that `digest` computes from the result.
        Return the result. Raises UserError as `read`."""
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
            if listed == self.listed:  # if not, the file was replaced meanwhile
                raise UserError(
                    f"{path}: damaged: not the content that {MANIFEST} lists; {_ADVICE}"
                )

    def _check_link(self, name: str) -> Path:
        """Return the path of a file. Raises UserError: a link leads out of the folder."""
        path = self.folder / name
        real = path.resolve()
        if not any(real.is_relative_to(root) for root in self._roots):
            raise UserError(
                f"{path}: a link leads out of {self._within}; replace it by the file itself"
            )
        return path

    def read_json(self, name: str) -> JsonObject:
        """Return the JSON object in a file. Raises UserError as `read`, or the file does not hold a
        JSON object."""
        content = self.read(name)
        values: Any = None
        with suppress(Exception):  # the file may hold any bytes
            values = json.loads(content)
        if not isinstance(values, dict):
            raise UserError(f"{self.folder / name}: not a JSON object; {_ADVICE}")
        return values


def write_listed_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object and list the file in the manifest of its folder, as `write_listed`."""
    write_listed(path, f"{json.dumps(values, indent=2, ensure_ascii=False)}\n".encode())


def check_files(folder: Path, *, prefix: str = "") -> dict[str, str]:
    """Check the listed files whose names begin with `prefix`, and return their SHA-256 by name.
    Raises UserError as `ListedFiles.read`."""
    files = ListedFiles(folder)
    return {name: files.sha256(name) for name in files.listed if name.startswith(prefix)}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(folder: Path, *, is_new: bool = False) -> dict[str, list[str]]:
    """Return the manifest of a folder: for each file name, a list of SHA-256. With `is_new`, the
    manifest will be written: it must not be a link, and may be missing."""
    path = folder / MANIFEST
    if is_new and path.is_symlink():
        raise UserError(f"{path}: a link to {path.readlink()}; replace it by its target")
    if is_new and not path.exists():
        return {}
    listed = read_json(path)
    if isinstance(listed, dict) and "\0" not in "".join(listed):
        if all(isinstance(hashes, list) for hashes in listed.values()):
            return listed
    raise UserError(f"{path}: damaged (not a list of files); {_ADVICE}")


def _write(folder: Path, listed: Mapping[str, list[str]]) -> None:
    write_json(folder / MANIFEST, listed)
    handle = os.open(folder, os.O_RDONLY)
    try:
        # The manifest must be on the disk before a file that it lists is renamed (power failure).
        os.fsync(handle)
    finally:
        os.close(handle)
