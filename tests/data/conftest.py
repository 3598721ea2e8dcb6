"""Corpora of a few pairs in files."""

from functools import partial

import pytest

from seq2seq_attn.config import config_from_dict


@pytest.fixture
def write_pairs(tmp_path):
    """Writes German-English pairs as two files and returns their prefix."""

    def write(name, pairs):
        for side, language in enumerate(("de", "en")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (tmp_path / f"{name}.{language}").write_text(text, encoding="utf-8", newline="\n")
        return str(tmp_path / name)

    return write


@pytest.fixture
def files_config(tmp_path):
    """Makes the configuration of a corpus in files from settings of its data."""

    def make(**data):
        return config_from_dict({"data": data})

    return partial(
        make, corpus="files", data_dir=str(tmp_path / "data"), tokenizer={"name": "spacy"}
    )
