"""The page of the served runs, which a separate process writes when the server starts."""

import asyncio
import gzip
import logging
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

RETRY_S = 60
"""number of seconds after which a page that could not be written is tried again"""
_CHUNK_BYTES = 1 << 16
_HEADERS = {"Vary": "Accept-Encoding", "X-Frame-Options": "DENY"}

log = logging.getLogger(__name__)


class Page:
    """A page in memory. All answers share the bytes of the page."""

    def __init__(self, arguments: Sequence[str], is_current: Callable[[], bool]) -> None:
        """Prepare the page without writing it.

        Args:
            arguments: The arguments of `seq2seq export`.
            is_current: Returns whether no run was replaced since the server loaded the runs.
        """
        self._arguments = arguments
        self._is_current = is_current
        self._plain = b""
        self._compressed = b""
        self._began_at = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write the page, unless the page is written or being written, or could not be
        written within the last `RETRY_S` seconds."""
        if self._task is not None:
            has_waited = time.monotonic() > self._began_at + RETRY_S
            if self._plain or not self._task.done() or not has_waited:
                return
        self._began_at = time.monotonic()
        self._task = asyncio.create_task(self._write())

    async def answer(self, request: Request) -> Response:
        """Return the page, compressed if the client accepts this. Raises HTTPException: the page
        could not be written."""
        self.start()
        assert self._task is not None
        await asyncio.wait([self._task])
        if not self._plain:
            raise HTTPException(503, "there is no page; the log of the server says why")
        content = self._plain
        headers = dict(_HEADERS)
        if "gzip" in request.headers.get("accept-encoding", ""):
            content = self._compressed
            headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(content))
        return StreamingResponse(_chunks(content), 200, headers, "text/html")

    async def _write(self) -> None:
        """Write the page with parameters in full precision. Log the reason if this fails."""
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "page.html"
                error = await _export([*self._arguments, "-o", str(path)])
                if not error and not self._is_current():
                    error = "a run was replaced; restart the server to serve the new one"
                if error:
                    log.warning("the page of the runs: %s", error)
                    return
                plain = path.read_bytes()
            self._compressed = await asyncio.to_thread(gzip.compress, plain, 6)
            self._plain = plain
        except OSError as error:
            log.warning("the page of the runs: %s", error.strerror)


async def _export(arguments: Sequence[str]) -> str:
    """Run `seq2seq export` in a process. Return its last line of errors, or "" after success."""
    command = ["-m", "seq2seq_attn", "export", "--weights", "fp32", *arguments]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=PIPE, stderr=PIPE
    )
    try:
        _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode == 0:
        return ""
    return errors.decode(errors="replace").strip().rpartition("\n")[2]


async def _chunks(content: bytes) -> AsyncIterator[memoryview]:
    """Yield the content in parts, so that only a single part is held in memory for a client that
    does not read."""
    view = memoryview(content)
    for start in range(0, len(content), _CHUNK_BYTES):
        yield view[start : start + _CHUNK_BYTES]
        await asyncio.sleep(0)  # so that the server notices a client that has gone
