"""The description of the API for programs, and the page that shows it to people, offline."""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from re import DOTALL, findall

from starlette.responses import Response

from dragoman.surfaces.http.endpoint import Endpoint, tagged
from dragoman.surfaces.http.office import Call

_PAGE = (Path(__file__).parent / "page.html").read_bytes()


def _source(tag: str) -> str:
    """Return the hash of the page's text between these tags, for its content security policy."""
    (inside,) = findall(rb"<%b>(.*?)</%b>" % (tag.encode(), tag.encode()), _PAGE, DOTALL)
    return f"'sha256-{b64encode(sha256(inside).digest()).decode()}'"


_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_source('script')}",
        f"style-src {_source('style')}",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {"content-security-policy": _POLICY}


async def page(call: Call) -> Response:
    """Show the page; it fetches /openapi.json itself."""
    return tagged(call.request.scope, _PAGE, "text/html", _HEADERS)


async def home(_: Call) -> Response:
    """Redirect a browser to the page."""
    return Response(status_code=307, headers={"location": "/docs"})


def documents(described: bytes) -> tuple[Endpoint, ...]:
    """Build the endpoints that publish the document; they are not part of it."""

    async def openapi(call: Call) -> Response:
        return tagged(call.request.scope, described)

    return (
        Endpoint("GET", "/", "Redirect to the page", home, status=307, is_open=True),
        Endpoint("GET", "/openapi.json", "This description", openapi, is_open=True),
        Endpoint(
            "GET", "/docs", "This description as a page", page, media="text/html", is_open=True
        ),
    )
