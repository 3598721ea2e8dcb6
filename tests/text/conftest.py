"""Files of parallel text in an empty folder."""

import gzip
from pathlib import Path

import pytest

from seq2seq_attn.text.corpus import find_text

PAIRS = [("Hello.", "Bonjour."), ("", ""), ("A dog\u2028runs.", "Un chien court.")]


@pytest.fixture
def write(in_tmp_path):
    """Writes a file in the working directory, compressed if its name says so; returns its name."""

    def write_file(name, content):
        data = content.encode() if isinstance(content, str) else content
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return name

    return write_file


def as_lines(lines):
    return "".join(f"{line}\n" for line in lines)


def read(spec, source="en", target="fr", columns=""):
    return list(
        find_text(spec, source, target, columns=columns.split(",") if columns else ()).pairs()
    )
