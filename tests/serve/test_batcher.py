"""Lines of all requests are translated in batches, and none harms another."""

import asyncio
import http.client
import json
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.exceptions import HTTPException

from seq2seq_attn.model.variants import import_variants
from seq2seq_attn.serve import batcher, worker
from seq2seq_attn.serve.batcher import Batcher
from seq2seq_attn.serve.worker import Answer
from tests.serve.serving import PAIR, make_app, served, serving
from tests.waiting import wait_for


def make_batcher():
    return Batcher(ThreadPoolExecutor(1), served(PAIR, batch_size=3))


def test_a_batch_is_the_oldest_line_and_those_of_similar_length_that_arrived_meanwhile(slow):
    async def ask():
        batcher = make_batcher()
        tasks = []
        for text in "a bbbb c dd eeeee fff".split():
            tasks.append(asyncio.create_task(batcher.translate(PAIR, [text])))
            await asyncio.sleep(0)
        slow.release.release(3)
        return await asyncio.gather(*tasks)

    assert asyncio.run(ask()) == [[Answer([text])] for text in "A BBBB C DD EEEEE FFF".split()]
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
    assert [first, second, last] == [[Answer([text])] for text in "ABD"]
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
        assert (await asyncio.gather(*tasks))[1:] == [[Answer(["B"])], [Answer(["C"])]]

    asyncio.run(ask())


def test_an_error_is_answered_and_its_message_is_not_logged(slow, caplog):
    with serving(make_app(served(PAIR, batch_size=3))) as client:
        assert (
            client.ask("POST", "/translate", {"q": "!", "source": "fr", "target": "it"})[0] == 500
        )
        assert client.ask("GET", "/health")[0] == 200
    assert "RuntimeError" in caplog.text
    assert "Geheim" not in caplog.text


def test_an_error_of_a_variant_is_logged_with_its_line(slow, caplog):
    import_variants("tests.serve.serving")
    options = {"n_best": 1, "split_sentences": "auto", "glossary": ()}
    assert worker.translate_batch(PAIR, options, ["!"]) == [None]
    assert "serving.py:" in caplog.text


def test_the_texts_of_a_client_that_hangs_up_are_dropped(slow, caplog):
    caplog.set_level("INFO")
    app = make_app(served(PAIR, batch_size=3))
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


def test_probabilities_that_are_not_numbers_are_no_translation(slow, monkeypatch):
    monkeypatch.setattr(slow, "log_prob", math.nan)
    slow.release.release(1)

    async def ask():
        with pytest.raises(HTTPException, match="500"):
            await make_batcher().translate(PAIR, ["a"])

    asyncio.run(ask())
