"""The generated reference pages have everything that the code has."""

import re

import pytest

import seq2seq_attn
from scripts.laboratory.harness.runs import flatten
from scripts.laboratory.pages.api import api_page
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
    assert {*flatten(load_config([], []).model_dump())} <= {*shown}
    assert len(shown) == len({*shown})


def test_every_command_has_its_help():
    assert re.findall(r"^## (\w+)$", PAGES["commands.md"], re.MULTILINE) == list(COMMANDS)
    assert "--max-length-ratio" in PAGES["commands.md"]


def test_every_public_name_has_a_section_in_the_api():
    sections = re.findall(r"^## (\w+)$", api_page(), re.MULTILINE)
    public = {name for name in seq2seq_attn.__all__ if not name.startswith("_")}
    assert public - {*sections} == set()


def test_sections_of_the_api_have_signature_arguments_and_errors():
    _, section = api_page().split("## Translator.translate\n")
    section, *_ = section.split("\n## ")
    assert "Translator.translate(texts, *, keep_attention=True, **options)" in section
    assert "\n- `keep_attention`: " in section
    assert "\n- Raises `UsageError`: " in section
