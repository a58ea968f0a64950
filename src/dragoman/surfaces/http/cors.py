"""What a browser has to be told before pages of another origin may read the hub's answers."""

from collections.abc import Mapping

Headers = list[tuple[bytes, bytes]]

_ASKED = b"access-control-request-method"
_METHODS = b"GET, HEAD, POST, DELETE"
"""All methods that any path accepts, MCP included."""
_SENT = (
    b"authorization, content-type, idempotency-key, if-none-match, last-event-id, mcp-method, "
    b"mcp-name, mcp-protocol-version, mcp-session-id"
)
_SHOWN = b"dragoman-warning, etag, location, mcp-session-id, retry-after, www-authenticate"
_KEPT_S = b"600"


def is_preflight(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a browser asks what a page may send, before it sends anything."""
    return method == "OPTIONS" and b"origin" in headers and _ASKED in headers


def answer_headers(origin: bytes) -> Headers:
    """Build the CORS headers of a response to a page of this origin, which was checked before."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _SHOWN),
        (b"vary", b"origin"),
    ]


PREFLIGHT: Headers = [
    (b"access-control-allow-methods", _METHODS),
    (b"access-control-allow-headers", _SENT),
    (b"access-control-max-age", _KEPT_S),
]
"""Further headers of the response to a preflight."""
