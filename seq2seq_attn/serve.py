"""A server for translation clients: the APIs of LibreTranslate and DeepL, and the page of the runs
(docs/serve.md).

The lines of all requests wait in one list; a process translates them in batches of those that
arrived while the last batch ran. In a thread, translation would share Python's lock with HTTP.
Texts are neither logged nor kept.
"""

import asyncio
import hmac
import html
import json
import logging
import math
import re
import signal
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.variants import import_variants
from seq2seq_attn.run import Run
from seq2seq_attn.runtime import memory
from seq2seq_attn.text.languages import short_code

MAX_WAITING = 100_000
"""characters of all waiting lines"""
LINE_OVERHEAD = 20
"""characters that each line counts in addition, because a line of one letter takes time too"""
MAX_BATCH_CHARACTERS = 8_192
"""characters of a batch of several lines, so that other requests do not wait long for it"""
BODY_TIMEOUT_S = 10
"""seconds to receive a request"""
DRAIN_TIMEOUT_S = 60
"""seconds to finish accepted requests after a signal"""
Pair = tuple[str, str]
"""source and target language"""
TRANSLATORS: dict[Pair, Any] = {}
"""filled in the process that translates"""
log = logging.getLogger(__name__)


class Line(NamedTuple):
    """A line that waits for its translation."""

    text: str
    pair: Pair
    result: asyncio.Future[Any]


class Batcher:
    """Translates lines in batches of those that arrived while the last batch ran."""

    def __init__(self, pool: Executor, batch_sizes: Mapping[Pair, int]) -> None:
        """`pool` has one worker, which has loaded the runs; `batch_sizes` are their lines per
        batch, at most."""
        self._pool = pool
        self._batch_sizes = batch_sizes
        self.waiting: list[Line] = []
        self.counts: dict[str, float] = defaultdict(float)
        self._worker: asyncio.Task[None] | None = None

    async def translate(self, pair: Pair, texts: Iterable[str]) -> list[str]:
        """Translate the lines of each text; line ends and blank lines stay. Raises HTTPException if
        too many wait."""
        split = [re.split(r"(\r\n|\r|\n)", text) for text in texts]
        loop = asyncio.get_running_loop()
        lines = []
        for text in chain.from_iterable(split):
            if text.strip():
                lines.append(Line(text, pair, loop.create_future()))
        size = sum(len(line.text) + LINE_OVERHEAD for line in [*self.waiting, *lines])
        if self.waiting and size > MAX_WAITING:
            raise HTTPException(429, "too many texts are waiting; try again later")
        self.waiting += lines
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        translations = await asyncio.gather(*(line.result for line in lines))
        if None in translations:
            raise HTTPException(500, "not translated")
        rest = iter(translations)
        results = []
        for pieces in split:
            results.append("".join(next(rest) if piece.strip() else piece for piece in pieces))
        return results

    async def detect(self, texts: Sequence[str], pairs: Sequence[Pair]) -> dict[str, float]:
        """`detect` after the batch that is being translated."""
        return await asyncio.wrap_future(self._pool.submit(detect, "\n".join(texts)[:1_000], pairs))

    async def _work(self) -> None:
        """Translate until nothing waits."""
        while True:
            batch = self._take()
            if not batch:
                return
            texts = [line.text for line in batch]
            results: list[Any] = [None] * len(batch)
            try:
                submitted = self._pool.submit(translate_batch, batch[0].pair, texts)
                results = await asyncio.wrap_future(submitted)
            except BrokenExecutor:
                log.error("the process that translates has died, perhaps for lack of memory")
                signal.raise_signal(signal.SIGTERM)
            self.counts["seq2seq_batches_total"] += 1
            self.counts["seq2seq_lines_total"] += len(batch)
            for line, result in zip(batch, results, strict=True):
                if not line.result.done():  # else the client hung up
                    line.result.set_result(result)

    def _take(self) -> list[Line]:
        """The line that has waited longest, and those of its run that are nearest in length, which
        is fastest."""
        self.waiting = [line for line in self.waiting if not line.result.done()]
        if not self.waiting:
            return []
        first = self.waiting[0]
        batch = [line for line in self.waiting if line.pair == first.pair]
        batch.sort(key=lambda line: abs(len(line.text) - len(first.text)))
        del batch[self._batch_sizes[first.pair] :]
        while len(batch) > 1 and sum(len(line.text) for line in batch) > MAX_BATCH_CHARACTERS:
            batch.pop()
        taken = {id(line) for line in batch}
        self.waiting = [line for line in self.waiting if id(line) not in taken]
        return batch


