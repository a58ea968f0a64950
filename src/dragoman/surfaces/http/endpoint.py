"""Endpoints: path, shapes and handler of one HTTP operation in one place.

A request is checked here against the shapes of its endpoint, so a handler sees only valid values;
the same shapes are published as OpenAPI.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal, Refused
from dragoman.core.ids import check_key
from dragoman.core.limits import MAX_BODY
from dragoman.engine.auth import Principal
from dragoman.engine.blocking_lookups import parse_aside
from dragoman.surfaces.http.context import AppContext, Call
from dragoman.surfaces.http.errors import (
    HttpProblem,
    encode,
    problem_error,
    problem_from_json_error,
    problem_from_refusal,
)
from dragoman.surfaces.http.limits import read_body
from dragoman.text.error_messages import shape_fault, suggest_or_list
from dragoman.text.strict_cbor import encode_cbor, is_cbor_map
from dragoman.text.strict_json import MAX_BYTES, StrictJsonError, parse_json

JSON = "application/json"
CBOR = "application/cbor"
"""Alternative encoding of messages; an operation also answers in it, if it is asked to."""
WARNING_HEADER = "dragoman-warning"
"""The header for warnings beside the response: masked secrets, missing fields."""

MAX_OBJECT_BYTES = MAX_BYTES + 12 * MAX_BODY
"""A body of JSON with a text of the longest kind, each character of it written as two escapes."""

_MAX_SHOWN = 40
_ANONYMOUS = Principal(Actor("observer", "anyone"))


class Query(Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of a path; here: none."""


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request; an unknown field is an error."""


class Endpoint(Struct, frozen=True):
    """One HTTP operation: a row of the routing table."""

    method: str
    path: str
    handle: Callable[[Call], Awaitable[Any]] | None
    """Returns a value of the shape `response`, or a whole `Response`; None: see `app_factory`."""
    response: Any = None
    """The shape of the response; None: it has no body, or one that is not JSON."""
    query: type[Query] = Query
    body: Any = None
    """The shape of the body; None: no body is accepted."""
    max_bytes: int | None = MAX_OBJECT_BYTES
    """The size of its largest body; None: that of the hub, `http.max_body`, which always holds."""
    status: int = 200
    other_statuses: Mapping[int, str] = {}
    """Further statuses that are not problems, and their meaning."""
    media_type: str = JSON
    other_media: Mapping[str, tuple[Any, ...]] = {}
    """Further media types of the response, and the shapes of their lines."""
    supports_cbor: bool = False
    """True if it also answers in CBOR, when asked to."""
    accepts: tuple[str, ...] = (JSON,)
    """The accepted media types of the body."""
    owner_only: bool = False
    """True if it needs the token of the data directory; nobody else's body is even read."""
    is_open: bool = False
    """True if it answers without a token."""
    is_unmetered: bool = False
    """True if it is exempt from the rate limit: the response costs no more than a refusal."""
    parses_body: bool = True
    """True if the body is parsed into its shape here; else the handler gets bytes."""
    has_dialect_errors: bool = False
    """True if a refusal is formatted by its dialect instead of as a problem."""
    app_factory: "Callable[[AppContext, Endpoint], ASGIApp] | None" = None
    """Builds the application that serves it instead of `EndpointApp`, where every microsecond
    counts."""
    title: str = ""
    """Its summary; empty: the docstring of `handle`."""

    @property
    def summary(self) -> str:
        """Its purpose, in one line."""
        return self.title or (self.handle.__doc__ or "").partition("\n")[0].removesuffix(".")


