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


@pytest.mark.parametrize("name", ["meta.json", "train.source.ids", "train.target.ids.offsets", "source.vocab"])
@pytest.mark.parametrize("damage", ["flip", "remove", "pipe"])
def test_damage_to_any_file_is_refused(store: Path, name: str, damage: str) -> None:
    PreparedCorpus(store)
    path = store / name
    content = bytearray(path.read_bytes())
    path.unlink()
    if damage == "flip":
        content[-3] ^= 1
        path.write_bytes(content)
    elif damage == "pipe":
        os.mkfifo(path)
    with pytest.raises(UserError, match=rf"{name}: (damaged|cannot be read)"):
        PreparedCorpus(store)
