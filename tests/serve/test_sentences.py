"""Clients decide whether lines are split into sentences, and get warnings about translations."""

import json

import pytest

from seq2seq_attn import load
from seq2seq_attn.data.line_facts import LineFacts
from seq2seq_attn.serve import load_runs
from tests.serve.serving import make_app, serving
from tests.toy_run import SOURCE, make_toy_run

FACTS = LineFacts(one_sentence=True, ratio=20.0)  # so that each translation is too short


@pytest.fixture(scope="module")
def single(module_path):
    """A client of a run that was trained on single sentences, and the run's translator."""
    run = make_toy_run(module_path / "single", facts=FACTS)
    loaded = load_runs({("de", "en"): run}, [], {"device": "cpu"})
    with serving(make_app(loaded)) as client:
        yield client, load(run.path, device="cpu")


@pytest.mark.parametrize(
    ("value", "option"),
    [(None, "auto"), ("1", "auto"), (1, "auto"), ("nonewlines", "auto"), ("0", "off"), (0, "off")],
)
@pytest.mark.parametrize(("path", "name"), [("/translate", "q"), ("/v2/translate", "text")])
def test_sentences_of_a_line_are_split_as_the_client_asks(single, path, name, value, option):
    client, translator = single
    text = "Ein Hund. Eine Frau."
    languages = {"source": "de", "target": "en", "source_lang": "DE", "target_lang": "EN"}
    body = {name: [text], **languages, "split_sentences": value}
    status, answer = client.ask("POST", path, body)
    assert status == 200, answer
    [expected] = translator.translate([text], split_sentences=option)
    answers = json.loads(answer)
    translated = answers.get("translatedText") or [each["text"] for each in answers["translations"]]
    assert translated == [expected.text]


def test_line_i_of_the_answer_is_that_of_line_i(single):
    client, translator = single
    lines = ["Ein\x0bHund\x0crennt\x1cüber\x85die\u2028Wiese", "", "\x0b", SOURCE[1]]
    translations = [each.text for each in translator.translate([lines[0], lines[3]])]
    expected = [translations[0], "", "\x0b", translations[1]]
    for end in ("\n", "\r", "\r\n"):
        assert client.translate(q=end.join(lines)).split(end) == expected
    assert client.translate(q=lines) == expected
    assert client.translate(q=[]) == []


def test_warnings_reach_the_client(single):
    client, translator = single
    texts = [SOURCE[0], "Ein Hund. Eine Frau."]
    warnings = [list(each.warnings) for each in translator.translate(texts)]
    assert [len(each) for each in warnings] == [1, 2]
    _, answer = client.ask("POST", "/translate", {"q": texts, "target": "en"})
    assert json.loads(answer)["warnings"] == warnings
    _, answer = client.ask("POST", "/translate", {"q": "\n".join(texts), "target": "en"})
    assert json.loads(answer)["warnings"] == [*warnings[0], *warnings[1]]
    _, answer = client.ask("POST", "/v2/translate", {"text": texts[:1], "target_lang": "EN"})
    assert json.loads(answer)["translations"][0]["warnings"] == warnings[0]
