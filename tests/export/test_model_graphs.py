"""A variant from outside that fails while its model is exported."""

import sys
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
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


@pytest.mark.parametrize("output", ["page.html", "graphs.onnx"])
def test_an_error_of_a_variant_is_shown_with_its_line(tmp_path, monkeypatch, capsys, output):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    Path("branching.py").write_text(BRANCHING, "utf-8")
    import_variants("branching")
    settings = toy_config().model_dump()
    settings["model"]["attention"] = {"name": "branching"}
    make_toy_run(Path("mine"), config_from_dict(settings))
    assert run(["export", "mine", "-o", output, "--import", "branching"]) == 2
    [error] = capsys.readouterr().err.splitlines()
    assert "branching.py:6: " in error
    sys.modules.pop("branching")
