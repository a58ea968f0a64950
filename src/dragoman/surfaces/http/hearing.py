"""Callers that say no more: whoever only wants an answer gets it, whoever waits has gone.

A caller that shuts its sending side and one that has left look the same until something is sent to
them. A request that is whole is answered all the same, which does no harm if nobody hears it. But
for whoever watches whether the caller leaves, as those do who wait or stream, it has left then.
"""

from starlette.types import Message, Receive, Scope

_NAME = "dragoman.hearing"


class Hearing:
    """What is known of the caller of one request."""

    is_watched = False
    """Whether somebody asks for more than the request right now, to learn of its departure."""
    has_ended = False
    """Whether it says no more."""
    has_left = False
    """Whether its connection has ended: it hears no more, either."""


def lay_hearing(scope: Scope) -> None:
    """Into the scope of a request."""
    scope[_NAME] = Hearing()


def hearing_of(scope: Scope) -> Hearing:
    """What is known of the caller of a request, on a connection of our own server."""
    return scope[_NAME]


def has_left(scope: Scope) -> bool:
    """Whether the caller of a request hears nothing any more, where its server knows."""
    hearing: Hearing | None = scope.get(_NAME)
    return hearing is not None and hearing.has_left


def until_it_ends(scope: Scope, receive: Receive) -> Receive:
    """How a request is received, with the end of its caller's words behind it."""
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
            # Whoever has waited has its answer now, and is told it: it may say no more then.
            hearing.is_watched = False
        is_whole = not message.get("more_body", False)
        return message

    return received
