"""The addresses, parameters, answers and metrics of the server are those of `tests/stable.json`. A
change of one is a decision (docs/stability.md)."""

import json
import re
from dataclasses import replace

import pytest

from seq2seq_attn.serve import worker
from seq2seq_attn.serve.glossaries import NewGlossary
from seq2seq_attn.serve.requests import (
    DeepLDocument,
    DeepLTranslation,
    Detection,
    LibreDocument,
    LibreTranslation,
)
from tests.serve.serving import STABLE, TEXT

MODELS = {
    "/translate": LibreTranslation,
    "/translate_file": LibreDocument,
    "/v2/translate": DeepLTranslation,
    "/v2/document": DeepLDocument,
    "/v2/glossaries": NewGlossary,
    "/detect": Detection,
}
LANGUAGES = {"source_lang": "DE", "target_lang": "EN"}
GLOSSARY = {"name": "mine", "entries": "Hund\tdog", "entries_format": "tsv", **LANGUAGES}
DOCUMENT = f"0:1 --> 0:2\n{TEXT}\n\n0:2 --> 0:3\n{{ {TEXT}\n"
CALLS = {
    "POST /translate": {"q": TEXT, "target": "en", "alternatives": 1},
    "POST /translate, a list": {"q": [TEXT], "target": "en", "alternatives": 1},
    "POST /translate, refused": {"q": TEXT},
    "POST /translate_file": {"file": DOCUMENT, "file_name": "a.srt", "target": "en"},
    "POST /v2/translate": {"text": [TEXT], "target_lang": "EN"},
    "POST /v2/document": {"file": DOCUMENT, "file_name": "a.srt", "target_lang": "EN"},
    "POST /detect": {"q": TEXT},
    "POST /v2/glossaries": GLOSSARY,
    "GET /v2/glossaries": None,
    "GET /languages": None,
    "GET /frontend/settings": None,
    "GET /v2/languages": None,
    "GET /v2/usage": None,
    "GET /health": None,
}
"""bodies of requests by their names, in order"""


@pytest.fixture
def doubtful(app, monkeypatch):
    """Every translation has a warning and an unknown word."""
    translator = worker.TRANSLATORS["de", "en"]
    translate_lines = translator.translate_lines

    def translate_with_doubt(lines, **options):
        for translations in translate_lines(lines, **options):
            yield [replace(each, warnings=("short",), unknown=("Hund",)) for each in translations]

    monkeypatch.setattr(translator, "translate_lines", translate_with_doubt)


@pytest.mark.parametrize("path", MODELS)
def test_a_request_has_the_stable_parameters_and_defaults(path):
    schema = MODELS[path].model_json_schema()
    parameters = {}
    for name, described in schema["properties"].items():
        parameters[name] = "required" if name in schema["required"] else described["default"]
    assert parameters == STABLE["parameters"][path]


@pytest.mark.usefixtures("doubtful")
def test_answers_have_the_stable_fields(client):
    answers = {}
    for name, body in CALLS.items():
        method, path = name.partition(",")[0].split()
        answers[name] = sorted(fields("", json.loads(client.ask(method, path, body)[1])))
    assert answers == STABLE["answers"]


def test_the_metrics_are_the_stable_ones(client):
    client.ask("POST", "/translate", {"q": TEXT, "target": "en"})
    text = client.ask("GET", "/metrics")[1]
    names = {re.sub('"[^"]*"', '""', line.split()[0]) for line in text.splitlines()}
    assert sorted(names - {"#"}) == STABLE["metrics"]


def fields(path, value):
    """The fields of an answer with their types; `[]` stands for every element of a list."""
    if isinstance(value, dict):
        return {field for name, each in value.items() for field in fields(f"{path}.{name}", each)}
    if isinstance(value, list):
        return {field for each in value for field in fields(f"{path}[]", each)}
    return {f"{path}: {type(value).__name__}"}
