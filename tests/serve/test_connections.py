"""Connections are bounded, in number and in time."""

import socket

import pytest

from seq2seq_attn.serve import connections
from tests.serve.serving import make_app, served, serving
from tests.waiting import wait_for


@pytest.fixture
def few(monkeypatch):
    """At most three connections; the log may name the limit again."""
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(connections.Connection, "logged_at", float("-inf"))


@pytest.mark.usefixtures("few")
def test_a_surplus_of_connections_is_closed_with_one_line(caplog):
    caplog.set_level("INFO")
    with serving(make_app(served())) as client:
        idle = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(9)]
        for surplus in idle[3:]:
            assert surplus.recv(1) == b""
        assert len(caplog.records) == 1
        assert "3" in caplog.text
        for connection in idle:
            connection.close()
        wait_for(lambda: is_answered(client))


def is_answered(client):
    """Whether a request is answered."""
    try:
        return client.ask("GET", "/health")[0] == 200
    except ConnectionError:
        return False


def test_a_connection_without_a_request_is_closed(monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT_S", 0.1)
    with serving(make_app(served())) as client:
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost:")
            assert connection.recv(1) == b""


HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_body_without_an_end_is_read_for_a_while_only(monkeypatch):
    monkeypatch.setattr(connections, "LINGER_S", 0.1)
    with serving(make_app(served())) as client:
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(HEAD)
            with pytest.raises(ConnectionError):
                send_for_ever(connection)


def send_for_ever(connection):
    while True:
        connection.sendall(b"10000\r\n" + b"a" * 65_536 + b"\r\n")
