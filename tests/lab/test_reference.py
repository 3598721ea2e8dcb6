"""The generated reference pages have everything that the code has."""

import re

import pytest

from scripts.laboratory.pages.mechanisms import SEARCHED, TRAINED, mechanisms_page
from scripts.laboratory.pages.reference import documents
from seq2seq_attn.cli import COMMANDS
from seq2seq_attn.config import load_config
from seq2seq_attn.model.variants import packaged_variants

PAGES = {path.name: text for path, text in documents()}
AXES = TRAINED | SEARCHED


@pytest.fixture(scope="module")
def mechanisms():
    return mechanisms_page()


@pytest.mark.parametrize("axis", AXES)
def test_every_variant_has_a_row_with_link_and_description(mechanisms, axis):
    for name in packaged_variants(AXES[axis]):
        row = rf"^\| \[`[\w/]+`\]\(\.\./[\w/]+/{name}\.py\) \| .*[a-z].* \|"
        assert re.search(row, mechanisms, re.MULTILINE), name


def test_every_setting_has_a_row():
    shown = re.findall(r"^\| `([\w.]+)` \|", PAGES["configuration.md"], re.MULTILINE)
    assert {*load_config([], []).flat()} <= {*shown}
    assert len(shown) == len({*shown})


def test_every_command_has_its_help():
    assert re.findall(r"^## (\w+)$", PAGES["commands.md"], re.MULTILINE) == list(COMMANDS)
    assert "--max-length-ratio" in PAGES["commands.md"]
