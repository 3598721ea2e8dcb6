"""A prepared corpus knows its own content; a damaged one is prepared again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from tests.train.conftest import toy_settings, write_toy_corpus


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    directory = tmp_path_factory.mktemp("toy")
    write_toy_corpus(directory)
    return load_config((), toy_settings(directory))


@pytest.fixture
def store(config: Config, tmp_path: Path) -> Path:
    return shutil.copytree(prepare_corpus(config).directory, tmp_path / "store")


def flip(path: Path, place: int, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


@pytest.mark.parametrize(
    "name", ["train.source.ids", "train.target.ids.offsets", "valid.source.txt", "source.vocab", "train.target.tokens"]
)
def test_a_flipped_bit_is_refused(store: Path, name: str) -> None:
    PreparedCorpus(store)
    flip(store / name, -3)
    with pytest.raises(UserError, match=rf"{name}: damaged .*prepare the data again"):
        PreparedCorpus(store)


@pytest.mark.parametrize("name", ["meta.json", "train.source.ids", "target.vocab"])
def test_a_pipe_in_place_of_a_file_is_refused(store: Path, name: str) -> None:
    (store / name).unlink()
    os.mkfifo(store / name)
    with pytest.raises(UserError, match=r"not a regular file|missing"):
        PreparedCorpus(store)
