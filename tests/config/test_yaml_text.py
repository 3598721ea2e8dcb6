"""Configuration files as strangers write them: twice the same key, alias bombs, deep nesting, trees of `extends`."""

import os
import time
from pathlib import Path

import pytest

from seq2seq_attn.config import load_config, packaged_config_names
from seq2seq_attn.errors import UsageError

MAX_CPU_S = 10.0
"""Not the minutes that a hostile file can cost; measuring coverage makes PyYAML's scanner three times as slow."""


def refusal(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "mine.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    began_at = time.process_time()
    with pytest.raises(UsageError) as caught:
        load_config([str(path)])
    message = str(caught.value)
    assert time.process_time() - began_at < MAX_CPU_S
    assert "\n" not in message
    known = ", ".join(name for name in packaged_config_names() if "/" not in name and name != "base")
    assert len(message.replace(str(path), "").replace(known, "")) < 350
    return message


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}\n" for i in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("seed: 1\ntrain: {}\nseed: 2\n", "line 3"),
        ("train:\n  batch: {size: 1, size: 2}\n", "line 2"),
        ("extends: 5\n", "extends=5"),
        ("extends: tutoral\n", "tutorial"),
        ("1: 2\n", "'1'"),
        ("model: {1: 2}\n", "'model.1'"),
        (BOMB + "seed: *a9\n", "10,000"),
        (MERGE_BOMB, "10,000"),
        ("a: &a [*a]\n", "20"),
        ("seed: " + "[" * 100_000, "20"),
        ("{a: " * 30 + "1" + "}" * 30, "20"),
        ("seed: !!int x\n", "YAML"),
        ("seed: !!python/object/apply:os.system [true]\n", "YAML"),
        ("seed: " + "9" * 6000, "YAML"),
        (b"name: \xff\n", "UTF-8"),
        (b"name: \0\n", "YAML"),
        ("# " + "x" * (1 << 20), "1 MiB"),
        ("extends: [" + "x" * 10_000 + "]\n", "xxx"),
        ("? [a, b]\n: 1\n", "YAML"),
    ],
)
def test_a_hostile_file_is_one_short_line(tmp_path: Path, text: str | bytes, name: str) -> None:
    assert name in refusal(tmp_path, text)


def test_plain_values_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    found = load_config(["quickstart"], ["seed=010", "name=2026-01-01", "data.source_language=no"])
    assert (found.seed, found.name, found.data.source_language) == (10, "2026-01-01", "no")
    with pytest.raises(UsageError, match=r"train\.max_epochs='1:30'"):
        load_config(["quickstart"], ["train.max_epochs=1:30"])
    assert load_config(["quickstart"], ["seed='12345678901234567'"]).seed == 12345678901234567
    settings = ["train.optimizer.learning_rate=1e-3", "train.max_updates=1_000", "model.dropout.embedding=.5"]
    train = load_config(["quickstart"], settings).train
    assert (train.optimizer.learning_rate, train.max_updates) == (0.001, 1000)


def test_a_tree_of_extends_reads_each_file_once(tmp_path: Path) -> None:
    for i in range(15):
        (tmp_path / f"c{i}.yaml").write_text(f"extends: [c{i + 1}.yaml, c{i + 1}.yaml]\n")
    (tmp_path / "c15.yaml").write_text("seed: 5\n")
    began_at = time.process_time()
    assert load_config([str(tmp_path / "c0.yaml")]).seed == 5
    assert time.process_time() - began_at < MAX_CPU_S


def test_a_long_chain_of_extends_is_refused(tmp_path: Path) -> None:
    for i in range(1200):
        (tmp_path / f"c{i}.yaml").write_text(f"extends: c{i + 1}.yaml\n")
    with pytest.raises(UsageError, match="more than 20"):
        load_config([str(tmp_path / "c0.yaml")])


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.yaml").mkdir()
    for name in ("pipe.yaml", "folder.yaml"):
        with pytest.raises(UsageError, match=name):
            load_config([str(tmp_path / name)])


def test_a_byte_order_mark_and_anchors_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("\ufeffmodel: {embedding_size: &size 7, hidden_size: *size}\n", encoding="utf-8")
    assert load_config([str(path)]).model.hidden_size == 7


def test_the_list_of_packaged_configurations_is_short() -> None:
    with pytest.raises(UsageError) as caught:
        load_config(["xyzzy"])
    message = str(caught.value)
    assert "quickstart" in message
    assert "attention/" in message
    assert "base" not in message
    assert "bottleneck/single" not in message
    assert len(message) < 450
