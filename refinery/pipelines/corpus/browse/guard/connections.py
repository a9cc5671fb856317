"""Connections of the server of `refinery browse`.

A connection that sends its request too slowly, or does not read its answer, is closed. Held connections would keep
others out."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

ARRIVAL = 10.0  # seconds between two looks at a connection


class BoundedConnection(H11Protocol):
    """A connection that is closed if it has no whole request at work at two looks in a row, and began none between
    them. While a request is worked on it is left alone: that has a bound of its own."""

    _look: asyncio.TimerHandle | None = None
    _seen: object = ""  # the request of the look before; None of a connection without one

    def connection_made(self, transport: Any) -> None:
        """As of asyncio's Protocol."""
        super().connection_made(transport)
        self._again()

    def connection_lost(self, exc: Exception | None) -> None:
        """As of asyncio's Protocol."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _again(self) -> None:
        self._look = self.loop.call_later(ARRIVAL, self._check)

    def _check(self) -> None:
        request = self.cycle
        is_worked_on = request is not None and not request.more_body and not request.response_complete
        if not is_worked_on and request is self._seen:
            self.transport.abort()  # `close` would wait for what is not read
            return
        self._seen = request
        self._again()
