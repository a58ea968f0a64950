"""The door for programs: HTTP with JSON, server-sent events, OpenAPI; on Starlette and uvicorn."""

from dragoman.surfaces.http.app import build_app
from dragoman.surfaces.http.door import HttpDeps, Timeouts
from dragoman.surfaces.http.exposure import check_host_settings
from dragoman.surfaces.http.server import HttpServer

__all__ = ["HttpDeps", "HttpServer", "Timeouts", "build_app", "check_host_settings"]
