"""The generated reference pages have everything that the code has."""

import re

import pytest

from scripts.laboratory.harness.runs import flatten
from scripts.laboratory.pages.reference import CITATION, documents, in_words, summary_and_paper
from seq2seq_attn.cli import COMMANDS
from seq2seq_attn.config import load_config
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.train.loss import OBJECTIVE

PAGES = {path.name: text for path, text in documents()}
AXES = ["encoder", "cell", "attention", "normalizer", "decoder", "output", OBJECTIVE]


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_every_variant_has_a_row_with_link_and_description(axis):
    for name in packaged_variants(axis):
        assert re.search(rf"^\| \[`{name}`\]\(\.\./.*/{name}\.py\) \| .*[a-z].* \|", PAGES["variants.md"], re.MULTILINE)


def test_options_of_variants_show_default_and_choices():
    assert "`window` = `predictive` (or `monotonic`)" in PAGES["variants.md"]


def test_a_citation_is_split_from_the_sentence():
    docstring = "Hard attention: one state\n(Xu et al. 2015, section 4.1). More. (See 3.)\n\n    formula"
    assert summary_and_paper(docstring) == ("Hard attention: one state", "Xu et al. 2015, section 4.1")
    assert not CITATION.search("values (or states) of 2 layers")


def test_every_setting_has_a_row():
    shown = re.findall(r"^\| `([\w.]+)` \|", PAGES["configuration.md"], re.MULTILINE)
    assert {*flatten(load_config([], []).model_dump())} <= {*shown}
    assert len(shown) == len({*shown})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "ge": 1, "le": 2**31 - 1}, "integer at least 1"),
        ({"type": "number", "gt": 0.0, "lt": 1.0}, "number above 0.0 and below 1.0"),
        ({"anyOf": [{"type": "string", "format": "path"}, {"type": "null"}]}, "path, or null"),
        ({"enum": ["a", "b"], "type": "string"}, "`a`, `b`"),
    ],
)
def test_values_in_words(schema, words):
    assert in_words(schema) == words


def test_every_command_has_its_help():
    assert re.findall(r"^## (\w+)$", PAGES["commands.md"], re.MULTILINE) == COMMANDS
    assert "--max-length-ratio" in PAGES["commands.md"]
