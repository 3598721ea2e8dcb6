"""Public clients work unchanged, and each gets the translations of its own texts."""

import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import deepl
import pytest
from libretranslatepy import LibreTranslateAPI

from seq2seq_attn import load
from seq2seq_attn.serve import worker
from tests.serve.serving import TEXT, expected
from tests.toy_run import SOURCE, TARGET


def test_the_client_of_libretranslate_works_unchanged(client, runs):
    api = LibreTranslateAPI(client.url)
    assert [api.translate(TEXT, "de", "en")] == expected(runs[0], TEXT)
    assert [api.translate(TARGET[0], "en", "de")] == expected(runs[1], TARGET[0])
    assert api.languages() == [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]
    for language, text in (("de", SOURCE[2]), ("en", TARGET[2])):
        found = api.detect(text)
        assert found[0]["language"] == language
        assert sum(each["confidence"] for each in found) == pytest.approx(100)


def test_the_client_of_deepl_works_unchanged(client, runs):
    api = deepl.DeepLClient("any", server_url=client.url)
    texts = [TEXT, SOURCE[1]]
    results = api.translate_text(
        texts, source_lang="DE", target_lang="EN-US", formality="less", context="x"
    )
    assert [result.text for result in results] == expected(runs[0], *texts)
    assert [result.billed_characters for result in results] == [len(text) for text in texts]
    detected = api.translate_text(TEXT, target_lang="EN-GB")
    assert (detected.text, detected.detected_source_lang) == (results[0].text, "DE")


def test_parameters_come_as_json_form_or_query(client, runs):
    values = {"q": TEXT, "source": "de-AT", "target": "EN"}
    both = [*values.items(), ("q", SOURCE[1])]
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    answers = [
        client.ask("POST", "/translate", values),
        client.ask("POST", "/translate", urlencode(values).encode(), form),
        client.ask("POST", f"/translate?{urlencode(values)}"),
        client.ask("POST", "/translate", urlencode(both).encode(), form),
        client.ask("POST", "/translate", {**values, "q": [TEXT, SOURCE[1]], "source": "auto"}),
    ]
    first, second = expected(runs[0], TEXT, SOURCE[1])
    translated = [json.loads(text)["translatedText"] for _, text in answers]
    assert translated == [first, first, first, [first, second], [first, second]]
    assert json.loads(answers[-1][1])["detectedLanguage"]["language"] == "de"


def test_clients_at_once_get_their_own_translations_in_few_batches(app, client, runs):
    texts = [f"{a} {b}" for a in SOURCE for b in SOURCE]
    counts = dict(app.batcher.counts)
    with ThreadPoolExecutor(len(texts)) as pool:
        answers = list(pool.map(lambda text: client.translate(q=text), texts))
    assert answers == expected(runs[0], *texts)
    more = {name: value - counts.get(name, 0) for name, value in app.batcher.counts.items()}
    assert more["seq2seq_lines_total"] == len(texts)
    assert more["seq2seq_batches_total"] < len(texts)
    line = f"seq2seq_lines_total {app.batcher.counts['seq2seq_lines_total']:g}\n"
    assert line in client.ask("GET", "/metrics")[1]


def test_the_client_of_deepl_lists_languages_and_usage(app, client):
    api = deepl.DeepLClient("any", server_url=client.url)
    sources = [(language.code, language.name) for language in api.get_source_languages()]
    targets = [language.code for language in api.get_target_languages()]
    assert sources == [("DE", "German"), ("EN", "English")]
    assert targets == ["EN", "DE"]
    before = api.get_usage().character.count
    api.translate_text(TEXT, target_lang="EN-GB")
    assert api.get_usage().character.count == before + len(TEXT)


MULTIPART = "".join(
    f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
    for name, value in {"q": TEXT, "source": "de", "target": "en"}.items()
)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data; boundary=x", f"{MULTIPART}--x--\r\n"),
        ("application/x-www-form-urlencoded", json.dumps({"q": TEXT, "target": "en"})),
        ("text/plain", json.dumps({"q": TEXT, "source": None, "target": "en"})),
    ],
)
def test_forms_of_browsers_and_json_without_its_type_are_read(client, runs, kind, body):
    status, text = client.ask("POST", "/translate", body.encode(), {"Content-Type": kind})
    assert status == 200, text
    assert json.loads(text)["translatedText"] == expected(runs[0], TEXT)[0]


def test_alternatives_are_the_next_best_translations(client, runs):
    [nbest] = load(runs[0], "cpu").translate_n_best([TEXT], n_best=3)
    asked = {"q": TEXT, "source": "de", "target": "en", "alternatives": 2}
    answer = json.loads(client.ask("POST", "/translate", asked)[1])
    best, *others = dict.fromkeys(translation.text for translation in nbest)
    assert answer["translatedText"] == best
    assert answer["alternatives"] == others
    assert others
    more = json.loads(client.ask("POST", "/translate", {**asked, "alternatives": 99})[1])
    assert more["alternatives"] == others  # as many as the search keeps


def test_alternatives_of_several_lines_are_whole_texts(client):
    lines = f"{TEXT}\n\n{SOURCE[1]}"
    asked = {"q": [lines], "source": "de", "target": "en", "alternatives": 1}
    answer = json.loads(client.ask("POST", "/translate", asked)[1])
    [[alternative]] = answer["alternatives"]
    assert alternative.count("\n") == 2
    assert alternative != answer["translatedText"][0]


@pytest.mark.parametrize(
    ("text", "low", "high"), [(SOURCE[2], 90, 100), ("Qwrt zxcvb plok", 0, 10), ("", 0, 0)]
)
def test_a_language_is_detected_as_far_as_the_vocabulary_knows_the_text(client, text, low, high):
    answer = client.ask("POST", "/translate", {"q": text, "target": "en"})[1]
    detected = json.loads(answer)["detectedLanguage"]
    assert detected["language"] == "de"
    assert low <= detected["confidence"] <= high


def test_no_word_of_a_client_stays_in_memory(client):
    words = " ".join(f"geheim{number}" for number in range(40))
    lines = "\n".join(f"geheim{number}" for number in range(40))
    client.ask("POST", "/translate", {"q": words, "target": "en"})  # detects the language
    client.translate(q=lines)
    tokenizer = worker.TRANSLATORS["de", "en"].source_tokenizer
    assert tokenizer._known == {}
    assert not any("geheim" in text for text in tokenizer._nlp.vocab.strings)