class App:
    """Answers requests, logs and counts them."""

    def __init__(
        self,
        pool: Executor,
        batch_sizes: Mapping[Pair, int],
        page: Sequence[str],
        key: str,
        max_characters: int,
    ) -> None:
        """`pool` and `batch_sizes`: as for the batcher. `page`: arguments of `seq2seq export`, the
        runs of the page. `key`: what clients must send; empty: nothing. `max_characters`: of the
        texts of a request."""
        self.batcher = Batcher(pool, batch_sizes)
        self._pairs = list(batch_sizes)
        self._key = key.encode()
        self._max_characters = max_characters
        self._page = page
        self._export: asyncio.Task[tuple[int, str]] | None = None
        routes = [
            Route("/translate", self.translate, methods=["POST"]),
            Route("/v2/translate", self.translate_deepl, methods=["POST"]),
            Route("/detect", self.detect, methods=["POST"]),
            Route("/languages", self.languages),
            Route("/health", self.health),
            Route("/metrics", self.metrics),
            Route("/", self.page),
        ]
        self._paths = {route.path for route in routes}
        max_body = 4_096 + 12 * max_characters  # at most 12 bytes each, in JSON or a form
        self._app = Starlette(
            routes=routes, exception_handlers={HTTPException: refuse}, max_body_size=max_body
        )
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log a line without its texts, which its query or an unknown path
        may hold."""
        began_at = time.perf_counter()
        status = 500

        async def send_on(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        except ClientDisconnect:
            status = 499  # as in nginx's log
        except Exception as error:  # Starlette has answered; the message may hold text
            log.error("%s in the next request", type(error).__name__)
        seconds = time.perf_counter() - began_at
        path = scope["path"] if scope["path"] in self._paths else "other"
        log.info("%s %s %d, %.0f ms", scope["method"][:7], path, status, 1_000 * seconds)
        counts = self.batcher.counts
        counts[f'seq2seq_requests_total{{path="{path}",status="{status}"}}'] += 1
        counts["seq2seq_request_seconds_sum"] += seconds
        counts["seq2seq_request_seconds_count"] += 1

    async def translate(self, request: Request) -> Response:
        """LibreTranslate's `/translate`."""
        values, texts = await self._read(request, "q")
        languages = values.get("source"), values.get("target")
        source, shares, translated = await self._translate(request, texts, *languages)
        answer: dict[str, Any] = {"translatedText": translated}
        if values["q"] is not texts:  # a single text
            answer["translatedText"] = translated[0]
        if shares:
            answer["detectedLanguage"] = {"language": source, "confidence": shares[source]}
        return JSONResponse(answer)

    async def translate_deepl(self, request: Request) -> Response:
        """DeepL's `/v2/translate`. Formality, glossaries and the like have no effect."""
        values, texts = await self._read(request, "text")
        languages = values.get("source_lang"), values.get("target_lang")
        source, _, translated = await self._translate(request, texts, *languages)
        translations = []
        for text, translation in zip(texts, translated, strict=True):
            translations.append(
                {
                    "detected_source_language": source.upper(),
                    "text": translation,
                    "billed_characters": len(text),
                }
            )
        return JSONResponse({"translations": translations})

    async def detect(self, request: Request) -> Response:
        """LibreTranslate's `/detect`, where several source languages are served."""
        _, texts = await self._read(request, "q")
        sources = {source for source, _ in self._pairs}
        if len(sources) == 1:
            raise HTTPException(400, f"only {sources.pop()} is served, so no language is detected")
        shares = await self.batcher.detect(texts, self._pairs)
        return JSONResponse(
            [{"language": source, "confidence": share} for source, share in shares.items()]
        )

    async def languages(self, _: Request) -> Response:
        """LibreTranslate's `/languages`; the names of languages are their codes."""
        targets = defaultdict(list)
        for source, target in self._pairs:
            targets[source].append(target)
        return JSONResponse(
            [{"code": code, "name": code, "targets": targets[code]} for code in targets]
        )

    async def health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        """Counts in Prometheus's text format."""
        self._check_key(request, request.query_params.get("api_key"))
        values = {**self.batcher.counts, "seq2seq_lines_waiting": len(self.batcher.waiting)}
        lines = [f"{name} {value:.12g}\n" for name, value in sorted(values.items())]
        return PlainTextResponse("".join(lines))

    async def page(self, request: Request) -> Response:
        """The page of the runs, which a process writes when it is first asked for."""
        self._check_key(request, request.query_params.get("api_key"))
        self._export = self._export or asyncio.create_task(export_page(self._page))
        status, text = await asyncio.shield(self._export)
        return HTMLResponse(text, status, {"X-Frame-Options": "DENY"})

    def _check_key(self, request: Request, key: object) -> None:
        """Raise HTTPException unless the key, or that of the header (`DeepL-Auth-Key KEY`), is
        right."""
        header = request.headers.get("authorization", "").partition(" ")[2]
        given = [str(each).encode() for each in (key or "", header)]
        if self._key and not any(hmac.compare_digest(each, self._key) for each in given):
            raise HTTPException(
                403, "expected a valid key, as api_key or in the header Authorization"
            )

    async def _read(self, request: Request, name: str) -> tuple[dict[str, Any], list[str]]:
        """The parameters in the query and in the body, which is JSON or a form, and the texts of
        that name. Raises HTTPException if they cannot be read, are too long or no plain text, or if
        the key is wrong."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                body = (await request.body()).decode()
            in_body = dict(json.loads(body)) if kind == "application/json" else parse_form(body)
            values = {**parse_form(request.url.query), **in_body}
            json.dumps(values, ensure_ascii=False).encode()  # fails for halves of surrogate pairs
        except TimeoutError:
            raise HTTPException(408, f"expected the body within {BODY_TIMEOUT_S} s") from None
        except (ValueError, TypeError, RecursionError):
            raise HTTPException(400, "expected a JSON object, or a form, in UTF-8") from None
        self._check_key(request, values.get("api_key"))
        texts = values.get(name)
        if isinstance(texts, str):
            texts = [texts]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise HTTPException(
                400, f"{name}: expected a text or a list of texts, in JSON or a URL-encoded form"
            )
        if sum(map(len, texts)) > self._max_characters:
            raise HTTPException(413, f"{name}: expected at most {self._max_characters} characters")
        if values.get("format") not in (None, "text") or values.get("tag_handling"):
            raise HTTPException(400, "format, tag_handling: only plain text is translated")
        return values, texts

    async def _translate(
        self, request: Request, texts: Sequence[str], source: object, target: object
    ) -> tuple[str, dict[str, float], list[str]]:
        """The source language, the probabilities of several if it had to be detected, and the
        translations. Raises HTTPException if the languages are not served, or if the client hangs
        up, whose texts are then dropped."""
        source_code = _language_code(source)
        target_code = _language_code(target)
        pairs = []
        for pair in self._pairs:
            if pair[1] == target_code and source_code in ("", pair[0]):
                pairs.append(pair)
        if not pairs:
            served = ", ".join(map(" to ".join, self._pairs))
            raise HTTPException(
                400, f"source, target: expected languages that are served: {served}"
            )
        shares = {}
        if not source_code:
            shares = await self.batcher.detect(texts, pairs)
            source_code = next(iter(shares))
        pair = source_code, target_code
        work = asyncio.ensure_future(self.batcher.translate(pair, texts))
        hang_up = asyncio.ensure_future(request.receive())  # no other message can come
        await asyncio.wait({work, hang_up}, return_when=asyncio.FIRST_COMPLETED)
        hang_up.cancel()
        if not work.done():
            work.cancel()
            raise ClientDisconnect
        return pair[0], shares, await work


def _language_code(name: object) -> str:
    """The short code of a language; empty: it is to be detected."""
    return "" if name in (None, "auto") else short_code(str(name))


def parse_form(text: str) -> dict[str, Any]:
    """The values of a form or query; that of a repeated name is a list."""
    values = parse_qs(text, keep_blank_values=True, errors="strict")
    return {name: each if len(each) > 1 else each[0] for name, each in values.items()}


async def refuse(_: Request, error: Exception) -> Response:
    """The answer to a request that is refused, as LibreTranslate's clients and DeepL's expect
    it."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail, "message": error.detail}, error.status_code)


