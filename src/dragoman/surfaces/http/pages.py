"""The description of the API for programs, and the page that shows it to people, offline."""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from re import DOTALL, findall

from starlette.responses import Response

from dragoman.surfaces.http.endpoint import Endpoint, respond_with_etag
from dragoman.surfaces.http.office import Call

_DOCS_PAGE = (Path(__file__).parent / "page.html").read_bytes()


def _csp_hash(tag: str) -> str:
    """Return the hash of the page's text between these tags, for its content security policy."""
    (inside,) = findall(rb"<%b>(.*?)</%b>" % (tag.encode(), tag.encode()), _DOCS_PAGE, DOTALL)
    return f"'sha256-{b64encode(sha256(inside).digest()).decode()}'"


_CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_csp_hash('script')}",
        f"style-src {_csp_hash('style')}",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_DOCS_HEADERS = {"content-security-policy": _CONTENT_POLICY}


async def show_docs(call: Call) -> Response:
    """Show the page; it fetches /openapi.json itself."""
    return respond_with_etag(call.request.scope, _DOCS_PAGE, "text/html", _DOCS_HEADERS)


async def redirect_to_docs(_: Call) -> Response:
    """Redirect a browser to the page."""
    return Response(status_code=307, headers={"location": "/docs"})


def document_endpoints(document: bytes) -> tuple[Endpoint, ...]:
    """Build the endpoints that publish the document; they are not part of it."""

    async def show_openapi(call: Call) -> Response:
        return respond_with_etag(call.request.scope, document)

    return (
        Endpoint("GET", "/", "Redirect to the page", redirect_to_docs, status=307, is_open=True),
        Endpoint("GET", "/openapi.json", "This description", show_openapi, is_open=True),
        Endpoint(
            "GET",
            "/docs",
            "This description as a page",
            show_docs,
            media_type="text/html",
            is_open=True,
        ),
    )
