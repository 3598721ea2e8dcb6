"""The file of a model's weights knows its own content."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from seq2seq_attn.config import ModelConfig, load_config, packaged_config_names
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.build import build_model, model_without_weights
from seq2seq_attn.model.weights import read_info, read_tensors, write_weights

ABOUT = {"update": "7", "bleu": "1.5", "epoch": "2", "perplexity": "3.25"}
FILES = {"source.vocab": "ab" * 32, "target.vocab": "cd" * 32}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    write_weights(path, {"b": torch.arange(6.0).reshape(2, 3), "a": torch.zeros(5)}, ABOUT, FILES)
    return path


def test_the_umask_decides_who_may_read_it(path: Path) -> None:
    """Safetensors writes files that only their owner may read."""
    other = path.with_name("other")
    other.touch()
    assert path.stat().st_mode == other.stat().st_mode


def test_tensors_and_metadata_come_back(path: Path) -> None:
    info = read_info(path)
    assert info.about.items() >= ABOUT.items()
    assert info.files == FILES
    tensors = read_tensors(path)
    assert sorted(tensors) == ["a", "b"]
    assert torch.equal(tensors["b"], torch.arange(6.0).reshape(2, 3))


def test_equal_models_are_equal_files(path: Path, tmp_path: Path) -> None:
    tensors = {"a": torch.zeros(5), "b": torch.arange(6.0).reshape(2, 3)}
    other = tmp_path / "other.safetensors"
    for _ in range(8):  # entries of a hash map would be in another order about every second time
        write_weights(other, tensors, dict(reversed(ABOUT.items())), FILES)
        assert other.read_bytes() == path.read_bytes()


def test_every_flipped_bit_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for place in range(0, len(whole) * 8, 7):  # 7: every bit of a byte has its turn
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"model\.safetensors: ") as caught:
            read_info(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [[], {}, {"about": 5}, {"about": {}}, {"about": {}, "files": []}])
def test_metadata_of_another_shape_is_refused(tmp_path: Path, values: object) -> None:
    path = tmp_path / "model.safetensors"
    if isinstance(values, dict):
        values = {"format": "seq2seq-attn model", "format_version": "2", **values}
    save_file({"a": torch.ones(2)}, path, metadata={"seq2seq-attn": json.dumps(values)})
    with pytest.raises(UserError, match=r"incomplete|not a model of seq2seq-attn"):
        read_info(path)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_values_that_are_no_weights_are_refused(tmp_path: Path, dtype: torch.dtype) -> None:
    path = tmp_path / "model.safetensors"
    write_weights(path, {"a": torch.ones(2, dtype=dtype)}, ABOUT, FILES)
    with pytest.raises(UserError, match=r"a holds (I64|BOOL|U8) values; weights must be F64, F32, F16, BF16"):
        read_tensors(path)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"a": (5,), "b": (2, 4)}, r"\(b: \[2, 3\] in the file, \[2, 4\] by the configuration\)"),
        ({"a": (5,)}, r"\(b: \[2, 3\] in the file, absent by the configuration\)"),
        ({"a": (5,), "b": (2, 3), "c": ()}, r"\(c: absent in the file, \[\] by the configuration\)"),
        ({"a": (10**6, 10**9), "b": (10**9,)}, r"\(a: \[5\] in the file, .* by the configuration, and 1 more\)"),
    ],
)
def test_another_model_than_expected_is_refused(path: Path, expected: dict[str, tuple[int]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_tensors(path, {name: torch.empty(shape, device="meta") for name, shape in expected.items()})


@pytest.mark.parametrize("name", packaged_config_names())
def test_the_tensors_of_a_model_without_weights_are_those_of_the_model(name: str) -> None:
    config = load_config([name], ["model.hidden_size=64", "model.encoder.hidden_size=32", "model.embedding_size=24"])
    config.model.readout_size = 24 if config.model.tie_embeddings != "none" else 20
    sizes = {"num_source_ids": 13, "num_target_ids": 13}
    model = build_model(config.model, **sizes).state_dict()
    expected = model_without_weights(config.model, **sizes).state_dict()
    assert [(key, value.shape) for key, value in expected.items()] == [
        (key, value.shape) for key, value in model.items()
    ]
    assert all(value.is_meta for value in expected.values())


def test_a_model_without_weights_takes_neither_memory_nor_a_second_of_imports() -> None:
    code = (
        "import sys; from seq2seq_attn.config import ModelConfig; import seq2seq_attn.model.build as build\n"
        "before = len(sys.modules)\n"
        "config = ModelConfig(hidden_size=60_000, encoder={'hidden_size': 30_000})\n"
        "build.model_without_weights(config, num_source_ids=10**9, num_target_ids=10**9)\n"
        "assert len(sys.modules) - before < 50"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_drawing_is_left_out_for_models_without_weights_only() -> None:
    model_without_weights(ModelConfig(), num_source_ids=5, num_target_ids=5)
    config = ModelConfig(embedding_size=3, hidden_size=4, encoder={"hidden_size": 2})
    model = build_model(config, num_source_ids=5, num_target_ids=5)
    assert all(bool(parameter.any()) for name, parameter in model.named_parameters() if "weight" in name)
