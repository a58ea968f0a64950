"""CORS: what a web page of another origin may send, and which headers it may read."""

from collections.abc import Mapping

Headers = list[tuple[bytes, bytes]]

_REQUEST_METHOD = b"access-control-request-method"

_ALLOWED_METHODS = b"GET, HEAD, POST, DELETE"
"""All methods that any path accepts, MCP included."""

_ALLOWED_HEADERS = (
    b"authorization, content-type, idempotency-key, if-none-match, last-event-id, mcp-method, "
    b"mcp-name, mcp-protocol-version, mcp-session-id"
)

_EXPOSED_HEADERS = (
    b"dragoman-warning, etag, location, mcp-session-id, retry-after, www-authenticate"
)

_MAX_AGE_S = b"600"


def is_preflight(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a browser asks what a page may send, before it sends anything."""
    return method == "OPTIONS" and b"origin" in headers and _REQUEST_METHOD in headers


def cors_headers(origin: bytes) -> Headers:
    """Build the CORS headers of a response to a page of this origin, which was checked before."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED_HEADERS),
        (b"vary", b"origin"),
    ]


PREFLIGHT_HEADERS: Headers = [
    (b"access-control-allow-methods", _ALLOWED_METHODS),
    (b"access-control-allow-headers", _ALLOWED_HEADERS),
    (b"access-control-max-age", _MAX_AGE_S),
]
"""Further headers of the response to a preflight."""
