"""Glossaries of clients, through DeepL's public client."""

import deepl
import pytest

from seq2seq_attn import load
from seq2seq_attn.serve import glossaries
from tests.serve.serving import make_app, served, serving
from tests.toy_run import SOURCE


@pytest.fixture
def api(client):
    return deepl.DeepLClient("any", server_url=client.url)


def test_a_glossary_is_created_used_listed_and_deleted(api, runs, tmp_path):
    terms = {"Hund": "water", "Frau": "dog"}
    glossary = api.create_glossary("mine", "DE", "EN-US", terms)
    assert (glossary.name, glossary.entry_count, glossary.ready) == ("mine", 2, True)
    assert api.get_glossary(glossary.glossary_id).glossary_id == glossary.glossary_id
    assert [each.glossary_id for each in api.list_glossaries()] == [glossary.glossary_id]
    assert api.get_glossary_entries(glossary) == terms

    path = tmp_path / "terms.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in terms.items()))
    languages = {"source_lang": "DE", "target_lang": "EN-GB"}
    results = api.translate_text(SOURCE, glossary=glossary, **languages)
    expected = load(runs[0], "cpu").translate(SOURCE, glossary=path)
    assert [result.text for result in results] == [each.text for each in expected]
    plain = [result.text for result in api.translate_text(SOURCE, **languages)]
    changed = [one != other.text for one, other in zip(plain, expected, strict=True)]
    assert changed == [True, False, True, False, False]

    api.delete_glossary(glossary)
    assert api.list_glossaries() == []
    with pytest.raises(deepl.DeepLException):
        api.translate_text(SOURCE, glossary=glossary.glossary_id, **languages)


@pytest.mark.parametrize(
    ("languages", "terms", "message"),
    [
        (("DE", "FR"), {"Hund": "chien"}, "fr"),
        (("DE", "EN"), {"Hund": "日本"}, "line 1"),
        (("DE", "EN"), {"Hund": "x" * 20_000}, "413"),
    ],
)
def test_a_glossary_that_cannot_be_used_is_refused(api, languages, terms, message):
    with pytest.raises(deepl.DeepLException, match=message):
        api.create_glossary("mine", *languages, terms)


def test_a_glossary_for_other_languages_is_refused(api):
    glossary = api.create_glossary("mine", "EN", "DE", {"dog": "Wiese"})
    number = glossary.glossary_id
    with pytest.raises(deepl.DeepLException, match="en to de"):
        api.translate_text(SOURCE[0], source_lang="DE", target_lang="EN-US", glossary=number)
    api.delete_glossary(glossary)


def test_the_number_of_glossaries_is_limited(api, monkeypatch):
    monkeypatch.setattr(glossaries, "MAX_GLOSSARIES", 0)
    with pytest.raises(deepl.QuotaExceededException):
        api.create_glossary("mine", "DE", "EN", {"Hund": "dog"})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v2/glossaries"),
        ("GET", "/v2/glossaries"),
        ("GET", "/v2/glossaries/x"),
        ("GET", "/v2/glossaries/x/entries"),
        ("DELETE", "/v2/glossaries/x"),
    ],
)
def test_glossaries_need_the_key_and_an_id_that_exists(client, method, path):
    with serving(make_app(served(("de", "en")), key="secret")) as closed:
        assert closed.ask(method, path)[0] == 403
    if path.endswith(("x", "entries")):
        assert client.ask(method, path)[0] == 404
