"""Translated documents, which stay in memory for a while, until their clients fetch them."""

import asyncio
import uuid

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

KEEP_S = 600
"""number of seconds for which a document is kept"""
MAX_KEPT = 100
"""maximum number of kept documents"""


class Downloads:
    """Keeps documents under names that nobody can guess."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self.route = Route("/download_file/{name}", self.answer)

    def keep(self, content: bytes, suffix: str) -> str:
        """Keep a document and return the path of its URL. Raises HTTPException: too many are
        kept."""
        if len(self._kept) >= MAX_KEPT:
            raise HTTPException(429, "too many documents are kept; try again later")
        name = f"{uuid.uuid4()}.{suffix}"
        self._kept[name] = content
        asyncio.get_running_loop().call_later(KEEP_S, self._kept.pop, name)
        return f"download_file/{name}"

    async def answer(self, request: Request) -> Response:
        """Return a document as a download, so that no browser shows it as a page of the server."""
        name = request.path_params["name"]
        if name not in self._kept:
            raise HTTPException(404, f"no such document; documents are kept for {KEEP_S} s")
        headers = {"Content-Disposition": "attachment"}
        return Response(self._kept[name], 200, headers, "application/octet-stream")
