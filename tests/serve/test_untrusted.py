"""No request makes the server open a file, whatever its texts name."""

import ctypes
import itertools
import json
import os
import sys
from contextlib import contextmanager
from urllib.parse import quote, urlencode

import numpy as np
import pytest

from scripts.laboratory.serve import running
from tests.serve.serving import Client

IN_OPEN = 0x20
FORMS = [
    "{}",
    " {}\n",
    "Ein Hund {} rennt.",
    "file://{}",
    "@{}",
    "{}:a",
    "-i {}",
    "--config={}",
    "$(cat {})",
    "!include {}",
    "../../../../..{}",
    "{0}\t{0}",
    "{}\0",
]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
MULTIPART = {"Content-Type": "multipart/form-data; boundary=x"}


@pytest.fixture
def baits(tmp_path):
    """Files, links and special files, which texts name."""
    folder = tmp_path / "baits"
    folder.mkdir()
    (folder / "text.txt").write_text("Ein Hund rennt.\n")
    (folder / "config.yaml").write_text("seed: 1\n")
    np.save(folder / "a.npy", np.ones((2, 3)))
    np.savez(folder / "a.npz", a=np.ones((2, 3)))
    (folder / "link").symlink_to(folder / "text.txt")
    (folder / "loop").symlink_to(folder / "loop")
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    return folder


@contextmanager
def watching(folder):
    """A function that returns whether a process has opened something in a folder (inotify)."""
    libc = ctypes.CDLL(None)
    descriptor = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(descriptor, os.fsencode(folder), IN_OPEN) >= 0

    def is_opened():
        try:
            return bool(os.read(descriptor, 1 << 16))
        except BlockingIOError:
            return False

    try:
        yield is_opened
    finally:
        os.close(descriptor)


def requests_with(texts):
    """A request of each kind in turn, with a text in all of its parameters."""
    for number, text in enumerate(texts):
        values = {"q": text, "text": [text], "target": "en", "target_lang": "EN"}
        named = dict.fromkeys(("source", "format", "api_key", "glossary_id"), text)
        head = "--x\r\nContent-Disposition: form-data; name="
        part = f'{head}"q"; filename="{text}"\r\n\r\n{text}'
        cue = f"1\r\n0:1 --> 0:2\r\n{text}"
        document = f'{head}"file"; filename="{text}.srt"\r\n\r\n{cue}\r\n{head}"target"\r\n\r\nen'
        choices = [
            ("POST", "/translate", json.dumps(values), {}),
            ("POST", "/translate", urlencode(values), FORM),
            ("POST", "/translate", json.dumps({**values, "source": "de", "alternatives": 2}), {}),
            ("POST", "/translate", json.dumps({**values, **named}), {}),
            ("POST", "/translate", f"{part}\r\n--x--\r\n", MULTIPART),
            ("POST", "/translate_file", f"{document}\r\n--x--\r\n", MULTIPART),
            ("GET", f"/download_file/{quote(text)}", "", {}),
            ("POST", "/v2/translate", json.dumps(values), {}),
            ("POST", "/detect", json.dumps(values), {}),
            ("GET", f"/{quote(text)}", "", {}),
            ("GET", f"/languages?{urlencode(named)}", "", {}),
        ]
        yield choices[number % len(choices)]


def assert_nothing_is_opened(client, folder, num_requests):
    paths = sorted(folder.iterdir())
    texts = [
        form.format(path) for form in FORMS for path in (*paths, "/dev/zero", "/proc/self/mem")
    ]
    with watching(folder) as is_opened:
        for method, path, body, headers in itertools.islice(
            requests_with(itertools.cycle(texts)), num_requests
        ):
            assert client.ask(method, path, body.encode(), headers)[0] < 500
        assert not is_opened()
        (folder / "text.txt").read_text()
        assert is_opened()  # so the watch works


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_no_text_is_opened_as_a_file(client, baits):
    assert_nothing_is_opened(client, baits, 250)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_no_text_of_ten_thousand_requests_is_opened_as_a_file(runs, baits):
    with running(runs[0]) as server:
        assert_nothing_is_opened(Client(server.port), baits, 10_000)
