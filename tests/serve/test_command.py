"""The command `seq2seq serve`: its start and its end."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts.laboratory.serve import running, wait_for_port
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.errors import UsageError
from seq2seq_attn.serve import group_runs, run_server
from tests.serve.serving import GOOD, Client, make_app, served, serving
from tests.toy_run import SOURCE, make_toy_run
from tests.waiting import wait_for


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
    assert "choose another --port" in capsys.readouterr().err


def children(process):
    """The processes that a process has started."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


def translator_process(process):
    """The process of a server that translates; others track resources or write the page."""
    for pid in children(process):
        if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    raise AssertionError("no process translates")


def test_the_command_fails_if_the_process_that_translates_dies(runs):
    with running(runs[0]) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            os.kill(translator_process(server.process), signal.SIGKILL)
            assert server.process.wait(timeout=30) == 1
            connection.settimeout(5)
            assert connection.recv(1) == b""


def test_the_page_is_begun_before_the_first_request(monkeypatch):
    worker = SimpleNamespace(sentinel=os.pipe()[0])
    monkeypatch.setattr("multiprocessing.active_children", lambda: [worker])
    began = []

    async def serve_page(sockets):
        began.append("requests")

    server = SimpleNamespace(serve=serve_page)
    monkeypatch.setattr("seq2seq_attn.serve.make_server", lambda app: server)
    page = SimpleNamespace(start=lambda: began.append("page"))
    asyncio.run(run_server(SimpleNamespace(page=page), None))
    assert began == ["page", "requests"]


def test_health_says_that_nothing_translates():
    app = make_app(served())
    app.is_broken = True
    with serving(app) as client:
        status, text = client.ask("GET", "/health")
    assert status == 503
    assert "died" in text


def test_sigterm_does_not_wait_for_a_text_longer_than_documented(runs, tmp_path):
    code = (
        "import seq2seq_attn.serve as s; s.DRAIN_TIMEOUT_S = 1; import seq2seq_attn.__main__ as m"
    )
    options = f"serve {runs[0]} --port 0 --device cpu".split()
    log_path = tmp_path / "log"
    with log_path.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", f"{code}; m.main()", *options], stderr=file
        )
    try:
        port = wait_for_port(process, log_path)
        stopped = translator_process(process)
        os.kill(stopped, signal.SIGSTOP)  # a text that takes for ever
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(Client(port).ask, "POST", "/translate", GOOD)
            wait_for(lambda: "seq2seq_lines_waiting 0" in Client(port).ask("GET", "/metrics")[1])
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 128 + signal.SIGTERM
            assert answer.exception() or answer.result()[0] == 500
        assert "Traceback" not in log_path.read_text()
        assert not Path(f"/proc/{stopped}").exists()
    finally:
        process.kill()
        process.wait()
