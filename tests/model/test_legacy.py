"""Models of earlier versions: their tensors under today's names."""

import pytest
import torch

from seq2seq_attn.config import ModelConfig, load_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.legacy import current_names

SHAPES = {
    "encoder.embedding.weight": (9, 3),
    "encoder.layers.0.recurrent_weight_DPH": (2, 15, 5),
    "encoder.layers.0.recurrent_bias_DP": (2, 15),
    "encoder.layers.0.input_projections.0.weight": (15, 3),
    "encoder.layers.0.input_projections.0.bias": (15,),
    "encoder.layers.0.input_projections.1.weight": (15, 3),
    "encoder.layers.0.input_projections.1.bias": (15,),
    "decoder.context_weight_PM": (21, 10),
    "decoder.recurrent_weight_PH": (21, 7),
    "decoder.recurrent_bias_P": (21,),
    "decoder.attention.score_weight_A": (7,),
    "decoder.attention.query_projection.weight": (7, 7),
    "decoder.attention.key_projection.weight": (7, 10),
    "decoder.attention.key_projection.bias": (7,),
    "decoder.embedding.weight": (11, 3),
    "decoder.bridge.weight": (7, 10),
    "decoder.bridge.bias": (7,),
    "decoder.embedding_projection.weight": (21, 3),
    "decoder.embedding_projection.bias": (21,),
    "decoder.readout.weight": (3, 20),
    "decoder.readout.bias": (3,),
    "decoder.output.weight": (11, 3),
    "decoder.output.bias": (11,),
}
"""of an additive model of version 0.1, with a bidirectional encoder"""


def test_every_tensor_finds_its_place():
    config = ModelConfig(embedding_size=3, hidden_size=7, readout_size=3, encoder={"hidden_size": 5})
    model = build_model(config, num_source_ids=9, num_target_ids=11)
    renamed = current_names({name: torch.randn(shape) for name, shape in SHAPES.items()})
    expected = model.state_dict()
    assert {name: tensor.shape for name, tensor in renamed.items()} == {n: t.shape for n, t in expected.items()}
    model.load_state_dict(renamed)


def test_directions_keep_their_own_weights():
    both = torch.randn(2, 15, 5)
    found = current_names({"encoder.layers.3.recurrent_weight_DPH": both})
    assert sorted(found) == [f"encoder.layers.3.{direction}.recurrent_weight_PH" for direction in (0, 1)]
    torch.testing.assert_close(found["encoder.layers.3.1.recurrent_weight_PH"], both[1])


def test_layers_of_the_encoder_that_reads_from_the_end():
    found = current_names({"encoder.recurrent_bias_LP": torch.arange(6.0).view(2, 3)})
    assert found["encoder.layers.1.recurrent_bias_P"].tolist() == [3.0, 4.0, 5.0]


def test_todays_names_stay():
    tensors = {"output.projection.bias": torch.zeros(3), "decoder.cell.input_bias_P": torch.zeros(3)}
    assert current_names(tensors) == tensors


@pytest.mark.parametrize(("dropout", "rate"), [({"encoder": 0.1}, 0.1), ({}, 0.3)])
def test_the_fixed_vector_arm_had_another_name_and_the_encoders_dropout(dropout, rate):
    former = {"name": "none", "options": {"forward_size": 0}}
    config = ModelConfig.model_validate({"attention": former, "dropout": dropout})
    assert (config.attention.name, config.attention.options) == ("fixed", {"dropout": rate})


def test_runs_of_the_fixed_vector_under_its_former_name_are_those_of_today():
    today, former = load_config(["quickstart-fixed"]), load_config(["quickstart", "attention/none"])
    assert former.model.attention == today.model.attention


@pytest.mark.parametrize("setting", ["model.dropout=3", "model.attention.options=3"])
def test_a_wrong_value_beside_the_former_name_is_told(setting):
    with pytest.raises(UsageError, match=setting.split("=")[0]):
        load_config(["quickstart"], ["model.attention.name=none", setting])
