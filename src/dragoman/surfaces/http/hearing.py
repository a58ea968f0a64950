"""Callers that say no more: whoever only wants an answer gets it, whoever waits has gone.

A caller that shuts its sending side and one that has left look the same until something is sent to
them. A request that is whole is answered all the same, which does no harm if nobody hears it. But
for whoever watches whether the caller leaves, as those do who wait or stream, it has left then.
"""

from starlette.types import Message, Receive, Scope

_NAME = "dragoman.hearing"


class Hearing:
    """The state of the client of one request."""

    is_watched = False
    """True while a task receives beyond the end of the request, to notice a disconnect."""
    has_ended = False
    """True if the client has shut down its sending side."""
    has_left = False
    """True if its connection has ended, so that it receives nothing any more, either."""


def lay_hearing(scope: Scope) -> None:
    """Attach the connection state to the scope of a request."""
    scope[_NAME] = Hearing()


def hearing_of(scope: Scope) -> Hearing:
    """Return the connection state of a request on a connection of our own server."""
    return scope[_NAME]


def has_left(scope: Scope) -> bool:
    """Return whether the client of a request is disconnected, as far as its server knows."""
    hearing: Hearing | None = scope.get(_NAME)
    return hearing is not None and hearing.has_left


def until_it_ends(scope: Scope, receive: Receive) -> Receive:
    """Wrap `receive`: behind a complete request, a half-closed connection is a disconnect."""
    hearing: Hearing | None = scope.get(_NAME)
    if hearing is None:
        return receive
    is_whole = False

    async def received() -> Message:
        nonlocal is_whole
        if is_whole:
            if hearing.has_ended:
                return {"type": "http.disconnect"}
            hearing.is_watched = True
        try:
            message = await receive()
        finally:
            # A long poll that has waited has its response now: its client may half-close while it
            # is sent.
            hearing.is_watched = False
        is_whole = not message.get("more_body", False)
        return message

    return received
