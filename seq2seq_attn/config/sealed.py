"""A run's configuration file: all settings, with a checksum in the first line to detect damage."""

from __future__ import annotations

import hashlib
from pathlib import Path

from seq2seq_attn.config.load import config_from_dict, dump_config
from seq2seq_attn.config.run import Config
from seq2seq_attn.config.sources import read_mapping
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import read_regular, write_text

_BEGIN = "# sha256"


def write_sealed_config(path: Path, config: Config) -> None:
    """Write all settings with their checksum, atomically. The checksum comes first: a truncated file loses its end."""
    text = dump_config(config)
    write_text(path, f"{_seal(text.encode()).decode()}\n{text}")


def read_sealed_config(path: Path) -> Config:
    """Read what `write_sealed_config` wrote. A file without the checksum line is accepted if it `extends` no other.

    Raises:
        UserError: the file cannot be read, is damaged, or is of another version.
    """
    try:
        content = read_regular(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    if not content.strip():
        raise UserError(f"{path}: empty; it is damaged: copy the run again")
    first, _, rest = content.partition(b"\n")
    if first.startswith(_BEGIN.encode()) and first != _seal(rest):
        raise UserError(
            f"{path}: changed since training wrote it; copy the run again, or delete its first line if the change is "
            "yours"
        )
    try:
        return config_from_dict(read_mapping(path, path.name))
    except UsageError as error:
        raise UserError(f"{path}: not readable by this version of seq2seq-attn: {error}") from None


def _seal(content: bytes) -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    return f"{_BEGIN} {digest} of the lines below; delete this line if you change them".encode()
