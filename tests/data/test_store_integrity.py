"""A prepared corpus knows its own content; a damaged one is prepared again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import IdStore, PreparedCorpus
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


def make_old(store: Path) -> None:
    """As versions without checksums wrote it."""
    meta = json.loads((store / "meta.json").read_text())
    del meta["sha256"], meta["hashes"]
    (store / "meta.json").write_text(json.dumps(meta))


def flip(path: Path, place: int, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


@pytest.mark.parametrize(
    "name", ["train.source.ids.npy", "train.target.offsets.npy", "valid.source.txt", "source.vocab"]
)
def test_a_flipped_bit_is_refused(store: Path, name: str) -> None:
    PreparedCorpus(store)
    flip(store / name, -3)
    with pytest.raises(UserError, match=rf"{name}: damaged .*prepare the data again"):
        PreparedCorpus(store)


def test_damage_to_the_notes_is_refused(store: Path) -> None:
    text = (store / "meta.json").read_text()
    (store / "meta.json").write_text(text.replace('"source_language": "de"', '"source_language": "dx"'))
    with pytest.raises(UserError, match=r"meta.json: damaged .*; prepare the data again"):
        PreparedCorpus(store)


def test_a_damaged_store_is_prepared_again_with_a_notice(config: Config) -> None:
    path = prepare_corpus(config).directory / "train.source.ids.npy"
    whole = path.read_bytes()
    flip(path, 200)
    notices: list[str] = []
    prepare_corpus(config, log=notices.append)
    assert path.read_bytes() == whole
    assert any("train.source.ids.npy: damaged" in notice and "preparing the data again" in notice for notice in notices)


def test_a_store_without_checksums_is_still_used(store: Path) -> None:
    expected = PreparedCorpus(store).pairs("train").source(5).tolist()
    make_old(store)
    assert PreparedCorpus(store).pairs("train").source(5).tolist() == expected


@pytest.mark.parametrize(
    ("name", "place", "bit", "message"),
    [
        ("train.source.offsets.npy", 128 + 8 * 5 + 2, 0, "does not fit the ids"),
        ("train.target.ids.npy", 128 + 4 * 7 + 2, 3, "holds ids that no token has"),
        ("train.target.ids.npy", 128 + 4 * 7 + 3, 7, "holds ids that no token has"),
        ("valid.source.ids.npy", 3, 1, "damaged"),
        ("valid.source.offsets.npy", 20, 0, "damaged"),
        ("test.target.txt", 2, 7, "damaged"),
    ],
)
def test_what_can_be_seen_without_checksums_is_refused(
    store: Path, name: str, place: int, bit: int, message: str
) -> None:
    make_old(store)
    flip(store / name, place, bit)
    with pytest.raises(UserError, match=rf"{name}: .*{message}.*; prepare the data again") as caught:
        PreparedCorpus(store)
    assert "\n" not in str(caught.value)


def test_sides_of_different_lengths_are_refused(store: Path) -> None:
    make_old(store)
    meta = json.loads((store / "meta.json").read_text())
    IdStore.write(store / "valid.source", np.array([4, 5]), np.array([1, 1]))
    meta["files"] = {name: (store / name).stat().st_size for name in meta["files"]}
    (store / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(UserError, match="valid has files of different lengths"):
        PreparedCorpus(store)


@pytest.mark.parametrize("name", ["meta.json", "train.source.ids.npy", "target.vocab"])
def test_a_pipe_in_place_of_a_file_is_refused(store: Path, name: str) -> None:
    (store / name).unlink()
    os.mkfifo(store / name)
    with pytest.raises(UserError, match=r"not a regular file|missing"):
        PreparedCorpus(store)
