"""The HTTP application: the APIs of LibreTranslate and DeepL, and the page of the runs
(docs/serve.md). Texts are not logged. Only documents and glossaries are kept, in memory."""

import asyncio
import logging
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import JsonObject
from seq2seq_attn.serve.batcher import Batcher
from seq2seq_attn.serve.downloads import Downloads
from seq2seq_attn.serve.glossaries import Glossaries, NewGlossary
from seq2seq_attn.serve.openapi import describe_api
from seq2seq_attn.serve.page import Page
from seq2seq_attn.serve.requests import (
    MAX_DOCUMENT_BYTES,
    Access,
    DeepLDocument,
    DeepLTranslation,
    Detection,
    LibreDocument,
    LibreTranslation,
    Translation,
    check_key,
    is_expected_host,
    read_request,
    read_values,
)
from seq2seq_attn.serve.worker import Answer, Pair, Served, detect
from seq2seq_attn.text.documents.document import parse_document, replace_texts
from seq2seq_attn.text.documents.forms import FORMS
from seq2seq_attn.text.documents.units import source_language
from seq2seq_attn.text.glossary import Glossary
from seq2seq_attn.text.languages import english_name

UNLIMITED = 10**12
"""the number of characters that DeepL's API reports as the limit if there is no limit"""
_METRICS = {
    "seq2seq_requests_total": ("counter", "Requests by path and status."),
    "seq2seq_request_seconds": ("summary", "Seconds from a request to the end of its answer."),
    "seq2seq_batches_total": ("counter", "Batches that were translated."),
    "seq2seq_lines_total": ("counter", "Lines that were translated."),
    "seq2seq_characters_total": ("counter", "Characters of the texts that were translated."),
    "seq2seq_lines_waiting": ("gauge", "Lines that wait to be translated."),
}
_PARAMETERS: dict[str, type[BaseModel]] = {
    "/translate": LibreTranslation,
    "/translate_file": LibreDocument,
    "/v2/translate": DeepLTranslation,
    "/v2/document": DeepLDocument,
    "/v2/glossaries": NewGlossary,
    "/detect": Detection,
}

log = logging.getLogger(__name__)


