"""MCP for a hub elsewhere: whether it is there and lets us in is seen before the SDK is loaded."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus

import httpx2
import msgspec
from msgspec import Struct

from dragoman.core.errors import Refusal, Refused, StoreUnavailable
from dragoman.surfaces.mcp.mount import PATH

_TIMEOUT = httpx2.Timeout(30.0, read=300.0)

TlsVerification = ssl.SSLContext | bool
"""Verification of the hub's certificate."""


@asynccontextmanager
async def connect_remote(
    url: str, token: str, profile: str, tls: TlsVerification = True
) -> AsyncGenerator[tuple[httpx2.AsyncClient, str]]:
    """Connect to the hub's MCP with this token; yield the client and the address, after a check."""
    address = url.rstrip("/") + PATH + (f"/{profile}" if profile else "")
    headers = {"Authorization": f"Bearer {token}"}
    # The environment of a process may name a proxy, which must not see the token.
    async with httpx2.AsyncClient(
        headers=headers, timeout=_TIMEOUT, verify=tls, trust_env=False
    ) as client:
        # An error that every request would meet is reported at the start.
        await check_reachable(client, address)
        yield client, address


class _Problem(Struct, frozen=True):
    code: str
    detail: str


async def check_reachable(client: httpx2.AsyncClient, address: str) -> None:
    """Check that the hub answers and accepts the token; else raise, with the hub's own words."""
    try:
        response = await client.post(address, json={})
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise StoreUnavailable(
            f"the hub at {address} does not answer ({error}); is it running, and is "
            "DRAGOMAN_URL its address?"
        ) from error
    if response.headers.get("content-type") == "application/problem+json":
        problem = msgspec.json.decode(response.content, type=_Problem)
        raise Refused(Refusal(problem.code, problem.detail))
    # A hub refuses an empty message as a bad request.
    if response.status_code != HTTPStatus.BAD_REQUEST:
        raise StoreUnavailable(
            f"{address} answers with {response.status_code}, which no hub does: is "
            "DRAGOMAN_URL right?"
        )
