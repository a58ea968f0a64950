"""Disconnected and half-closed clients of a request.

A client that shuts down its sending side looks like one that is gone, until something is sent to
it. A complete request is answered all the same, which does no harm; a stream or long poll counts as
disconnected.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.types import Message, Receive, Scope

from dragoman.surfaces.http.waiter import Waiter

# --- half-closed connections ------------------------------------------------------------------

_SCOPE_KEY = "dragoman.hearing"


class ConnectionState:
    """The state of the client of one request."""

    is_watched = False
    """True while a task receives beyond the end of the request, to notice a disconnect."""
    is_half_closed = False
    """True if the client has shut down its sending side."""
    is_disconnected = False
    """True if its connection has ended, so that it receives nothing any more, either."""


def attach_connection_state(scope: Scope) -> None:
    """Attach the connection state to the scope of a request."""
    scope[_SCOPE_KEY] = ConnectionState()


def connection_state(scope: Scope) -> ConnectionState:
    """Return the connection state of a request on a connection of our own server."""
    return scope[_SCOPE_KEY]


def is_disconnected(scope: Scope) -> bool:
    """Return whether the client of a request is disconnected, as far as its server knows."""
    state: ConnectionState | None = scope.get(_SCOPE_KEY)
    return state is not None and state.is_disconnected


def receive_until_half_close(scope: Scope, receive: Receive) -> Receive:
    """Wrap `receive`: behind a complete request, a half-closed connection is a disconnect."""
    state: ConnectionState | None = scope.get(_SCOPE_KEY)
    if state is None:
        return receive
    is_whole = False

    async def receive_or_disconnect() -> Message:
        nonlocal is_whole
        if is_whole:
            if state.is_half_closed:
                return {"type": "http.disconnect"}
            state.is_watched = True
        try:
            message = await receive()
        finally:
            # A long poll that has waited has its response now: its client may half-close while it
            # is sent.
            state.is_watched = False
        is_whole = not message.get("more_body", False)
        return message

    return receive_or_disconnect


# --- disconnects of a waiter ------------------------------------------------------------------


@asynccontextmanager
async def watch_disconnect(receive: Receive, waiter: Waiter) -> AsyncGenerator[None]:
    """Disconnect the waiter if the connection ends meanwhile."""
    watcher = asyncio.create_task(_close_on_disconnect(receive, waiter))
    try:
        yield
    finally:
        watcher.cancel()


async def _close_on_disconnect(receive: Receive, waiter: Waiter) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    waiter.disconnect()