async def export_page(arguments: Sequence[str]) -> tuple[int, str]:
    """Status and text of the page of some runs, with parameters in full precision, or of why there
    is none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        command = ["-m", "seq2seq_attn", "export", "--weights", "fp32", "-o", str(path), *arguments]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=PIPE, stderr=PIPE
        )
        _, errors = await process.communicate()
        if process.returncode:
            return 404, html.escape(errors.decode(errors="replace").strip().rpartition("\n")[2])
        return 200, path.read_text(encoding="utf-8")


def group_runs(runs: Iterable[Run]) -> dict[Pair, list[Run]]:
    """The runs by their languages. Raises UsageError if one does not read exactly one text: a run
    that reads vectors would open files that clients name."""
    groups: dict[Pair, list[Run]] = {}
    for run in runs:
        data = run.config.data
        if not data.layout.is_one_text:
            raise UsageError(
                f"{run.path}: reads {data.source_name}; only runs that read one text are served"
            )
        pair = short_code(data.sources[0]), short_code(data.target_language)
        groups.setdefault(pair, []).append(run)
    return groups


def load_runs(
    runs: Mapping[Pair, Run], imports: Sequence[str], options: Mapping[str, str]
) -> dict[Pair, int]:
    """Load runs, after modules, with options of `load`; their batch sizes. Raises UserError as
    `load`."""
    # imports torch, which the process that serves does without
    from seq2seq_attn.translate.load import load

    import_variants(imports)
    memory.keep_memory_flat()
    memory.keep_primitives(memory.TRANSLATING_PRIMITIVES)
    with memory.paused_collector():
        TRANSLATORS.update({pair: load(run, **options) for pair, run in runs.items()})
    return {pair: TRANSLATORS[pair].search.batch_size for pair in runs}


def translate_batch(pair: Pair, texts: Sequence[str]) -> list[str | None]:
    """Translations. If a batch fails, each text is tried alone, as none may harm another client's;
    None: it fails."""
    try:
        return [each.text for each in TRANSLATORS[pair].translate(texts, keep_attention=False)]
    except Exception as error:
        if len(texts) > 1:
            return [translate_batch(pair, [text])[0] for text in texts]
        # The error's message may hold text.
        log.error("a line was not translated: %s", type(error).__name__)
        return [None]


def detect(text: str, pairs: Sequence[Pair]) -> dict[str, float]:
    """The source languages of some pairs with probabilities in percent, the most probable first.
    That of a token is 1 / (rank * ln(size)), Zipf's law, as vocabularies are sorted by frequency;
    unknown ones are spelled with 30 letters."""
    costs: dict[str, float] = {}
    for pair in pairs:
        vocab = TRANSLATORS[pair].source_vocab
        tokens = TRANSLATORS[pair].source_tokenizer.tokenize(" ".join(text.split()))
        log_size = math.log(math.log(len(vocab)))
        token_costs = []
        for token, rank in zip(tokens, vocab.ids_of(tokens), strict=True):
            if token in vocab:
                token_costs.append(math.log(1 + rank) + log_size)
            else:
                token_costs.append((1 + len(token)) * math.log(30))
        costs[pair[0]] = sum(token_costs)
    odds = {source: math.exp(min(costs.values()) - cost) for source, cost in costs.items()}
    total = sum(odds.values())
    return {source: 100 * odds[source] / total for source in sorted(odds, key=costs.__getitem__)}


def make_server(app: App) -> uvicorn.Server:
    """A server of the application, which a signal ends after the requests that it has accepted."""
    uvicorn_log = logging.getLogger("uvicorn")
    uvicorn_log.parent = log  # a request that is not HTTP is one line there too
    uvicorn_log.setLevel(logging.WARNING)
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_TIMEOUT_S,
    )
    return uvicorn.Server(config)
