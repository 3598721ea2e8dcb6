"""Runs on the hub: what is pushed is loaded again and translates the same; what is no intact run is
refused."""

import base64
import hashlib
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from seq2seq_attn import load
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.errors import UserError
from seq2seq_attn.export.hub import make_card, push_run
from seq2seq_attn.files import read_json, write_json, write_listed
from seq2seq_attn.run import Run
from tests.processes import output_of
from tests.toy_run import SOURCE, make_toy_run, toy_config

NAME = "ann/captions"
COMMIT = "1" * 40
MEASURE = {
    "name": "bleu",
    "signature": "nrefs:1|case:mixed",
    "runs": [
        {"run": "other", "score": 1.0, "low": 0.0, "high": 2.0},
        {"run": "run", "score": 94.83, "low": 94.2, "high": 95.5},
    ],
}
REPORT = {"runs": [], "sets": [{"name": "test", "num_pairs": 1000, "measures": [MEASURE]}]}


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as its library speaks to for one repository of models."""

    files: dict[str, bytes]
    requests: list[str]

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append(self.path)
        if self.path.startswith(f"/api/models/{NAME}/preupload/"):
            files = []
            for file in json.loads(body)["files"]:
                files.append({**file, "uploadMode": "regular", "shouldIgnore": False})
            self.answer({"files": files})
        elif self.path.startswith(f"/api/models/{NAME}/commit/"):
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            address = f"/{NAME}/commit/{COMMIT}"
            self.answer({"success": True, "commitUrl": address, "commitOid": COMMIT})
        elif self.path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif self.path == "/api/repos/create":
            self.answer({"url": f"http://{self.headers['Host']}/{NAME}"})
        else:
            self.send_error(404)

    def do_GET(self):
        path = self.path.partition("?")[0]
        file = path.removeprefix(f"/{NAME}/resolve/{COMMIT}/")
        if path == f"/api/models/{NAME}/revision/main":
            self.answer({"id": NAME, "sha": COMMIT})
        elif path == f"/api/models/{NAME}/tree/{COMMIT}":
            entries = []
            for name, content in self.files.items():
                size = len(content)
                entries.append({"type": "file", "path": name, "size": size, "oid": oid(content)})
            self.answer(entries)
        elif file in self.files:
            self.answer(self.files[file])
        else:
            self.send_error(404)

    do_HEAD = do_GET

    def answer(self, value):
        is_file = isinstance(value, bytes)
        content = value if is_file else json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        kind = "octet-stream" if is_file else "json"
        self.send_header("Content-Type", f"application/{kind}")
        self.send_header("ETag", f'"{oid(content)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format, *arguments):
        """Says nothing."""


def oid(content):
    return hashlib.sha1(content).hexdigest()


@pytest.fixture
def served(monkeypatch, tmp_path):
    """A stand-in for the hub on this machine, with an empty repository, which the library asks
    instead of the hub."""
    from huggingface_hub import constants

    handler = type("Handler", (Hub,), {"files": {}, "requests": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    environment = {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_TOKEN": "hf_none",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(
        constants.ENDPOINT, environment["HF_ENDPOINT"]
    )
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", template
    )  # the library has read the environment
    monkeypatch.setattr(constants, "ENDPOINT", environment["HF_ENDPOINT"])
    monkeypatch.setattr(constants, "HF_HUB_CACHE", environment["HF_HUB_CACHE"])
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def run(tmp_path):
    run = make_toy_run(tmp_path / "run", toy_config(corpus="captions"))
    update = run.load_best().values["update"]
    scored = {"name": "run", "model": {"update": update}}
    write_json(run.path / "report.json", REPORT | {"runs": [scored]})
    (run.path / "notes.txt").write_text("private")
    write_listed(run.path / "sets/test.source", b"a sentence of the test set\n")
    return run


def test_a_run_that_was_pushed_translates_the_same_elsewhere(served, run, capsys, monkeypatch):
    monkeypatch.chdir(run.path)
    assert run_command(["push", ".", NAME]) == 0
    assert b"\n# run\n" in served.files["README.md"]
    assert capsys.readouterr().out.endswith(f"/{NAME}\n")
    assert {"README.md", "manifest.json", "model.safetensors"} <= served.files.keys()
    assert not {"notes.txt", "report.json"} & served.files.keys()
    assert not any(b"sentence of the test set" in content for content in served.files.values())
    expected = [translation.text for translation in load(run.path, "cpu").translate(SOURCE)]
    options = f"-m seq2seq_attn translate --run hf:{NAME} --device cpu".split()
    command = [sys.executable, *options, *SOURCE]
    assert output_of(command).splitlines() == expected
    [first] = load(f"hf:{NAME}@{COMMIT}", "cpu").translate(SOURCE[:1])
    assert first.text == expected[0]


def test_nothing_is_downloaded_but_the_files_of_a_run(served, run):
    push_run(run, NAME)
    served.files["model.pickle"] = b"not downloaded"
    downloaded = {path.name for path in Run.open(f"hf:{NAME}").path.iterdir()}
    assert downloaded == served.files.keys() - {"README.md", "model.pickle"}


def test_the_card_tells_scores_with_signature_seed_data_and_license(run):
    card = make_card(run, NAME)
    _, head, text = card.split("---\n", 2)
    metadata = yaml.safe_load(head)
    assert metadata["library_name"] == "seq2seq-attn"
    assert metadata["pipeline_tag"] == "translation"
    assert metadata["language"] == ["de", "en"]
    assert metadata["license"] == "mit"
    [result] = metadata["model-index"][0]["results"]
    assert result["dataset"] == {"type": "captions", "name": "test"}
    [metric] = result["metrics"]
    assert metric["type"] == "bleu"
    assert metric["value"] == 94.8
    assert metric["args"] == {"signature": "nrefs:1|case:mixed"}
    assert "| test | 1000 | bleu | 94.8 | 94.2 to 95.5 | nrefs:1\\|case:mixed |" in text
    for fact in ("seed 1", run.text_hashes["train"], f"hf:{NAME}"):
        assert fact in text


def test_the_card_names_another_license(run):
    assert "\nlicense: cc-by-4.0\n" in make_card(run, NAME, "cc-by-4.0")


def test_the_card_of_a_renamed_run_tells_its_scores(run):
    report = read_json(run.path / "report.json")
    report["sets"][0]["measures"] = [{**MEASURE, "runs": MEASURE["runs"][1:]}]
    write_json(run.path / "report.json", report)
    renamed = run.path.rename(run.path.with_name("renamed"))
    assert "94.8" in make_card(Run(renamed), NAME)


@pytest.mark.parametrize("model", [None, {"update": 9_999}])
def test_a_card_without_scores_says_how_to_get_them(run, caplog, model):
    (run.path / "report.json").unlink()
    if model:
        scored = {"name": "run", "model": model}
        write_json(run.path / "report.json", REPORT | {"runs": [scored]})
    assert "not evaluated" in make_card(run, NAME)
    assert "seq2seq evaluate" in caplog.text


@pytest.mark.parametrize("name", ["source.vocab", "manifest.json"])
def test_a_damaged_download_is_refused(served, run, name):
    push_run(run, NAME)
    served.files[name] = served.files[name].replace(b"e", b"x", 1)
    with pytest.raises(UserError, match=re.escape(name)):
        load(f"hf:{NAME}", "cpu")


def test_a_downloaded_run_may_not_name_another(served, run):
    config = run.config
    config.search.scorers = {"fusion": {"run": "runs/private"}}
    run.save_config(config)
    push_run(run, NAME)
    with pytest.raises(UserError, match=r"search\.scorers"):
        Run.open(f"hf:{NAME}")


@pytest.mark.parametrize("name", ["hf:ann/none", "hf:../..", "hf:", "hf:ann/captions@none"])
@pytest.mark.usefixtures("served")
def test_what_the_hub_lacks_is_named_in_one_line(name, capsys):
    assert run_command(["translate", "--run", name, "x"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {name}: ")


def test_an_unfinished_run_is_not_pushed(served, run):
    (run.path / "finished.json").unlink()
    with pytest.raises(UserError, match="not finished"):
        push_run(run, NAME)
    assert served.requests == []
