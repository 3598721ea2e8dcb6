"""Models with variants from outside are exported."""

import sys
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.config import config_from_dict
from seq2seq_attn.model.variants import import_variants
from tests.toy_run import make_toy_run, toy_config

BRANCHING = """
from seq2seq_attn.model.attention.additive import Additive

class Branching(Additive):
    def prepare(self, encoded, source):
        if encoded.values_BSM.sum() > 1e9:
            return None
        return super().prepare(encoded, source)
"""

HALVED = """
import torch
from seq2seq_attn.model.encoder.base import Encoded, Encoder, mean_value

class Halved(Encoder):
    keeps_positions = False

    def __init__(self, *, embedding):
        super().__init__(embedding.embedding_dim, embedding)

    def forward(self, source):
        embedded_BSE = self.embedding(source.inputs)
        mask_BP = source.mask_BS[:, ::2]
        values_BPM = embedded_BSE[:, ::2]
        num_positions = mask_BP.shape[1]
        tokens_S = torch.arange(source.mask_BS.shape[1])
        is_read_PS = tokens_S == 2 * torch.arange(num_positions).unsqueeze(1)
        spread_BPS = (is_read_PS & source.mask_BS.unsqueeze(1)).float()
        final_BM = mean_value(values_BPM, mask_BP)
        return Encoded(values_BPM, mask_BP, final_BM, embedded_BSE, spread_BPS)
"""


@pytest.fixture
def make_run(tmp_path, monkeypatch):
    """Write a run in the current folder that uses a variant from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})

    def make(axis, module, text):
        Path(f"{module}.py").write_text(text, "utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)
        import_variants(module)
        settings = toy_config().model_dump()
        settings["model"][axis] = {"name": module}
        return make_toy_run(Path("mine"), config_from_dict(settings))

    return make


@pytest.mark.parametrize("output", ["page.html", "graphs.onnx"])
def test_an_encoder_that_reads_every_second_token_is_exported(make_run, capsys, output):
    make_run("encoder", "halved", HALVED)
    assert run_command(["export", "mine", "-o", output, "--import", "halved"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("output", ["page.html", "graphs.onnx"])
def test_an_error_of_a_variant_is_shown_with_its_line(make_run, capsys, output):
    make_run("attention", "branching", BRANCHING)
    assert run_command(["export", "mine", "-o", output, "--import", "branching"]) == 2
    [error] = capsys.readouterr().err.splitlines()
    assert "branching.py:6: " in error
