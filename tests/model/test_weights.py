"""Files of tensors."""

import pytest
import torch
from safetensors.torch import save

from seq2seq_attn.config import ModelConfig, load_config, packaged_config_names
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_listed
from seq2seq_attn.model.build import build_model, model_without_weights
from seq2seq_attn.model.weights import read_tensors, write_tensors

VALUES = {
    "update": 7,
    "bleu": 1.5,
    "perplexity": float("inf"),
    "text": "ß",
    "list": [0.1 + 0.2, None, 1e-300],
}
TENSORS = {"a": torch.ones(2)}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    write_tensors(path, TENSORS, VALUES)
    return path


def test_tied_parameters_and_every_type_come_back(tmp_path):
    tied = torch.arange(10.0).view(2, 5)
    tensors = {
        "first": tied,
        "second": tied,
        "transposed": tied.T,
        "empty": torch.ones(0),
        "number": torch.ones(()),
    }
    for name in "bool uint8 int8 int16 float16 bfloat16 int32 float32 float64 int64".split():
        tensors[name] = torch.ones(3, dtype=getattr(torch, name))
    write_tensors(tmp_path / "a", tensors, VALUES)
    saved = read_tensors(tmp_path / "a")
    assert saved.values == VALUES
    assert saved.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert saved.tensors[name].dtype == tensor.dtype
        assert torch.equal(saved.tensors[name], tensor)


def test_equal_tensors_and_values_give_equal_files(tmp_path):
    tensors = {"b": torch.zeros(3), "a": torch.ones(2)}
    write_tensors(tmp_path / "a", tensors, VALUES)
    write_tensors(tmp_path / "b", tensors, VALUES)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_values_that_are_not_finite_never_replace_a_file(path):
    before = path.read_bytes()
    for value in (float("nan"), float("inf")):
        with pytest.raises(UserError, match=r"model\.safetensors"):
            write_tensors(path, {"weight": torch.tensor([0.0, value])}, {})
    assert path.read_bytes() == before
    assert read_tensors(path).values == VALUES


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x" * 99,
        b"\xff" * 8,
        save(TENSORS),
        *(save(TENSORS, {"values": text}) for text in ("", "[1]", "5", "[" * 100_000)),
    ],
)
def test_another_file_is_refused_in_one_line(path, content):
    write_listed(path, content)
    with pytest.raises(UserError, match=r"model\.safetensors: ") as caught:
        read_tensors(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", packaged_config_names())
def test_the_tensors_of_a_model_without_weights_are_those_of_the_model(name):
    settings = ["model.hidden_size=64", "model.encoder.hidden_size=32", "model.embedding_size=24"]
    config = load_config([name], settings).model
    config.readout_size = 24
    sizes = {"num_source_ids": 13, "num_target_ids": 13}
    tensors = build_model(config, **sizes).state_dict()
    without_weights = model_without_weights(config, **sizes).state_dict()
    assert list(tensors) == list(without_weights)
    for key, tensor in without_weights.items():
        assert tensor.is_meta
        assert tensor.shape == tensors[key].shape


def test_drawing_is_left_out_for_models_without_weights_only():
    model_without_weights(ModelConfig(), num_source_ids=5, num_target_ids=5)
    config = ModelConfig(
        embedding_size=3,
        hidden_size=4,
        encoder={"hidden_size": 2},
    )
    model = build_model(config, num_source_ids=5, num_target_ids=5)
    assert all(
        bool(parameter.any()) for name, parameter in model.named_parameters() if "weight" in name
    )


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_values_that_are_not_finite_are_not_read(tmp_path, value):
    path = tmp_path / "model.safetensors"
    tensors = {"good": torch.ones(2), "bad": torch.tensor([0.0, value])}
    write_listed(path, save(tensors, {"values": "{}"}))
    with pytest.raises(UserError, match="bad"):
        read_tensors(path)
