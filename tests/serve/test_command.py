"""The command `seq2seq serve`: its start and its end."""

import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from scripts.laboratory.serve import running
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.errors import UsageError
from seq2seq_attn.serve import group_runs
from tests.serve.serving import GOOD, Client
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
