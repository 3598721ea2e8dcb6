"""A server in a thread, and a client of it."""

import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from seq2seq_attn import load
from seq2seq_attn.serve import App, make_server
from seq2seq_attn.serve.page import Page
from seq2seq_attn.serve.requests import Access
from seq2seq_attn.serve.worker import Limits
from seq2seq_attn.text.tokenizers.base import SpaceTokenizer
from seq2seq_attn.translate.translation import Translation

STABLE = json.loads((Path(__file__).parents[1] / "stable.json").read_text(encoding="utf-8"))["http"]
MAX_CHARACTERS = 500
TEXT = "Ein Hund liest ein Buch."
GOOD = {"q": "Geheim", "source": "de", "target": "en"}
PAIR = ("fr", "it")


class Client:
    """The port of a server."""

    def __init__(self, port):
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, method, path, body=None, headers=None):
        """Status and text of an answer."""
        answer = self.open(method, path, body, headers)
        return answer.status, answer.content.decode()

    def open(self, method, path, body=None, headers=None):
        """An answer, read. The body is sent as it is if it is bytes, else as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        is_raw = body is None or isinstance(body, bytes)
        headers = {**({} if is_raw else {"Content-Type": "application/json"}), **(headers or {})}
        connection.request(method, path, body if is_raw else json.dumps(body), headers)
        answer = connection.getresponse()
        answer.content = answer.read()
        connection.close()
        return answer

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


def make_app(served, page=None, **access):
    """An application that translates in a thread; the command has a process."""
    page = page or Page([], lambda: True)
    access = Access(max_characters=MAX_CHARACTERS, **access)
    return App(ThreadPoolExecutor(1), served, page, access)


def served(*pairs, batch_size=16, max_results=1):
    """What a process would have loaded for these language pairs."""
    return dict.fromkeys(pairs, Limits(batch_size, max_results))


def expected(run, *texts):
    return [translation.text for translation in load(run, "cpu").translate(texts)]


class SlowTranslator:
    """Translates to upper case, each batch when it is released; fails on `!`."""

    def __init__(self):
        self.release = threading.Semaphore(0)
        self.batches = []
        self.log_prob = 0.0
        self.source_tokenizer = SpaceTokenizer()

    def translate_lines(self, texts, *, keep_attention, n_best, split_sentences, glossary):
        if any("!" in text for text in texts):
            raise RuntimeError("Geheim")
        self.batches.append(texts)
        self.release.acquire()
        return [
            [Translation(text.upper(), [], 0.0, self.log_prob, [], None, True, None)]
            for text in texts
        ]
