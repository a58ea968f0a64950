"""OpenAPI 3.1, generated from the endpoints and their shapes, and the page that shows it
offline.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from http import HTTPStatus
from itertools import chain
from pathlib import Path
from re import DOTALL, findall
from typing import Any, cast

import msgspec
from starlette.responses import Response

from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import CBOR, JSON, Endpoint
from dragoman.surfaces.http.errors import PROBLEM_MEDIA_TYPE, STATUS_BY_CODE, Problem
from dragoman.surfaces.http.parameters import (
    AGENT_PATH_PATTERN,
    HANDOFF_PATH_PATTERN,
    QUESTION_PATH_PATTERN,
    TASK_PATH_PATTERN,
)

# --- the document -----------------------------------------------------------------------------

_REF = "#/components/schemas/{name}"

_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repeated key changes nothing and returns the first response.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[ -~]+$"},
}

_LAST_EVENT = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "Position after which the stream resumes.",
    "schema": {"type": "string", "pattern": "^[0-9]{1,16}$"},
}

_LOCATION = {
    "Location": {"description": "URL of the new resource.", "schema": {"type": "string"}},
}

Schema = dict[str, Any]


def build_document(endpoints: Sequence[Endpoint], dialects: Sequence[str], version: str) -> Schema:
    """Build the whole document."""
    schemas = _Schemas(endpoints, dialects)
    paths: dict[str, Schema] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dragoman",
            "version": version,
            "summary": "A durable hub where software agents hand work to one another.",
            "description": "Errors are problem documents (RFC 9457) with a stable `code`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "responses": {"Problem": _problem_response(schemas)},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


class _Schemas:
    """The schemas of all endpoints, each described once."""

    def __init__(self, endpoints: Sequence[Endpoint], dialects: Sequence[str]) -> None:
        self._dialects = [*dialects]
        shapes = [
            shape
            for one in endpoints
            for shape in (one.body, one.response, one.query, *chain(*one.other_media.values()))
        ]
        self._shapes = [shape for shape in [*shapes, Problem] if shape is not None]
        described, components = msgspec.json.schema_components(
            self._shapes, ref_template=_REF, schema_hook=_any_json
        )
        self._described = described
        self._all_components = cast(dict[str, Schema], components)
        queries = {endpoint.query.__name__ for endpoint in endpoints}
        self.components = {
            name: s for name, s in self._all_components.items() if name not in queries
        }

    def schema_of(self, shape: Any) -> Schema:
        """Return the schema of a shape where it is used."""
        return next(
            found
            for known, found in zip(self._shapes, self._described, strict=True)
            if known is shape
        )

    def is_optional(self, shape: Any) -> bool:
        """Return whether a body of this shape may be left out."""
        schema = self.schema_of(shape)
        name = schema.get("$ref", "").rpartition("/")[2]
        return name in self._all_components and not self._all_components[name].get("required")

    def parameters(self, endpoint: Endpoint) -> Iterator[Schema]:
        """Yield the query parameters of an endpoint."""
        shape = self._all_components[endpoint.query.__name__]
        required = frozenset(shape.get("required", ()))
        for name, schema in shape.get("properties", {}).items():
            plain = {**schema}
            description = plain.pop("description", "")
            if plain.get("type") == "string":
                # An omitted value is not an empty one; a pattern says itself how short it may be.
                plain.pop("default", None)
                plain |= {} if "pattern" in plain else {"minLength": 1}
            if name in ("dialect", "speaks"):
                # The dialects are known when the application is built.
                plain["enum"] = self._dialects
            parameter = {"name": name, "in": "query", "description": description, "schema": plain}
            yield {**parameter, "required": True} if name in required else parameter


def _any_json(_: type) -> Schema:
    """Describe a value that is passed on as it is."""
    return {"description": "any JSON"}


def _operation(endpoint: Endpoint, schemas: _Schemas) -> Schema:
    described: Schema = {
        "summary": endpoint.summary,
        "operationId": _operation_id(endpoint),
        "tags": [_tag(endpoint)],
        "parameters": [*_operation_parameters(endpoint, schemas)],
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.is_open:
        described["security"] = []
    if endpoint.body is not None:
        schema = schemas.schema_of(endpoint.body)
        described["requestBody"] = {
            "required": not schemas.is_optional(endpoint.body),
            "content": {media: {"schema": schema} for media in endpoint.accepts},
        }
    return described


_NAME_PATTERNS = {"/v1/agents": AGENT_PATH_PATTERN, "/v1/handoffs": HANDOFF_PATH_PATTERN}
"""Beginning of a path -> pattern of the names in it; all others name tasks."""


def _name_pattern(path: str, parameter: str) -> str:
    if parameter == "question":
        return QUESTION_PATH_PATTERN
    return next(
        (form for begin, form in _NAME_PATTERNS.items() if path.startswith(begin)),
        TASK_PATH_PATTERN,
    )


def _operation_parameters(endpoint: Endpoint, schemas: _Schemas) -> Iterator[Schema]:
    for name in re.findall(r"\{(\w+)\}", endpoint.path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": _name_pattern(endpoint.path, name)},
        }
    yield from schemas.parameters(endpoint)
    if endpoint.method == "POST":
        yield _IDEMPOTENCY_KEY
    if endpoint.media_type == "text/event-stream":
        yield _LAST_EVENT


def _responses(endpoint: Endpoint, schemas: _Schemas) -> Schema:
    content: Schema = {"schema": {"type": "string"}}
    if endpoint.response is not None:
        content = {"schema": schemas.schema_of(endpoint.response)}
    answers: Schema = {
        str(endpoint.status): {
            "description": HTTPStatus(endpoint.status).phrase,
            "content": {endpoint.media_type: content},
        }
    }
    if endpoint.status == HTTPStatus.NO_CONTENT:
        del answers[str(endpoint.status)]["content"]
    if endpoint.supports_cbor:
        answers[str(endpoint.status)]["content"][CBOR] = content
    for media, shapes in endpoint.other_media.items():
        names = " or ".join(shape.__name__ for shape in shapes)
        lines = {"type": "string", "description": f"A JSON object in each line: {names}."}
        answers[str(endpoint.status)]["content"][media] = {"schema": lines}
    for status, meaning in endpoint.other_statuses.items():
        answers[str(status)] = {"description": meaning}
        if status >= 400:
            answers[str(status)]["content"] = {endpoint.media_type: content}
    if endpoint.status == HTTPStatus.CREATED:
        answers[str(endpoint.status)]["headers"] = _LOCATION
    default: Schema = {"$ref": "#/components/responses/Problem"}
    if endpoint.has_dialect_errors:
        default = {
            "description": "A refusal in the form of the dialect, or a problem.",
            "content": {
                JSON: {"schema": {}},
                PROBLEM_MEDIA_TYPE: {"schema": schemas.schema_of(Problem)},
            },
        }
    return answers | {"default": default}


def _problem_response(schemas: _Schemas) -> Schema:
    codes = ", ".join(f"`{code}` ({status})" for code, status in STATUS_BY_CODE.items())
    return {
        "description": f"What went wrong. Codes: {codes}.",
        "content": {PROBLEM_MEDIA_TYPE: {"schema": schemas.schema_of(Problem)}},
    }


def _operation_id(endpoint: Endpoint) -> str:
    words = re.findall(r"\w+", endpoint.path.removeprefix("/v1"))
    return "_".join((endpoint.method.lower(), *words))


def _tag(endpoint: Endpoint) -> str:
    first = endpoint.path.removeprefix("/v1/").strip("/").partition("/")[0]
    return first if endpoint.path.startswith("/v1/") else "hub"


# --- the page ---------------------------------------------------------------------------------

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


async def show_docs(_: Call) -> Response:
    """Show the page; it fetches /openapi.json itself."""
    return Response(_DOCS_PAGE, headers=_DOCS_HEADERS, media_type="text/html")


def document_endpoints(document: bytes) -> tuple[Endpoint, ...]:
    """Build the endpoints that publish the document; they are not part of it."""

    async def show_openapi(_: Call) -> Response:
        return Response(document, media_type=JSON)

    return (
        Endpoint("GET", "/openapi.json", show_openapi, is_open=True),
        Endpoint("GET", "/docs", show_docs, media_type="text/html", is_open=True),
    )
