"""Applications for requests that come no further than to the server: each answers why."""

from starlette.types import Receive, Scope, Send

from dragoman.surfaces.http.problems import stop

MOST_HEAD = 64 * 1024
"""Bytes of the head of a request, path and headers together."""


async def for_two_hosts(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request whose target names another host than its header."""
    two = "the target of the request names another host than its header Host; send the path only"
    problem = stop("invalid_request", two, connection="close")
    await problem.response()(scope, receive, send)


async def too_many(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request on one connection too many."""
    full = "the hub has as many connections as it can hold; try again"
    await stop("overloaded", full, connection="close").response()(scope, receive, send)


async def too_long(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request whose head is too long."""
    too_long = f"the head of the request, address and headers, has more than {MOST_HEAD} bytes"
    problem = stop("message_too_large", too_long, connection="close")
    await problem.response()(scope, receive, send)


async def past_the_proxy(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request that did not come through the configured proxy."""
    problem = stop(
        "not_by_proxy",
        "the hub is called through its proxy, which ends TLS: a request that bypasses it could be "
        "read by others; if this is the proxy, list its address in http.proxy",
        connection="close",
    )
    await problem.response()(scope, receive, send)
