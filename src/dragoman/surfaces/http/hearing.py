"""Callers that say no more: whoever only wants an answer gets it, whoever waits has gone.

A caller that shuts its sending side and one that has left look the same until something is sent to
them. A request that is whole is answered all the same, which does no harm if nobody hears it. But
for whoever watches whether the caller leaves, as those do who wait or stream, it has left then.
"""

from starlette.types import Message, Receive, Scope

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