class EndpointApp:
    """The ASGI application of one endpoint."""

    def __init__(self, context: AppContext, endpoint: Endpoint) -> None:
        self._context = context
        self._endpoint = endpoint
        self._max_bytes = context.deps.settings.http.max_body
        if endpoint.max_bytes is not None:
            self._max_bytes = min(self._max_bytes, endpoint.max_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, call its handler, and send the response."""
        endpoint = self._endpoint
        assert endpoint.handle is not None, "an endpoint without a handler serves itself"
        scope["progress"].route = endpoint.path
        request = Request(scope, receive)
        query = parse_query(scope["query_string"], endpoint.query)
        principal: Principal = scope.get("principal", _ANONYMOUS)
        if endpoint.owner_only and not principal.is_owner:
            raise HttpProblem(problem_from_refusal(_owner_only(principal)))
        raw, body = await self._read_body(scope, receive)
        call = Call(
            context=self._context,
            principal=principal,
            request=request,
            path_params=request.path_params,
            query=query,
            body=body,
            raw=raw,
            key=parse_idempotency_key(scope["by_name"]),
        )
        try:
            response = await endpoint.handle(call)
        except Refused as refused:
            raise HttpProblem(problem_from_refusal(refused.refusal)) from None
        if not isinstance(response, Response):
            wants_cbor = endpoint.supports_cbor and _prefers_cbor(scope["by_name"])
            response = (_respond_in_cbor if wants_cbor else respond)(response, endpoint.status)
        for warning in call.warnings:
            response.headers.append(
                WARNING_HEADER, warning.encode("ascii", "backslashreplace").decode()
            )
        await response(scope, receive, send)

    async def _read_body(self, scope: Scope, receive: Receive) -> tuple[bytes, Any]:
        endpoint, headers = self._endpoint, scope["by_name"]
        if endpoint.body is None:
            return b"", None
        max_bytes = self._max_bytes
        raw = await read_body(receive, scope, max_bytes, self._context.deps.timeouts)
        if raw:
            check_content_type(headers, endpoint.accepts)
        if CBOR in endpoint.accepts and content_type(headers) == CBOR:
            check_cbor(raw)
        elif not raw:
            # An empty body counts as an empty object.
            raw = b"{}"
        if not endpoint.parses_body:
            return raw, None
        return raw, convert_body(await decode_json(raw, max_bytes), endpoint.body)


def parse_query(text: bytes, shape: type[Query]) -> Any:
    """Parse the query string into its shape."""
    values, known = dict[str, str](), [field.encode_name for field in fields(shape)]
    for name, value in QueryParams(text).multi_items():
        if name not in known:
            shown = name[:_MAX_SHOWN]
            hint = suggest_or_list(name, known)
            raise problem_error(
                "invalid_request", f"{shown!a} is not a parameter here{hint}", shown
            )
        if name in values:
            raise problem_error("invalid_request", f"{name} is given twice", name)
        if not value:
            raise problem_error(
                "invalid_request", f"{name} is empty: say which, or leave it out", name
            )
        values[name] = value
    try:
        return msgspec.convert(values, shape, strict=False)
    except msgspec.ValidationError as error:
        fault = shape_fault(error, shape, is_text=True)
        raise problem_error("invalid_request", f"{fault}", fault.path) from None


def parse_idempotency_key(headers: Mapping[bytes, bytes]) -> str:
    """Return the caller's idempotency key; empty if there is none."""
    value = headers.get(b"idempotency-key")
    if value is None:
        return ""
    key = value.decode("latin-1")
    malformed = check_key(key)
    if malformed is not None:
        raise problem_error(
            "invalid_request", f"Idempotency-Key: {malformed.detail}", "Idempotency-Key"
        )
    return key


def check_content_type(headers: Mapping[bytes, bytes], accepts: tuple[str, ...]) -> str:
    """Return the media type of a body; HttpProblem if it is not accepted."""
    declared, encoding = content_type(headers), headers.get(b"content-encoding", b"identity")
    if encoding.strip().lower() != b"identity":
        shown = encoding[:60].decode("latin-1")
        detail = f"a body with the Content-Encoding {shown!a} is not taken here; send it as it is"
        raise problem_error("unsupported_media_type", detail)
    if declared not in accepts:
        description = (
            f"a body of type {declared[:60]!a}" if declared else "a body without a Content-Type"
        )
        raise problem_error(
            "unsupported_media_type",
            f"{description} is not taken here; send {' or '.join(accepts)}",
        )
    return declared


def content_type(headers: Mapping[bytes, bytes]) -> str:
    """Return the declared media type of a body; empty if there is none."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")


def check_cbor(raw: bytes) -> None:
    """Raise HttpProblem unless a CBOR body begins as a map; its parser checks the rest.

    Anything else would not be recognised as CBOR later, so its error could not be explained.
    """
    if not is_cbor_map(raw):
        detail = f"this does not begin as a map of CBOR; JSON is sent as {JSON}"
        raise problem_error("invalid_json", detail)


async def decode_json(raw: bytes, max_bytes: int) -> Any:
    """Decode a JSON body within all limits; HttpProblem if it is malformed.

    A long one is decoded in a thread, so that it does not block other requests.
    """
    try:
        if len(raw) > MAX_BYTES:
            return await parse_aside(parse_json, raw, max_bytes)
        return parse_json(raw, max_bytes)
    except StrictJsonError as error:
        raise HttpProblem(problem_from_json_error(error)) from None


def convert_body(value: Any, shape: Any) -> Any:
    """Convert a decoded body into its shape; HttpProblem if it does not fit."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        fault = shape_fault(error, shape)
        raise problem_error("invalid_field", f"{fault}", fault.path) from None


def _owner_only(principal: Principal) -> Refusal:
    return Refusal(
        "not_authorized",
        f"{principal.actor.label} may not act for others: this needs the token of the data "
        "directory",
    )


def _prefers_cbor(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether the caller accepts CBOR, and JSON not before it."""
    ranges = headers.get(b"accept", b"").decode("latin-1").lower().split(",")
    named = [one.partition(";")[0].strip() for one in ranges]
    return next((one for one in named if one in (CBOR, JSON)), JSON) == CBOR


def _respond_in_cbor(answer: Any, status: int) -> Response:
    """Build the same response as JSON would have, as CBOR."""
    return Response(encode_cbor(msgspec.json.decode(encode(answer))), status, media_type=CBOR)


def respond(answer: Any, status: int) -> Response:
    """Build a JSON response."""
    body = b"" if answer is None else encode(answer)
    return Response(body, status, media_type=JSON if body else None)
