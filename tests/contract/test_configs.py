"""Every variant has a config of its name, and every packaged config loads and builds."""

import pytest

from seq2seq_attn.config import load_config, packaged_config_names
from seq2seq_attn.files import packaged
from seq2seq_attn.model.build import ENCODER_SHORTHANDS, model_without_weights
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.train.check import check_config
from seq2seq_attn.train.loss import OBJECTIVE

NAMED_BY = {
    "attention": lambda model: [model.attention.name],
    "decoder": lambda model: [model.decoder.name],
    "output": lambda model: [model.output.name],
    "normalizer": lambda model: [model.attention.normalizer],
    "cell": lambda model: [model.encoder.cell, model.decoder.cell],
}


@pytest.mark.parametrize(
    ("axis", "name"), [(axis, name) for axis in NAMED_BY for name in packaged_variants(axis)]
)
def test_a_variant_has_its_config(axis, name):
    assert set(NAMED_BY[axis](load_config([f"{axis}/{name}"]).model)) == {name}


@pytest.mark.parametrize("name", packaged_variants(OBJECTIVE))
def test_an_objective_has_its_config(name):
    config = load_config([f"objective/{name}"])
    assert list(config.train.objectives) == [name]
    check_config(load_config(["quickstart", f"objective/{name}"]))


def test_every_encoder_has_a_config():
    named = {
        load_config([name]).model.encoder.name
        for name in packaged_config_names()
        if name.startswith("encoder/")
    }
    of_shorthands = {ENCODER_SHORTHANDS.get(name, (name,))[0] for name in named}
    assert of_shorthands == set(packaged_variants("encoder"))


@pytest.mark.parametrize("name", packaged_config_names())
def test_a_packaged_config_builds_a_model(name):
    config = load_config([name])
    size = 200 if config.data.vocab.joint else 100
    model = model_without_weights(config.model, num_source_ids=200, num_target_ids=size)
    assert sum(p.numel() for p in model.parameters()) > 0


@pytest.mark.parametrize(
    "name", [n for n in packaged_config_names() if "/" not in n and n != "base"]
)
def test_a_packaged_config_says_how_to_run_it(name):
    header = packaged(f"configs/{name}.yaml").read_text("utf-8").split("\n\n")[0]
    assert header.startswith("#")
    assert "#   seq2seq train" in header or " scripts/lab run " in header
