from pathlib import Path

import pytest

from seq2seq_attn.serve import load_runs, page, worker
from seq2seq_attn.serve.page import Page
from tests.serve.serving import SlowTranslator, make_app, serving
from tests.toy_run import make_toy_run, toy_config


@pytest.fixture(scope="module")
def runs(module_path):
    """A run from German to English, and one back."""
    back = toy_config(tokenizer="spacy", source_language="en", target_language="de")
    make_toy_run(module_path / "de-en", toy_config(tokenizer="spacy"))
    make_toy_run(module_path / "en-de", back, is_reverse=True)
    return [module_path / "de-en", module_path / "en-de"]


@pytest.fixture(scope="module")
def app(runs):
    return make_app(
        load_runs({("de", "en"): runs[0], ("en", "de"): runs[1]}, [], {"device": "cpu"})
    )


@pytest.fixture(scope="module")
def client(app):
    with serving(app) as client:
        yield client


@pytest.fixture
def slow(monkeypatch):
    """The translator from French to Italian."""
    translator = SlowTranslator()
    monkeypatch.setitem(worker.TRANSLATORS, ("fr", "it"), translator)
    yield translator
    translator.release.release(99)  # after a failure, its thread would wait


@pytest.fixture
def served_page(monkeypatch):
    """A page that is written at once."""

    async def export(arguments):
        Path(arguments[-1]).write_text("<html>page</html>")
        return ""

    monkeypatch.setattr(page, "_export", export)
    return Page(["run"], lambda: True)
