"""The page at `/`."""

import asyncio
import gzip
import json
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from seq2seq_attn.serve import page
from seq2seq_attn.serve.page import Page
from tests.serve.serving import make_app, served, serving

ASKED = Request({"type": "http", "headers": []})


def test_the_page_is_compressed_where_the_client_can_read_it(served_page):
    with serving(make_app(served(), served_page)) as client:
        plain = client.open("GET", "/")
        compressed = client.open("GET", "/", headers={"Accept-Encoding": "br, gzip"})
    assert plain.headers["Content-Encoding"] is None
    assert compressed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(compressed.content) == plain.content
    assert plain.headers["X-Frame-Options"] == "DENY"


@pytest.fixture
def failing(monkeypatch):
    """The arguments of exports, the first of which fails."""
    calls = []

    async def export(arguments):
        calls.append(arguments)
        if len(calls) == 1:
            return "error: /home/geheim/run: no space"
        Path(arguments[-1]).write_text("page")
        return ""

    monkeypatch.setattr(page, "_export", export)
    return calls


def test_a_page_that_failed_is_tried_again_later(failing, monkeypatch, caplog):
    async def ask():
        shown = Page(["run"], lambda: True)
        for _ in range(2):
            with pytest.raises(HTTPException, match="log") as refused:
                await shown.answer(ASKED)
            assert "geheim" not in refused.value.detail
        assert len(failing) == 1
        monkeypatch.setattr(page, "RETRY_S", -1)
        assert (await shown.answer(ASKED)).status_code == 200
        await shown.answer(ASKED)
        assert len(failing) == 2

    asyncio.run(ask())
    assert "geheim" in caplog.text


def test_the_page_of_a_replaced_run_is_not_shown(served_page, caplog):
    async def ask():
        shown = Page(["run"], lambda: False)
        with pytest.raises(HTTPException, match="503"):
            await shown.answer(ASKED)

    asyncio.run(ask())
    assert "replaced" in caplog.text


@pytest.mark.slow
def test_the_page_has_the_runs(runs, tmp_path):
    shown = Page([str(runs[0])], lambda: True)
    with serving(make_app(served(), shown)) as client:
        first, again = client.ask("GET", "/"), client.ask("GET", "/")
        assert first == again
        assert first[0] == 200
        assert "default-src 'none'" in first[1]
    with serving(make_app(served(), Page([str(tmp_path / "none")], lambda: True))) as client:
        status, text = client.ask("GET", "/")
        assert status == 503
        assert set(json.loads(text)) == {"error", "message"}
