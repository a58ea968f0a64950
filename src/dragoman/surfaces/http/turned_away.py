"""Applications for requests that come no further than to the server: each answers why."""

from starlette.types import Receive, Scope, Send

from dragoman.surfaces.http.problems import problem_error

MAX_HEAD_BYTES = 64 * 1024
"""Bytes of the head of a request, path and headers together."""


async def reject_two_hosts(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request whose target names another host than its header."""
    detail = "the target of the request names another host than its header Host; send the path only"
    problem = problem_error("invalid_request", detail, connection="close")
    await problem.response()(scope, receive, send)


async def reject_too_many_connections(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request on one connection too many."""
    detail = "the hub has as many connections as it can hold; try again"
    await problem_error("overloaded", detail, connection="close").response()(scope, receive, send)


async def reject_long_head(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request whose head is too long."""
    detail = f"the head of the request, address and headers, has more than {MAX_HEAD_BYTES} bytes"
    problem = problem_error("message_too_large", detail, connection="close")
    await problem.response()(scope, receive, send)


async def reject_bypassed_proxy(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request that did not come through the configured proxy."""
    problem = problem_error(
        "not_by_proxy",
        "the hub is called through its proxy, which ends TLS: a request that bypasses it could be "
        "read by others; if this is the proxy, list its address in http.proxy",
        connection="close",
    )
    await problem.response()(scope, receive, send)
