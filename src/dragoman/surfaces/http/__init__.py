"""HTTP surface: JSON, server-sent events and OpenAPI, on Starlette and uvicorn."""

from dragoman.surfaces.http.app import build_app
from dragoman.surfaces.http.auth import check_host_settings
from dragoman.surfaces.http.deps import HttpDeps, Timeouts
from dragoman.surfaces.http.server import HttpServer

__all__ = [
    "HttpDeps",
    "HttpServer",
    "Timeouts",
    "build_app",
    "check_host_settings",
]
