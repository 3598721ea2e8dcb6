"""Keep translated documents in memory until their clients fetch them, at most `KEEP_S` seconds."""

import asyncio
import uuid
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from seq2seq_attn.serve.requests import read_values

KEEP_S = 600
"""number of seconds for which a document is kept"""
KEEP_FAILED_S = 60
"""number of seconds for which a failed document is kept, unless its status is asked for earlier"""
MAX_KEPT = 100
"""maximum number of kept documents"""
WAIT_S = 4
"""Maximum number of seconds until a request for the status of a document is answered. The client of
DeepL asks again 5 seconds after an answer, and gives up after 10 seconds without an answer."""
Work = asyncio.Future[tuple[bytes, dict[str, Any]]]
"""a translated document, and further fields of the answer to its client"""


class Downloads:
    """Keeps documents under names that nobody can guess. In DeepL's API, the first half of the name
    is the id of the document, and the second half is its key."""

    def __init__(self) -> None:
        self._kept: dict[str, Work] = {}
        self.routes = [
            Route("/download_file/{name}", self.fetch),
            Route("/v2/document/{name}", self.show, methods=["POST"]),
            Route("/v2/document/{name}/result", self.fetch, methods=["POST"]),
        ]

    def keep(self, work: Work, suffix: str) -> str:
        """Keep a document, whose translation may still be in progress, and return its name. Raises
        HTTPException: too many documents are kept."""
        if len(self._kept) >= MAX_KEPT:
            work.cancel()
            raise HTTPException(429, "too many documents are kept; try again later")
        name = f"{uuid.uuid4()}.{suffix}"
        self._kept[name] = work
        asyncio.get_running_loop().call_later(KEEP_S, self._kept.pop, name, None)
        work.add_done_callback(partial(self._limit_failed, name))
        return name

    def _limit_failed(self, name: str, work: Work) -> None:
        """Keep a document for a shorter time if its translation failed."""
        if work.cancelled() or work.exception():
            asyncio.get_running_loop().call_later(KEEP_FAILED_S, self._kept.pop, name, None)

    async def show(self, request: Request) -> Response:
        """Return the status of a document, in DeepL's API. The request has the `document_key`."""
        name = await self._find(request)
        work = self._kept[name]
        status = {"document_id": request.path_params["name"], "status": "translating"}
        await asyncio.wait({work}, timeout=WAIT_S)
        if work.done():
            if work.exception():
                self._kept.pop(name, None)
            status |= {"status": "done", **work.result()[1]}
        return JSONResponse(status)

    async def fetch(self, request: Request) -> Response:
        """Return a document as a download, so that no browser shows the document as a page of the
        server. In DeepL's API, the request has the `document_key`, and the document can be
        downloaded once."""
        name = await self._find(request)
        work = self._kept.pop(name) if request.method == "POST" else self._kept[name]
        content, _ = await work
        return Response(
            content, 200, {"Content-Disposition": "attachment"}, "application/octet-stream"
        )

    async def _find(self, request: Request) -> str:
        """Return the name of the document that a request asks for. Raises HTTPException: no such
        document is kept."""
        name: str = request.path_params["name"]
        if request.method == "POST":
            name += f".{(await read_values(request)).get('document_key')}"
        if name not in self._kept:
            raise HTTPException(404, f"no such document; documents are kept for {KEEP_S} s")
        return name
