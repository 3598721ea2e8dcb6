"""The server: public clients work unchanged, each gets the translations of its own texts, and
nothing else stops it."""

import asyncio
import http.client
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlencode

import deepl
import pytest
from libretranslatepy import LibreTranslateAPI
from starlette.exceptions import HTTPException

from scripts.laboratory.serve import running
from seq2seq_attn import load
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.errors import UsageError
from seq2seq_attn.serve import App, batcher, group_runs, load_runs, make_server, worker
from seq2seq_attn.serve.batcher import Batcher
from seq2seq_attn.translate.translation import Translation
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config
from tests.waiting import wait_for

MAX_CHARACTERS = 500
TEXT = "Ein Hund liest ein Buch."


class Client:
    """The port of a server."""

    def __init__(self, port):
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, method, path, body=None, headers=None):
        """Status and text of an answer. The body is sent as it is if it is bytes, else as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        is_raw = body is None or isinstance(body, bytes)
        headers = {**({} if is_raw else {"Content-Type": "application/json"}), **(headers or {})}
        connection.request(method, path, body if is_raw else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def translate(self, **values):
        """The translations of `/translate`."""
        status, text = self.ask("POST", "/translate", {"source": "de", "target": "en", **values})
        assert status == 200, text
        return json.loads(text)["translatedText"]


@contextmanager
def serving(app):
    """A server in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = make_server(app)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield Client(listener.getsockname()[1])
    finally:  # or pytest would wait for the thread after a failure
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run from German to English, and one back."""
    folder = tmp_path_factory.mktemp("runs")
    back = toy_config(tokenizer="spacy", source_language="en", target_language="de")
    make_toy_run(folder / "de-en", toy_config(tokenizer="spacy"))
    make_toy_run(folder / "en-de", back, is_reverse=True)
    return [folder / "de-en", folder / "en-de"]


@pytest.fixture(scope="module")
def app(runs):
    return make_app(
        load_runs({("de", "en"): runs[0], ("en", "de"): runs[1]}, [], {"device": "cpu"})
    )


def make_app(batch_sizes, page=None, key=""):
    """An application that translates in a thread; the command has a process."""
    return App(ThreadPoolExecutor(1), batch_sizes, page or [], key, MAX_CHARACTERS)


@pytest.fixture(scope="module")
def client(app):
    with serving(app) as client:
        yield client


def expected(run, *texts):
    return [translation.text for translation in load(run, "cpu").translate(texts)]


def test_the_client_of_libretranslate_works_unchanged(client, runs):
    api = LibreTranslateAPI(client.url)
    assert [api.translate(TEXT, "de", "en")] == expected(runs[0], TEXT)
    assert [api.translate(TARGET[0], "en", "de")] == expected(runs[1], TARGET[0])
    assert [(each["code"], each["targets"]) for each in api.languages()] == [
        ("de", ["en"]),
        ("en", ["de"]),
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


def test_line_i_translates_line_i(client, runs):
    first, second = expected(runs[0], TEXT, SOURCE[1])
    assert client.translate(q=f"{TEXT}\n\n  \r\n{SOURCE[1]}\r") == f"{first}\n\n  \r\n{second}\r"
    assert client.translate(q=["", SOURCE[1], "\n", TEXT]) == ["", second, "\n", first]
    assert client.translate(q=[]) == []


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


GOOD = {"q": "Geheim", "source": "de", "target": "en"}


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


@pytest.mark.usefixtures("app")
def test_the_client_of_deepl_sends_its_key():
    with serving(make_app({("de", "en"): 16}, key="key:fx")) as client:
        api = deepl.DeepLClient("key:fx", server_url=client.url)
        assert api.translate_text(TEXT, target_lang="EN-US").text


class SlowTranslator:
    """Translates to upper case, each batch when it is released; fails on `!`."""

    def __init__(self):
        self.release = threading.Semaphore(0)
        self.batches = []

    def translate(self, texts, *, keep_attention):
        if any("!" in text for text in texts):
            raise RuntimeError("Geheim")
        self.batches.append(texts)
        self.release.acquire()
        return [Translation(text.upper(), [], 0.0, 0.0, [], None, True, None) for text in texts]


@pytest.fixture
def slow(monkeypatch):
    """The translator from French to Italian."""
    translator = SlowTranslator()
    monkeypatch.setitem(worker.TRANSLATORS, ("fr", "it"), translator)
    yield translator
    translator.release.release(99)  # after a failure, its thread would wait


PAIR = ("fr", "it")


def make_batcher():
    return Batcher(ThreadPoolExecutor(1), {PAIR: 3})


def test_a_batch_is_the_oldest_line_and_those_of_similar_length_that_arrived_meanwhile(slow):
    async def ask():
        batcher = make_batcher()
        tasks = []
        for text in ("a", "bbbb", "c", "dd", "eeeee", "fff"):
            tasks.append(asyncio.create_task(batcher.translate(PAIR, [text])))
            await asyncio.sleep(0)
        slow.release.release(3)
        return await asyncio.gather(*tasks)

    assert asyncio.run(ask()) == [["A"], ["BBBB"], ["C"], ["DD"], ["EEEEE"], ["FFF"]]
    assert slow.batches == [["a"], ["bbbb", "eeeee", "fff"], ["c", "dd"]]


def test_a_text_that_fails_harms_no_other(slow):
    slow.release.release(9)

    async def ask():
        batcher = make_batcher()
        return await asyncio.gather(
            *(batcher.translate(PAIR, [text]) for text in ("a", "b", "!", "d")),
            return_exceptions=True,
        )

    first, second, failed, last = asyncio.run(ask())
    assert (first, second, last) == (["A"], ["B"], ["D"])
    assert isinstance(failed, HTTPException)


def test_too_much_that_waits_is_refused(slow, monkeypatch):
    monkeypatch.setattr(batcher, "MAX_WAITING", 60)

    async def ask():
        batcher = make_batcher()
        tasks = [asyncio.create_task(batcher.translate(PAIR, ["a" * 100]))]
        while not slow.batches:  # until it is being translated
            await asyncio.sleep(0)
        tasks += [asyncio.create_task(batcher.translate(PAIR, [text])) for text in ("b", "c")]
        await asyncio.sleep(0)
        with pytest.raises(HTTPException, match="429"):
            await batcher.translate(PAIR, ["d" * 20])
        slow.release.release(3)
        assert (await asyncio.gather(*tasks))[1:] == [["B"], ["C"]]

    asyncio.run(ask())


def test_an_error_is_answered_and_its_message_is_not_logged(slow, caplog):
    with serving(make_app({PAIR: 3})) as client:
        assert (
            client.ask("POST", "/translate", {"q": "!", "source": "fr", "target": "it"})[0] == 500
        )
        assert client.ask("GET", "/health")[0] == 200
    assert "RuntimeError" in caplog.text
    assert "Geheim" not in caplog.text


def test_the_texts_of_a_client_that_hangs_up_are_dropped(slow, caplog):
    caplog.set_level(logging.INFO)
    app = make_app({PAIR: 3})
    body = json.dumps({"q": "dropped", "source": "fr", "target": "it"})
    with serving(app) as client, ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.translate, q="first", source="fr", target="it")
        wait_for(lambda: slow.batches)
        connection = http.client.HTTPConnection("127.0.0.1", client.port)
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        wait_for(lambda: app.batcher.waiting)
        connection.close()
        wait_for(lambda: " 499, " in caplog.text)
        slow.release.release(2)
        assert first.result() == "FIRST"
    assert slow.batches == [["first"]]


def test_sigterm_ends_the_command_after_accepted_requests(runs, tmp_path):
    log_path = tmp_path / "log"
    options = "-m seq2seq_attn serve --port 0 --device cpu".split()
    command = [sys.executable, *options, *map(str, runs)]
    with log_path.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, env=os.environ | {"SEQ2SEQ_KEY": "key"})
    try:
        wait_for(lambda: process.poll() is not None or "port" in log_path.read_text())
        [port] = re.findall(r"listening at 127\.0\.0\.1, port (\d+)", log_path.read_text())
        client = Client(int(port))
        text = "\n".join(SOURCE * 40)
        pool = ThreadPoolExecutor(3)
        answers = [pool.submit(client.translate, q=text, api_key="key") for _ in range(3)]
        assert client.ask("POST", "/translate", GOOD)[0] == 403
        key = {"Authorization": "Bearer key"}
        wait_for(lambda: "seq2seq_lines_total" in client.ask("GET", "/metrics", headers=key)[1])
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
        assert [answer.result().count("\n") for answer in answers] == [199] * 3
    finally:
        process.kill()
        process.wait()


def test_the_server_needs_its_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in [name for name in sys.modules if name.startswith("seq2seq_attn.serve")]:
        monkeypatch.delitem(sys.modules, name)
    assert run_command(["serve"]) == 1
    assert "pip install 'seq2seq-attn[serve]'" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["vectors", "none"])
def test_a_run_that_reads_no_text_is_not_served(tmp_path, source):
    run = make_toy_run(tmp_path / "run")
    config = run.config
    config.data.source_languages = [source]
    run.save_config(config)
    with pytest.raises(UsageError, match=source):
        group_runs([run])


def test_a_taken_port_is_named(runs, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run_command(["serve", str(runs[0]), "--port", str(taken.getsockname()[1])]) == 1
    assert "in use" in capsys.readouterr().err


@pytest.mark.slow
def test_the_server_ends_if_the_process_that_translates_dies(runs, tmp_path):
    with running(runs[0], tmp_path) as server:
        times = server.cpu_ms()
        del times[str(server.process.pid)]
        os.kill(int(times.most_common(1)[0][0]), signal.SIGKILL)  # the busiest of its children
        assert Client(server.port).ask("POST", "/translate", GOOD)[0] == 500
        assert server.process.wait(timeout=60) == 128 + signal.SIGTERM
        assert "died" in server.log_path.read_text()


@pytest.mark.slow
def test_the_page_has_both_runs_or_says_why_not(runs, tmp_path):
    with serving(make_app({}, [str(run) for run in runs[:1]])) as client:
        first, again = client.ask("GET", "/"), client.ask("GET", "/")
        assert first == again
        assert first[0] == 200
        assert "default-src 'none'" in first[1]
    with serving(make_app({}, [str(tmp_path / "none")])) as client:
        status, text = client.ask("GET", "/")
        assert status == 404
        assert "none" in text
