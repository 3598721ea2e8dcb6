"""A prepared corpus knows its own content; a damaged one is prepared again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_checked_json
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


def test_a_store_of_an_earlier_format_is_prepared_again_under_its_name(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    """Its content hash stays, so that a run that was begun with it can be resumed."""
    caplog.set_level("INFO")
    prepared = prepare_corpus(config)
    meta_path = prepared.directory / "meta.json"
    meta = json.loads(meta_path.read_text())
    write_checked_json(meta_path, {**{key: meta[key] for key in meta if key != "sha256"}, "format": 2})
    (prepared.directory / "train.source.tokens").unlink()
    again = prepare_corpus(config)
    assert again.directory == prepared.directory
    assert {**again.meta, "sha256": ""} == {**meta, "sha256": ""}
    assert any("not a prepared corpus of format 3; preparing the data again" in notice for notice in caplog.messages)


@pytest.mark.parametrize("name", ["meta.json", "train.source.ids", "target.vocab"])
def test_a_pipe_in_place_of_a_file_is_refused(store: Path, name: str) -> None:
    (store / name).unlink()
    os.mkfifo(store / name)
    with pytest.raises(UserError, match=r"not a regular file|missing"):
        PreparedCorpus(store)
