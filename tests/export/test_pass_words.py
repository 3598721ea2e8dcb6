"""The example for ONNX passes unknown words as the package does. The model is a dictionary."""

import importlib.util
from functools import partial

import numpy as np
import pytest

from seq2seq_attn.text.known_words import PATTERN
from tests import ROOT
from tests.translate.test_unknown import PAIRS, WORDS, translate

PATH = ROOT / "examples" / "pass_words.py"
SPEC = importlib.util.spec_from_file_location("pass_words", PATH)
pass_words = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pass_words)
SIDE = {"tokens": list(PAIRS), "tokenizer": "spaces", "lowercase": False}
ABOUT = {"words": WORDS.as_json() | {"pattern": PATTERN}, "source": SIDE}


def translate_text(text, numbers_become=None, misplaced=None):
    source = text.split()
    tokens = [PAIRS.get(token, "<unk>") for token in source]
    if numbers_become:
        tokens = [numbers_become if token in ("three", "four") else token for token in tokens]
    if misplaced in tokens:
        tokens.reverse()
    return pass_words.Result(tokens, source, -float("Mann" in text), np.eye(len(source) + 1)[:-1])


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("Das Rad kostet drei Euro .", {}),
        ("Das Rad kostet 4711 Euro .", {}),
        ("Das Rad kostet 4711 Euro .", {"numbers_become": "15"}),
        ("Kowalski sieht ( Xu-7 ) .", {}),
        ("Kowalski sieht Rad", {"misplaced": "Paul"}),
        ("Das 47 kostet 47 Euro .", {}),
        ("DAS RAD kostet Euro .", {}),
        ("Kowalski 12345", {}),
        ("", {}),
    ],
)
def test_unknown_words_pass_as_in_the_package(line, options):
    """The model may write other words than the stand-ins, or elsewhere."""
    make = partial(translate_text, **options)
    passing = pass_words.Passing(ABOUT, str.split, make, " ".join)
    [expected] = translate([line], **options)
    assert passing.translate(line).replace(" ", "") == expected.text.replace(" ", "")


def test_a_stand_in_that_the_line_has_in_capitals_is_not_taken():
    words = ABOUT["words"] | {"numbers": WORDS.numbers[:1]}
    passing = pass_words.Passing(ABOUT | {"words": words}, str.split, translate_text, " ".join)
    assert passing.translate("DREI kostet 4711") == "three costs 4711"
