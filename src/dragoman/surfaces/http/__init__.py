"""The door for programs: HTTP with JSON, server-sent events, OpenAPI; on Starlette and uvicorn."""

from dragoman.surfaces.http.app import build_app
from dragoman.surfaces.http.door import Door, Patience
from dragoman.surfaces.http.exposure import check_exposure
from dragoman.surfaces.http.server import HttpServer

__all__ = ["Door", "HttpServer", "Patience", "build_app", "check_exposure"]
