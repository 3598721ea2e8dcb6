"""The HTTP application: the APIs of LibreTranslate and DeepL, and the page of the runs
(docs/serve.md). Texts are neither logged nor stored."""

import asyncio
import hmac
import html
import json
import logging
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from seq2seq_attn.serve.batcher import Batcher
from seq2seq_attn.serve.worker import Pair
from seq2seq_attn.text.languages import short_code

BODY_TIMEOUT_S = 10
"""maximum number of seconds to receive the body of a request"""

log = logging.getLogger(__name__)


class App:
    """Answers HTTP requests, logs them and counts them."""

    def __init__(
        self,
        pool: Executor,
        batch_sizes: Mapping[Pair, int],
        page: Sequence[str],
        key: str,
        max_characters: int,
    ) -> None:
        """Build the application.

        Args:
            pool: executor with one worker process, as for `Batcher`.
            batch_sizes: maximum number of lines per batch of each language pair, as for `Batcher`.
            page: arguments of `seq2seq export` that write the page of the runs.
            key: key that clients must send; empty if clients need no key.
            max_characters: maximum number of characters in the texts of a request.
        """
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
        max_body = 4_096 + 12 * max_characters  # a character takes at most 12 bytes
        self._app = Starlette(
            routes=routes, exception_handlers={HTTPException: refuse}, max_body_size=max_body
        )
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request and log a line about it. The line has neither the query nor an unknown
        path, because they may contain text of the client."""
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
        except Exception as error:  # Starlette has answered; the message may contain text
            log.error("%s in the next request", type(error).__name__)
        seconds = time.perf_counter() - began_at
        path = scope["path"] if scope["path"] in self._paths else "other"
        log.info("%s %s %d, %.0f ms", scope["method"][:7], path, status, 1_000 * seconds)
        counts = self.batcher.counts
        counts[f'seq2seq_requests_total{{path="{path}",status="{status}"}}'] += 1
        counts["seq2seq_request_seconds_sum"] += seconds
        counts["seq2seq_request_seconds_count"] += 1

    async def translate(self, request: Request) -> Response:
        """Answer LibreTranslate's `/translate`."""
        values, texts = await self._read(request, "q")
        languages = values.get("source"), values.get("target")
        source, shares, translated = await self._translate(request, texts, *languages)
        answer: dict[str, Any] = {"translatedText": translated}
        if values["q"] is not texts:  # the client sent a text, not a list
            answer["translatedText"] = translated[0]
        if shares:
            answer["detectedLanguage"] = {"language": source, "confidence": shares[source]}
        return JSONResponse(answer)

    async def translate_deepl(self, request: Request) -> Response:
        """Answer DeepL's `/v2/translate`. Parameters such as formality and glossaries have no
        effect."""
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
        """Answer LibreTranslate's `/detect`, if several source languages are served."""
        _, texts = await self._read(request, "q")
        sources = {source for source, _ in self._pairs}
        if len(sources) == 1:
            raise HTTPException(400, f"only {sources.pop()} is served, so no language is detected")
        shares = await self.batcher.detect(texts, self._pairs)
        return JSONResponse(
            [{"language": source, "confidence": share} for source, share in shares.items()]
        )

    async def languages(self, _: Request) -> Response:
        """Answer LibreTranslate's `/languages`. The codes of languages also serve as their
        names."""
        targets = defaultdict(list)
        for source, target in self._pairs:
            targets[source].append(target)
        return JSONResponse(
            [{"code": code, "name": code, "targets": targets[code]} for code in targets]
        )

    async def health(self, _: Request) -> Response:
        """Answer that the server is alive."""
        return JSONResponse({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        """Answer with counts in the text format of Prometheus."""
        self._check_key(request, request.query_params.get("api_key"))
        values = {**self.batcher.counts, "seq2seq_lines_waiting": len(self.batcher.waiting)}
        lines = [f"{name} {value:.12g}\n" for name, value in sorted(values.items())]
        return PlainTextResponse("".join(lines))

    async def page(self, request: Request) -> Response:
        """Answer with the page of the runs, which a process writes at the first request."""
        self._check_key(request, request.query_params.get("api_key"))
        self._export = self._export or asyncio.create_task(export_page(self._page))
        status, text = await asyncio.shield(self._export)
        return HTMLResponse(text, status, {"X-Frame-Options": "DENY"})

    def _check_key(self, request: Request, key: object) -> None:
        """Check the key of a request: `key`, or the key of the header `Authorization:
        DeepL-Auth-Key KEY`. Raises HTTPException: neither key is right."""
        header = request.headers.get("authorization", "").partition(" ")[2]
        sent_keys = [str(sent).encode() for sent in (key or "", header)]
        if self._key and not any(hmac.compare_digest(sent, self._key) for sent in sent_keys):
            raise HTTPException(
                403, "expected a valid key, as api_key or in the header Authorization"
            )

    async def _read(self, request: Request, name: str) -> tuple[dict[str, Any], list[str]]:
        """Read a request. Return the parameters of its query and its body (JSON or a form), and the
        texts that the parameter `name` holds.

        Raises:
            HTTPException: the body cannot be read or takes too long, the key is wrong, the texts
                are too long, or they are not plain text.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                body = (await request.body()).decode()
            in_body = dict(json.loads(body)) if kind == "application/json" else parse_form(body)
            values = {**parse_form(request.url.query), **in_body}
            json.dumps(values, ensure_ascii=False).encode()  # raises an error for a lone surrogate
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
        """Translate texts. Return the source language, the probabilities of source languages if the
        language had to be detected (otherwise an empty dict), and the translations.

        Raises:
            HTTPException: the languages are not served.
            ClientDisconnect: the client hangs up. Its texts are then no longer translated.
        """
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
        hang_up = asyncio.ensure_future(request.receive())  # the only further message
        await asyncio.wait({work, hang_up}, return_when=asyncio.FIRST_COMPLETED)
        hang_up.cancel()
        if not work.done():
            work.cancel()
            raise ClientDisconnect
        return pair[0], shares, await work


def _language_code(name: object) -> str:
    """Return the short code of a language. Return an empty text if the language must be
    detected."""
    return "" if name in (None, "auto") else short_code(str(name))


def parse_form(text: str) -> dict[str, Any]:
    """Return the values of a form or a query by name. The value of a repeated name is a list."""
    values = parse_qs(text, keep_blank_values=True, errors="strict")
    return {name: texts if len(texts) > 1 else texts[0] for name, texts in values.items()}


async def refuse(_: Request, error: Exception) -> Response:
    """Return the answer to a rejected request, in a form that clients of LibreTranslate and of
    DeepL understand."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail, "message": error.detail}, error.status_code)


async def export_page(arguments: Sequence[str]) -> tuple[int, str]:
    """Write the page of runs, with parameters in full precision. Return the HTTP status and the
    page, or the status 404 and the reason if the page cannot be written."""
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
