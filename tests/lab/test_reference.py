"""The generated reference pages have everything that the code has."""

import re

import pytest

from scripts.laboratory.harness.runs import flatten
from scripts.laboratory.pages.reference import documents
from seq2seq_attn.cli import COMMANDS
from seq2seq_attn.config import load_config
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.train.loss import OBJECTIVE

PAGES = {path.name: text for path, text in documents()}
AXES = ["encoder", "cell", "attention", "normalizer", "decoder", "output", OBJECTIVE]


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_every_variant_has_a_row_with_link_and_description(axis):
    for name in packaged_variants(axis):
        assert re.search(
            rf"^\| \[`{name}`\]\(\.\./.*/{name}\.py\) \| .*[a-z].* \|",
            PAGES["variants.md"],
            re.MULTILINE,
        )


def test_every_setting_has_a_row():
    shown = re.findall(r"^\| `([\w.]+)` \|", PAGES["configuration.md"], re.MULTILINE)
    assert {*flatten(load_config([], []).model_dump())} <= {*shown}
    assert len(shown) == len({*shown})


def test_every_command_has_its_help():
    assert re.findall(r"^## (\w+)$", PAGES["commands.md"], re.MULTILINE) == COMMANDS
    assert "--max-length-ratio" in PAGES["commands.md"]
