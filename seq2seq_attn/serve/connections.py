"""Limit the connections of the server: their number, and the time until a request arrives."""

import asyncio
import logging
import resource
import time
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

BACKLOG = 128
"""maximum number of connections that wait to be accepted"""
REQUEST_TIMEOUT_S = 10
"""maximum number of seconds until a connection has sent the headers of its first request"""
MAX_CONNECTIONS = min(1_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
"""Maximum number of open connections. Half of the file descriptors are left for connections beyond
this number, which are accepted before they are closed."""
LINGER_S = 2
"""number of seconds for which the body of a rejected request is read on after the answer"""
_LOG_INTERVAL_S = 60
"""minimum number of seconds between two warnings"""

log = logging.getLogger(__name__)


class Connection(H11Protocol):
    """A connection to a client. The connection is closed at once if too many connections are open,
    or if no request arrives within `REQUEST_TIMEOUT_S`."""

    logged_at: ClassVar[float] = -_LOG_INTERVAL_S

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            if time.monotonic() > Connection.logged_at + _LOG_INTERVAL_S:
                Connection.logged_at = time.monotonic()
                log.warning("%d connections are open; others are closed", MAX_CONNECTIONS)
            return
        self.loop.call_later(REQUEST_TIMEOUT_S, self._expire)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.more_body:  # clients that still send the body would not see the answer
            self.loop.call_later(LINGER_S, self._end_body, self.cycle)

    def _end_body(self, cycle: RequestResponseCycle) -> None:
        if self.cycle is cycle:  # there is no new request
            self.transport.abort()

    def _expire(self) -> None:
        if self.cycle is None:  # there was no request
            self.transport.abort()
