"""What cannot be translated is refused, and logged without its text."""

import logging

import pytest

from tests.serve.serving import GOOD, MAX_CHARACTERS, make_app, serving


@pytest.mark.parametrize(
    ("path", "body", "status", "named"),
    [
        ("/translate", {**GOOD, "q": ["Geheim", 1]}, 400, "q"),
        ("/translate", {**GOOD, "target": "fr"}, 400, "de to en"),
        ("/translate", {**GOOD, "target": ["en"]}, 400, "de to en"),
        ("/translate", {**GOOD, "source": "fr"}, 400, "de to en"),
        ("/translate", {**GOOD, "format": "html"}, 400, "format"),
        ("/translate", {**GOOD, "q": "Geheim" * MAX_CHARACTERS}, 413, "q"),
        ("/translate", {**GOOD, "q": "Geheim\ud800"}, 400, "UTF-8"),
        ("/translate", ["Geheim"], 400, "JSON"),
        (
            "/v2/translate",
            {"text": ["Geheim"], "target_lang": "EN", "tag_handling": "xml"},
            400,
            "tag_handling",
        ),
        ("/v2/translate", {"q": "Geheim", "target_lang": "EN"}, 400, "text"),
        ("/detect", {}, 400, "q"),
        ("/Geheim", GOOD, 404, ""),
        ("/translate?q=Geheim&target=fr", b"", 400, "de to en"),
        ("/translate?q=Geheim%FF", b"", 400, "UTF-8"),
        ("/translate", b"Geheim" * 100_000, 413, ""),
    ],
)
def test_what_cannot_be_translated_is_refused_and_logged_without_text(
    client, caplog, path, body, status, named
):
    caplog.set_level(logging.INFO)
    answered, text = client.ask("POST", path, body)
    assert answered == status
    assert named in text
    assert "Geheim" not in text
    client.ask("GET", "/health")  # the line of the refused request is written before
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith(("seq2seq", "uvicorn"))
    ]
    assert [str(status) in line for line in lines if "health" not in line] == [True]
    assert "Geheim" not in caplog.text


@pytest.mark.parametrize(
    "body",
    [b"{", b"[" * 6_000, b'{"q": ' + b"9" * 5_000 + b"}", b"\xff\xfe", b'{"q": "a"' + b" " * 1_000],
)
def test_broken_json_is_refused(client, body):
    assert client.ask("POST", "/translate", body, {"Content-Type": "application/json"})[0] == 400


@pytest.mark.usefixtures("app")
def test_a_key_is_needed_for_all_but_health_and_languages():
    with serving(make_app({("de", "en"): 16}, key="Schlüssel")) as client:
        assert client.ask("POST", "/translate", {**GOOD, "api_key": "Schlüssel"})[0] == 200
        wrong = {"Authorization": "DeepL-Auth-Key falsch"}
        assert client.ask("POST", "/translate", GOOD, wrong)[0] == 403
        for path in ("/translate", "/detect"):
            assert client.ask("POST", path, GOOD)[0] == 403
        for path in ("/metrics", "/"):
            assert client.ask("GET", path)[0] == 403
        for path in ("/health", "/languages"):
            assert client.ask("GET", path)[0] == 200


@pytest.mark.usefixtures("app")
def test_a_missing_key_is_not_the_word_none():
    with serving(make_app({("de", "en"): 16}, key="None")) as client:
        assert client.ask("POST", "/translate", GOOD)[0] == 403