class App:
    """Answers HTTP requests, logs them and counts them."""

    def __init__(self, pool: Executor, served: Served, page: Page, access: Access) -> None:
        """Build the application.

        Args:
            pool: executor with one worker process, as for `Batcher`.
            served: the language pairs that the worker has loaded.
            page: the page at `/`.
            access: limits, and which clients may ask.
        """
        self.batcher = Batcher(pool, served)
        self._glossaries = Glossaries(self.batcher, access)
        self._downloads = Downloads()
        self.is_broken = False
        """whether the process that translates has died"""
        self._served = served
        self._access = access
        self.page = page
        post = partial(Route, methods=["POST"])
        upload = partial(post, max_body_size=MAX_DOCUMENT_BYTES)
        self._routes = [
            upload("/translate_file", self.translate_file),
            upload("/v2/document", self.upload_deepl),
            post("/translate", self.translate),
            post("/v2/translate", self.translate_deepl),
            post("/detect", self.detect),
            Route("/languages", self.languages),
            Route("/frontend/settings", self.settings),
            Route("/v2/languages", self.languages_deepl),
            Route("/v2/usage", self.usage_deepl),
            Route("/health", self.health),
            Route("/metrics", self.metrics),
            Route("/openapi.json", self.openapi),
            Route("/", self.show_page),
            *self._glossaries.routes,
            *self._downloads.routes,
        ]
        self._app = Starlette(
            routes=self._routes,
            middleware=_allow_origins(access.origins),
            exception_handlers={HTTPException: refuse},
            max_body_size=4_096 + 12 * access.max_characters,  # a character has at most 12 bytes
        )
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log a line about the request. The line has the path of the route,
        such as `/download_file/{name}`, because query and path may contain text of the client."""
        began_at = time.perf_counter()
        status = 500

        async def send_on(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        app: ASGIApp = self._app
        request = Request(scope)
        if not is_expected_host(request.headers.get("host", ""), self._access.hosts):
            reason = "Host: expected an address, localhost or a name of --allow-host"
            app = await refuse(request, HTTPException(403, reason))
        try:
            await app(scope, receive, send_on)
        except ClientDisconnect:
            status = 499  # as in nginx's log
        except (Exception, asyncio.CancelledError) as error:
            # the message of the error is not logged, because it may contain text of the client
            log.error("%s in the next request", type(error).__name__)
        seconds = time.perf_counter() - began_at
        paths = (route.path for route in self._routes if route.path_regex.match(scope["path"]))
        path = next(paths, "unknown path")
        client = (scope["client"] or ["-"])[0]
        method = scope["method"][:7]
        log.info("%s %s %s %d, %.0f ms", client, method, path, status, 1_000 * seconds)
        counts = self.batcher.counts
        counts[f'seq2seq_requests_total{{path="{path}",status="{status}"}}'] += 1
        counts["seq2seq_request_seconds_sum"] += seconds
        counts["seq2seq_request_seconds_count"] += 1

    async def translate(self, request: Request) -> Response:
        """Translate texts, in LibreTranslate's API."""
        asked = await read_request(request, LibreTranslation, self._access)
        fields = await self._translate_libre(request, asked)
        return JSONResponse(fields)

    async def translate_file(self, request: Request) -> Response:
        """Translate a document, in LibreTranslate's API. The answer has the URL of the result."""
        asked = await read_request(request, LibreDocument, self._access)
        work = asyncio.ensure_future(self._translate_document(asked, request))
        _, fields = await work
        name = self._downloads.keep(work, asked.form)
        return JSONResponse(
            {"translatedFileUrl": f"{request.base_url}download_file/{name}", **fields}
        )

    async def upload_deepl(self, request: Request) -> Response:
        """Translate a document, in DeepL's API. The answer has the document's id and key."""
        asked = await read_request(request, DeepLDocument, self._access)
        work = asyncio.ensure_future(self._translate_document(asked))
        number, key = self._downloads.keep(work, str(uuid.uuid4())).split(".")
        return JSONResponse({"document_id": number, "document_key": key})

    async def _translate_document(
        self, asked: LibreDocument, request: Request | None = None
    ) -> tuple[bytes, JsonObject]:
        """Return a translated document, and further fields of the answer. If the request names no
        source language, an XLIFF or TMX document must name the language.

        Raises:
            HTTPException: the document cannot be read, or the source language is not named.
        """
        try:
            if FORMS.get(asked.form) == "units" and asked.source in ("", "auto"):
                asked.source = source_language(asked.file)
            languages = asked.source, asked.target
            document = parse_document(asked.file, asked.form, asked.field, languages)
        except UserError as error:
            raise HTTPException(400, str(error)) from None
        asked.q = [line.text for line in document.lines]
        fields = await self._translate_libre(request, asked)
        content, untranslated = replace_texts(document, fields.pop("translatedText"))
        if untranslated:
            fields["untranslated"] = untranslated
        return content, fields

    async def _translate_libre(
        self, request: Request | None, asked: LibreTranslation
    ) -> JsonObject:
        """Return the fields of an answer to a client of LibreTranslate."""
        pair, confidence = await self._choose_pair(asked, asked.source, asked.target)
        answers = await self._translate(request, pair, asked, 1 + asked.alternatives)
        fields: JsonObject = {"translatedText": [answer.texts[0] for answer in answers]}
        if asked.alternatives:
            fields["alternatives"] = [answer.texts[1:] for answer in answers]
        for name in ("warnings", "unknown"):
            notes = [getattr(answer, name) for answer in answers]
            if any(notes):
                fields[name] = notes
        if isinstance(asked.q, str):
            fields = {name: values[0] for name, values in fields.items()}
        if confidence is not None:
            fields["detectedLanguage"] = {"language": pair[0], "confidence": confidence}
        return fields

    async def translate_deepl(self, request: Request) -> Response:
        """Translate texts, in DeepL's API. Parameters such as formality have no effect."""
        asked = await read_request(request, DeepLTranslation, self._access)
        named_pair = asked.source_lang, asked.target_lang
        glossary = self._glossaries.find(asked.glossary_id, named_pair)
        pair, _ = await self._choose_pair(asked, *named_pair)
        answers = await self._translate(request, pair, asked, glossary=glossary)
        translations = []
        for text, answer in zip(asked.texts, answers, strict=True):
            translation: JsonObject = {
                "detected_source_language": pair[0].upper(),
                "text": answer.texts[0],
                "billed_characters": len(text),
            }
            if answer.warnings:
                translation["warnings"] = answer.warnings
            if answer.unknown:
                translation["unknown"] = answer.unknown
            translations.append(translation)
        return JSONResponse({"translations": translations})

    async def detect(self, request: Request) -> Response:
        """Detect the language of a text among the source languages, in LibreTranslate's API."""
        asked = await read_request(request, Detection, self._access)
        shares = await self.batcher.run(detect, asked.texts, self._served)
        languages = [{"language": code, "confidence": share} for code, share in shares.items()]
        return JSONResponse(languages)

    async def languages(self, _: Request) -> Response:
        """Return the pairs of languages, in LibreTranslate's API."""
        languages: dict[str, JsonObject] = {}
        for source, target in self._served:
            language = languages.setdefault(source, {**_name_language(source), "targets": []})
            language["targets"].append(target)
        return JSONResponse(list(languages.values()))

    async def settings(self, _: Request) -> Response:
        """Return the limits of the server and the forms of documents, in LibreTranslate's API."""
        [source, target] = next(iter(self._served))
        needs_key = bool(self._access.key)
        settings = {
            "charLimit": self._access.max_characters,
            "apiKeys": needs_key,
            "keyRequired": needs_key,
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": [f".{form}" for form in FORMS],
            "language": {"source": _name_language(source), "target": _name_language(target)},
        }
        return JSONResponse(settings)

    async def languages_deepl(self, request: Request) -> Response:
        """Return the source languages, or with `type=target` the target languages, in DeepL's
        API."""
        side = 1 if (await read_values(request)).get("type") == "target" else 0
        languages = []
        for code in dict.fromkeys(pair[side] for pair in self._served):
            name = english_name(code).title()
            languages.append({"language": code.upper(), "name": name, "supports_formality": False})
        return JSONResponse(languages)

    async def usage_deepl(self, request: Request) -> Response:
        """Return the number of characters since the start of the server, in DeepL's API."""
        check_key(request, self._access)
        count = int(self.batcher.counts["seq2seq_characters_total"])
        return JSONResponse({"character_count": count, "character_limit": UNLIMITED})

    async def health(self, _: Request) -> Response:
        """Return whether the server can translate."""
        if self.is_broken:
            return JSONResponse({"status": "the process that translates has died"}, 503)
        return JSONResponse({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        """Return counts in the text format of Prometheus."""
        check_key(request, self._access)
        values = dict(self.batcher.counts)
        values["seq2seq_lines_waiting"] = len(self.batcher.waiting)
        lines = []
        for metric, (kind, description) in _METRICS.items():
            lines += [f"# HELP {metric} {description}\n", f"# TYPE {metric} {kind}\n"]
            for name, value in sorted(values.items()):
                if name.startswith(metric):
                    lines.append(f"{name} {value:.12g}\n")
        return PlainTextResponse("".join(lines))

    async def openapi(self, _: Request) -> Response:
        """Return this description of the server, as OpenAPI."""
        return JSONResponse(describe_api(self._routes, _PARAMETERS))

    async def show_page(self, request: Request) -> Response:
        """Return the page of the runs. A browser asks for the key as a password."""
        try:
            check_key(request, self._access)
        except HTTPException:
            challenge = {"WWW-Authenticate": 'Basic realm="seq2seq"'}
            return PlainTextResponse("expected the key as password", 401, challenge)
        return await self.page.answer(request)

    async def _choose_pair(
        self, asked: Translation, source: str, target: str
    ) -> tuple[Pair, float | None]:
        """Return the languages of a translation. If the request names no source language, the
        language is detected, and the second value is its probability in percent.

        Raises:
            HTTPException: the languages are not served.
        """
        is_detected = source in ("", "auto")
        pairs = []
        for pair in self._served:
            if pair[1] == target and (is_detected or pair[0] == source):
                pairs.append(pair)
        if not pairs:
            served = ", ".join(map(" to ".join, self._served))
            raise HTTPException(
                400, f"source, target: expected languages that are served: {served}"
            )
        if not is_detected:
            return pairs[0], None
        shares = await self.batcher.run(detect, asked.texts, pairs)
        [(language, share), *_] = shares.items()
        return (language, target), share

    async def _translate(
        self,
        request: Request | None,
        pair: Pair,
        asked: Translation,
        num_results: int = 1,
        glossary: Glossary = (),
    ) -> list[Answer]:
        """Return for each text of a request at most `num_results` translations. Stop if the client
        hangs up.

        Args:
            request: The request of a client that waits for the result. None if the client asks for
                the result later.

        Raises:
            ClientDisconnect: the client has hung up.
        """
        work = asyncio.ensure_future(
            self.batcher.translate(pair, asked.texts, num_results, asked.split_sentences, glossary)
        )
        if request is None:
            return await work
        hang_up = asyncio.ensure_future(request.receive())  # no other message can follow
        await asyncio.wait({work, hang_up}, return_when=asyncio.FIRST_COMPLETED)
        hang_up.cancel()
        if not work.done():
            work.cancel()
            raise ClientDisconnect
        return await work


def _allow_origins(origins: Sequence[str]) -> list[Middleware]:
    """Return the middleware that allows web pages of other origins to ask."""
    if not origins:
        return []
    methods = ["GET", "POST"]
    return [
        Middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=methods, allow_headers=["*"]
        )
    ]


def _name_language(code: str) -> JsonObject:
    """Return the code and the English name of a language."""
    return {"code": code, "name": english_name(code).title()}


async def refuse(_: Request, error: Exception) -> Response:
    """Return the answer to a rejected request. Clients of LibreTranslate read the field `error`,
    and clients of DeepL the field `message`."""
    assert isinstance(error, HTTPException)
    content = {"error": error.detail, "message": error.detail}
    return JSONResponse(content, error.status_code, headers=error.headers)
