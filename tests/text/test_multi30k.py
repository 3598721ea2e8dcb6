"""Fetching Multi30k: from a server on this machine, from a folder, and all that can go wrong;
offline."""

import hashlib
import http.server
import threading
from types import SimpleNamespace

import pytest

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text import multi30k
from seq2seq_attn.text.multi30k import fetch, published_splits

NAMES = ("train.de.gz", "train.en.gz", "val.de.gz", "val.en.gz")
FILES = {name: name.encode() * 99 for name in NAMES}


@pytest.fixture(autouse=True)
def small_corpus(monkeypatch):
    monkeypatch.setattr(
        multi30k, "SHA256", {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
    )
    monkeypatch.setattr(multi30k, "SPLITS", {"train": "train", "valid": "val"})
    monkeypatch.setattr(multi30k, "_WAITS_S", (0.0, 0.0, 0.0))
    monkeypatch.delenv("SEQ2SEQ_MULTI30K_DIR", raising=False)


Handler = http.server.BaseHTTPRequestHandler


@pytest.fixture
def server(monkeypatch):
    """The names that were requested, and what the server does instead of answering the next
    requests."""
    state = SimpleNamespace(requests=[], misbehave=[])

    class Answer(Handler):
        def do_GET(self):
            name = self.path.rpartition("/")[2]
            state.requests.append(name)
            state.misbehave.pop(0)(self) if state.misbehave else send(self, FILES[name])

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(multi30k, "BASE_URL", f"http://127.0.0.1:{httpd.server_port}/raw")
        yield state
        httpd.shutdown()
        thread.join()


def send(handler, data, length=None):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data) if length is None else length))
    handler.end_headers()
    handler.wfile.write(data)


def hang_up(handler):
    handler.close_connection = True


def assert_complete(directory):
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == FILES


@pytest.mark.parametrize(
    "fault",
    [
        lambda handler: handler.send_error(503),
        hang_up,
        lambda handler: send(handler, b"some", length=99),
    ],
)
def test_a_passing_fault_is_tried_again_and_a_lasting_one_is_one_line(tmp_path, server, fault):
    server.misbehave = [fault] * 4
    with pytest.raises(UserError, match=r"/raw/train\.de\.gz") as caught:
        fetch(tmp_path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.rglob("*.gz")) == []
    server.misbehave = [fault] * 3
    assert_complete(fetch(tmp_path))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda handler: handler.send_error(404), "404"),
        (lambda handler: send(handler, b"<html>"), "SHA-256"),
    ],
)
def test_a_dead_link_and_a_wrong_checksum_are_not_tried_again(tmp_path, server, fault, message):
    server.misbehave = [fault]
    with pytest.raises(UserError, match=rf"train\.de\.gz: .*{message}"):
        fetch(tmp_path)
    assert len(server.requests) == 1
    assert list(tmp_path.rglob("*.gz")) == []


def test_a_half_made_folder_is_completed(tmp_path, server, caplog):
    directory = tmp_path / "multi30k"
    directory.mkdir()
    (directory / "train.de.gz").write_bytes(FILES["train.de.gz"][:50])
    (directory / "val.en.gz").write_bytes(FILES["val.en.gz"])
    for _ in range(2):  # each is fetched once
        assert fetch(tmp_path) == directory
        assert_complete(directory)
        assert sorted(server.requests) == ["train.de.gz", "train.en.gz", "val.de.gz"]
    assert "train.de.gz: damaged" in caplog.text


def test_a_source_folder_needs_no_network_and_is_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(multi30k, "BASE_URL", "http://127.0.0.1:1")
    folder = tmp_path / "published"
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    (folder / "val.en.gz").write_bytes(b"something else")
    for _ in ("another file", "none"):
        with pytest.raises(UserError, match=r"published/val\.en\.gz"):
            fetch(tmp_path / "data", folder)
        (folder / "val.en.gz").unlink(missing_ok=True)
    (folder / "val.en.gz").write_bytes(FILES["val.en.gz"])
    monkeypatch.setenv("SEQ2SEQ_MULTI30K_DIR", str(folder))
    assert_complete(fetch(tmp_path / "data"))


def test_languages(monkeypatch):
    monkeypatch.undo()
    assert list(published_splits("de", "en")) == list(multi30k.SPLITS)
    assert list(published_splits("en", "cs")) == ["train", "valid", "test_2016_flickr"]
    assert published_splits("fr", "de")["valid"] == ("val.fr.gz", "val.de.gz")
    several = published_splits("de", "fr", "cs", "en")
    assert several["valid"] == ("val.de.gz", "val.fr.gz", "val.cs.gz", "val.en.gz")
    assert list(several) == ["train", "valid", "test_2016_flickr"]
    for languages, name in ((("de", "es"), "'es'"), (("de", "de"), "'de'")):
        with pytest.raises(UsageError, match=name):
            published_splits(*languages)


def test_the_published_files_verify(multi30k_dir, tmp_path, monkeypatch):
    monkeypatch.undo()
    for name, digest in multi30k.SHA256.items():
        assert hashlib.sha256((multi30k_dir / name).read_bytes()).hexdigest() == digest
    directory = fetch(tmp_path, multi30k_dir, languages=("en", "cs"))
    assert len(list(directory.iterdir())) == 6
