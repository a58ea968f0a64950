"""The dashboard: the files that `ui/` is built to, served to browsers without a token.

They hold no data of the hub: the page asks for that by the API, as the person who signed in.
"""

import gzip
import mimetypes
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.surfaces.http.errors import problem_error

FOLDER: Final = Path(__file__).parent / "dashboard_files"

PAGES: Final = frozenset(("", "agents", "board", "handoffs", "inbox", "ledger", "sign-in", "tasks"))
"""First parts of the paths that the page shows; it finds out itself what stands at the rest."""

ROUTE: Final = "/"
"""The route of the dashboard in metrics."""

_CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

_HEADERS: Final = {
    "content-security-policy": _CONTENT_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "vary": "accept-encoding",
}

_NOT_BUILT: Final = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>dragoman</title></head><body>
<p>The hub runs, and its dashboard is not built, because npm could not fetch its packages: with a
network, <code>uv sync --reinstall-package dragoman</code> builds it; then start the hub again.</p>
<p><a href="/docs">The API</a> answers all the same.</p>
</body></html>
"""


class DashboardFile(Struct, frozen=True):
    """A built file, as it is sent."""

    content: bytes
    compressed: bytes
    media_type: str
    etag: str
    is_immutable: bool
    """True if its name holds a digest of its content."""


def load_dashboard(folder: Path = FOLDER) -> Mapping[str, DashboardFile]:
    """Load the built files by their paths; where nothing is built, a page that says so."""
    if not (folder / "index.html").is_file():
        return {"/": _to_file(_NOT_BUILT, "text/html; charset=utf-8")}
    page = (folder / "index.html").read_bytes()
    icon = (folder / "icon.svg").read_bytes()
    files = {
        "/": _to_file(page, "text/html; charset=utf-8"),
        "/icon.svg": _to_file(icon, "image/svg+xml"),
    }
    for path in sorted((folder / "assets").iterdir()):
        file = _to_file(path.read_bytes(), _media_type(path), is_immutable=True)
        files[f"/assets/{path.name}"] = file
    return files


def _media_type(path: Path) -> str:
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"


def _to_file(content: bytes, media_type: str, *, is_immutable: bool = False) -> DashboardFile:
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    # A font is compressed already.
    compressed = b"" if media_type.startswith("font/") else gzip.compress(content, 9, mtime=0)
    return DashboardFile(content, compressed, media_type, etag, is_immutable)


class Dashboard:
    """The ASGI application that sends the files."""

    def __init__(self, files: Mapping[str, DashboardFile]) -> None:
        self._files = files

    def serves(self, path: str) -> bool:
        """Return whether a path is one of the dashboard's."""
        return path in self._files or path[1:].partition("/")[0] in PAGES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["progress"].route = ROUTE
        if scope["method"] not in ("GET", "HEAD"):
            raise problem_error(
                "method_not_allowed", "a page is only read: use GET or HEAD", allow="GET, HEAD"
            )
        file = self._files.get(scope["path"]) or self._files["/"]
        await _to_response(file, scope["by_name"])(scope, receive, send)


def _to_response(file: DashboardFile, headers: Mapping[bytes, bytes]) -> Response:
    caching = "public, max-age=31536000, immutable" if file.is_immutable else "no-cache"
    sent = {**_HEADERS, "etag": file.etag, "cache-control": caching}
    if headers.get(b"if-none-match", b"") == file.etag.encode():
        return Response(status_code=304, headers=sent)
    if file.compressed and b"gzip" in headers.get(b"accept-encoding", b""):
        sent["content-encoding"] = "gzip"
        return Response(file.compressed, headers=sent, media_type=file.media_type)
    return Response(file.content, headers=sent, media_type=file.media_type)
