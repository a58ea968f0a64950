"""OpenAPI 3.1, written from the table of endpoints and the shapes that they check."""

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Any, cast

import msgspec

from dragoman.surfaces.http.endpoint import CBOR, JSON, Endpoint
from dragoman.surfaces.http.names import AGENT, HANDOFF, TASK
from dragoman.surfaces.http.problems import MEDIA, STATUS, Problem

_REF = "#/components/schemas/{name}"

_KEY = {
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
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "`ETag` of the copy that the caller has: 304 while it is unchanged.",
    "schema": {"type": "string"},
}
_ETAG = {
    "ETag": {"description": "Changes with the content.", "schema": {"type": "string"}},
}
_LOCATION = {
    "Location": {"description": "URL of the new resource.", "schema": {"type": "string"}},
}

Schema = dict[str, Any]


def describe(endpoints: Sequence[Endpoint], dialects: Sequence[str], version: str) -> Schema:
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
            "responses": {"Problem": _problem(schemas)},
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
            for shape in (one.body, one.answer, one.query, *chain(*one.also.values()))
        ]
        self._shapes = [shape for shape in [*shapes, Problem] if shape is not None]
        described, components = msgspec.json.schema_components(
            self._shapes, ref_template=_REF, schema_hook=_anything
        )
        self._described = described
        self._all = cast(dict[str, Schema], components)
        queries = {endpoint.query.__name__ for endpoint in endpoints}
        self.components = {name: s for name, s in self._all.items() if name not in queries}

    def of(self, shape: Any) -> Schema:
        """Return the schema of a shape where it is used."""
        return next(
            found
            for known, found in zip(self._shapes, self._described, strict=True)
            if known is shape
        )

    def can_be_empty(self, shape: Any) -> bool:
        """Return whether a body of this shape may be left out."""
        schema = self.of(shape)
        name = schema.get("$ref", "").rpartition("/")[2]
        return name in self._all and not self._all[name].get("required")

    def parameters(self, endpoint: Endpoint) -> Iterator[Schema]:
        """Yield the query parameters of an endpoint."""
        shape = self._all[endpoint.query.__name__]
        required = frozenset(shape.get("required", ()))
        for name, schema in shape.get("properties", {}).items():
            plain = {**schema}
            words = plain.pop("description", "")
            if plain.get("type") == "string":
                # An omitted value is not an empty one; a pattern says itself how short it may be.
                plain.pop("default", None)
                plain |= {} if "pattern" in plain else {"minLength": 1}
            if name in ("dialect", "speaks"):
                # The dialects are known when the application is built.
                plain["enum"] = self._dialects
            told = {"name": name, "in": "query", "description": words, "schema": plain}
            yield {**told, "required": True} if name in required else told


def _anything(_: type) -> Schema:
    """Describe a value that is passed on as it is."""
    return {"description": "any JSON"}


def _operation(endpoint: Endpoint, schemas: _Schemas) -> Schema:
    described: Schema = {
        "summary": endpoint.summary,
        "operationId": _identifier(endpoint),
        "tags": [_tag(endpoint)],
        "parameters": [*_parameters(endpoint, schemas)],
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.is_open:
        described["security"] = []
    if endpoint.body is not None:
        schema = schemas.of(endpoint.body)
        described["requestBody"] = {
            "required": not schemas.can_be_empty(endpoint.body),
            "content": {media: {"schema": schema} for media in endpoint.takes},
        }
    return described


_NAMES = {"/v1/agents": AGENT, "/v1/handoffs": HANDOFF}
"""Beginning of a path -> pattern of the names in it; all others name tasks."""


def _names_at(path: str) -> str:
    return next((form for begin, form in _NAMES.items() if path.startswith(begin)), TASK)


def _parameters(endpoint: Endpoint, schemas: _Schemas) -> Iterator[Schema]:
    for name in re.findall(r"\{(\w+)\}", endpoint.path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": _names_at(endpoint.path)},
        }
    yield from schemas.parameters(endpoint)
    if endpoint.method == "POST":
        yield _KEY
    if endpoint.media == "text/event-stream":
        yield _LAST_EVENT
    if _has_tag(endpoint):
        yield _IF_NONE_MATCH


def _has_tag(endpoint: Endpoint) -> bool:
    return endpoint.method == "GET" and endpoint.media == JSON


def _responses(endpoint: Endpoint, schemas: _Schemas) -> Schema:
    content: Schema = {"schema": {"type": "string"}}
    if endpoint.answer is not None:
        content = {"schema": schemas.of(endpoint.answer)}
    answers: Schema = {
        str(endpoint.status): {
            "description": HTTPStatus(endpoint.status).phrase,
            "content": {endpoint.media: content},
        }
    }
    if endpoint.in_cbor:
        answers[str(endpoint.status)]["content"][CBOR] = content
    for media, shapes in endpoint.also.items():
        names = " or ".join(shape.__name__ for shape in shapes)
        lines = {"type": "string", "description": f"A JSON object in each line: {names}."}
        answers[str(endpoint.status)]["content"][media] = {"schema": lines}
    for status, meaning in endpoint.others.items():
        answers[str(status)] = {"description": meaning}
        if status >= 400:
            answers[str(status)]["content"] = {endpoint.media: content}
    if endpoint.status == HTTPStatus.CREATED:
        answers[str(endpoint.status)]["headers"] = _LOCATION
    if _has_tag(endpoint):
        answers[str(endpoint.status)]["headers"] = _ETAG
        answers["304"] = {"description": "Not modified: the ETag matches."}
    default: Schema = {"$ref": "#/components/responses/Problem"}
    if endpoint.own_no:
        default = {
            "description": "A refusal in the form of the dialect, or a problem.",
            "content": {JSON: {"schema": {}}, MEDIA: {"schema": schemas.of(Problem)}},
        }
    return answers | {"default": default}


def _problem(schemas: _Schemas) -> Schema:
    codes = ", ".join(f"`{code}` ({status})" for code, status in STATUS.items())
    return {
        "description": f"What went wrong. Codes: {codes}.",
        "content": {MEDIA: {"schema": schemas.of(Problem)}},
    }


def _identifier(endpoint: Endpoint) -> str:
    words = re.findall(r"\w+", endpoint.path.removeprefix("/v1"))
    return "_".join((endpoint.method.lower(), *words))


def _tag(endpoint: Endpoint) -> str:
    first = endpoint.path.removeprefix("/v1/").strip("/").partition("/")[0]
    return first if endpoint.path.startswith("/v1/") else "hub"
