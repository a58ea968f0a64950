"""One thing that can be asked for over HTTP: address, shapes and handler in one place.

What an endpoint is given is checked here against its shapes, so a handler sees only what fits; the
same shapes are what OpenAPI publishes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.core.actors import Actor
from dragoman.core.errors import Refusal, Refused
from dragoman.core.ids import check_key
from dragoman.engine.identity import Principal
from dragoman.surfaces.http.limits import read_body
from dragoman.surfaces.http.office import Call, Office
from dragoman.surfaces.http.problems import HttpProblem, encode, json_problem, of_refusal, stop
from dragoman.text.nearest import nearest_or_all
from dragoman.text.shape_words import shape_fault
from dragoman.text.strict_cbor import is_cbor_map, parse_cbor, to_cbor
from dragoman.text.strict_json import MOST_BYTES, StrictJsonError, parse_json

JSON = "application/json"
CBOR = "application/cbor"
"""What a message may be written in instead; an operation answers in it too, if it is asked to."""
WARNING = "dragoman-warning"
"""The header with what a caller is told beside the answer: what was masked, what was missing."""

_SHOWN = 40
_NOBODY = Principal(Actor("observer", "anyone"))


class Query(Struct, frozen=True, forbid_unknown_fields=True):
    """What may stand behind the question mark of an address; here: nothing."""


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """What a request carries; a name that is not known is a mistake and is told."""


class Endpoint(Struct, frozen=True):
    """One row of the table of routes."""

    method: str
    path: str
    summary: str
    handle: Callable[[Call], Awaitable[Any]] | None
    """Answers with a value of the shape `answer`, or with a whole response; None: see `serve`."""
    answer: Any = None
    """The shape of the answer; None: it has no body, or one that is no JSON."""
    query: type[Query] = Query
    body: Any = None
    """The shape of the body; None: none is taken."""
    status: int = 200
    others: Mapping[int, str] = {}
    """More statuses that are no problems, and their meaning."""
    media: str = JSON
    also: Mapping[str, tuple[Any, ...]] = {}
    """More types of answer, and the shapes that each of its lines may have."""
    in_cbor: bool = False
    """Whether it answers in CBOR too, if it is asked to."""
    takes: tuple[str, ...] = (JSON,)
    """The types of body that are taken."""
    owner_only: bool = False
    """Whether it takes the token of the data directory; nobody else's body is even read."""
    is_open: bool = False
    """Whether it answers anyone, without a token."""
    is_free: bool = False
    """Whether it may be asked for any number of times: the answer costs no more than a refusal."""
    reads: bool = True
    """Whether the body is brought into its shape here; else the handler is given bytes."""
    own_no: bool = False
    """Whether a no is told in the form of a dialect, and not as a problem."""
    serve: "Callable[[Office, Endpoint], ASGIApp] | None" = None
    """What serves it instead of `Served`, where every microsecond counts."""


class Served:
    """An endpoint as Starlette calls it."""

    def __init__(self, office: Office, endpoint: Endpoint) -> None:
        self._office = office
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, have it handled, and answer."""
        endpoint = self._endpoint
        assert endpoint.handle is not None, "what has no handler serves itself"
        scope["progress"].route = endpoint.path
        request = Request(scope, receive)
        query = read_query(scope["query_string"], endpoint.query)
        principal: Principal = scope.get("principal", _NOBODY)
        if endpoint.owner_only and not principal.is_owner:
            raise HttpProblem(of_refusal(_not_the_owner(principal)))
        raw, body = await self._body(scope, receive)
        call = Call(
            office=self._office,
            principal=principal,
            request=request,
            path=request.path_params,
            query=query,
            body=body,
            raw=raw,
            key=read_key(scope["by_name"]),
        )
        try:
            answer = await endpoint.handle(call)
        except Refused as refused:
            raise HttpProblem(of_refusal(refused.refusal)) from None
        if not isinstance(answer, Response):
            in_cbor = endpoint.in_cbor and _wants_cbor(scope["by_name"])
            answer = (_in_cbor if in_cbor else respond)(scope, answer, endpoint.status)
        for remark in call.remarks:
            answer.headers.append(WARNING, remark.encode("ascii", "backslashreplace").decode())
        await answer(scope, receive, send)

    async def _body(self, scope: Scope, receive: Receive) -> tuple[bytes, Any]:
        endpoint, headers = self._endpoint, scope["by_name"]
        if endpoint.body is None:
            return b"", None
        door = self._office.door
        raw = await read_body(receive, headers, door.settings.http.max_body, door.patience)
        if raw:
            check_type(headers, endpoint.takes)
        if CBOR in endpoint.takes and type_of(headers) == CBOR:
            check_cbor(raw)
        elif not raw:
            # Whoever has nothing to say need not say so.
            raw = b"{}"
        if not endpoint.reads:
            return raw, None
        most = door.settings.http.max_body
        if len(raw) > MOST_BYTES:
            # Others are not kept waiting while a long one is read.
            return raw, await asyncio.to_thread(shaped, raw, endpoint.body, most)
        return raw, shaped(raw, endpoint.body, most)


def read_query(text: bytes, shape: type[Query]) -> Any:
    """What stands behind the question mark, in its shape."""
    given, known = dict[str, str](), [field.encode_name for field in fields(shape)]
    for name, value in QueryParams(text).multi_items():
        if name not in known:
            shown = name[:_SHOWN]
            hint = nearest_or_all(name, known)
            raise stop("invalid_request", f"{shown!a} is not asked for here{hint}", shown)
        if name in given:
            raise stop("invalid_request", f"{name} is given twice", name)
        if not value:
            raise stop("invalid_request", f"{name} is empty: say which, or leave it out", name)
        given[name] = value
    try:
        return msgspec.convert(given, shape, strict=False)
    except msgspec.ValidationError as error:
        fault = shape_fault(error, shape, is_text=True)
        raise stop("invalid_request", f"{fault}", fault.path) from None


def read_key(headers: Mapping[bytes, bytes]) -> str:
    """The caller's idempotency key; empty: it gave none."""
    given = headers.get(b"idempotency-key")
    if given is None:
        return ""
    key = given.decode("latin-1")
    malformed = check_key(key)
    if malformed is not None:
        raise stop("invalid_request", f"Idempotency-Key: {malformed.detail}", "Idempotency-Key")
    return key


def check_type(headers: Mapping[bytes, bytes], takes: tuple[str, ...]) -> str:
    """The type of a body; HttpProblem when it is not one of those that are taken."""
    given, encoding = type_of(headers), headers.get(b"content-encoding", b"identity")
    if encoding.strip().lower() != b"identity":
        shown = encoding[:60].decode("latin-1")
        detail = f"a body with the Content-Encoding {shown!a} is not taken here; send it as it is"
        raise stop("unsupported_media_type", detail)
    if given not in takes:
        said = f"a body of type {given[:60]!a}" if given else "a body without a Content-Type"
        raise stop("unsupported_media_type", f"{said} is not taken here; send {' or '.join(takes)}")
    return given


def type_of(headers: Mapping[bytes, bytes]) -> str:
    """The type that a body is said to have; empty: none."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")


def check_cbor(raw: bytes) -> None:
    """HttpProblem unless what is said to be CBOR begins as a map; whoever reads it sees the rest.

    Nobody would look at anything else as CBOR, and tell what is wrong with it.
    """
    if is_cbor_map(raw):
        return
    try:
        parse_cbor(raw)
    except StrictJsonError as error:
        raise stop("invalid_json", f"{error.reason}; JSON is sent as {JSON}", error.path) from None
    raise stop("invalid_json", "this is CBOR, but no map: a body is one")


def shaped(raw: bytes, shape: Any, most: int) -> Any:
    """A JSON body in its shape; HttpProblem when it is none that can be trusted."""
    try:
        return msgspec.convert(parse_json(raw, most), shape)
    except StrictJsonError as error:
        raise HttpProblem(json_problem(error)) from None
    except msgspec.ValidationError as error:
        fault = shape_fault(error, shape)
        raise stop("invalid_field", f"{fault}", fault.path) from None


def _not_the_owner(principal: Principal) -> Refusal:
    return Refusal(
        "not_authorized",
        f"{principal.actor.label} may not speak for others: this takes the token of the data "
        "directory",
    )


def _wants_cbor(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the caller names CBOR among what it takes, and JSON not before it."""
    ranges = headers.get(b"accept", b"").decode("latin-1").lower().split(",")
    named = [one.partition(";")[0].strip() for one in ranges]
    return next((one for one in named if one in (CBOR, JSON)), JSON) == CBOR


def _in_cbor(scope: Scope, answer: Any, status: int) -> Response:
    """The same answer as JSON would have, as CBOR."""
    del scope
    return Response(to_cbor(msgspec.json.decode(encode(answer))), status, media_type=CBOR)


def respond(scope: Scope, answer: Any, status: int) -> Response:
    """An answer as JSON; one to GET has an ETag, and is left out when the caller knows it."""
    body = b"" if answer is None else encode(answer)
    if scope["method"] not in ("GET", "HEAD") or status != 200:
        return Response(body, status, media_type=JSON if body else None)
    return tagged(scope, body)


def tagged(
    scope: Scope, body: bytes, media: str = JSON, more: Mapping[str, str] | None = None
) -> Response:
    """What GET answers; it is left out when the caller has it already, by its ETag."""
    tag = f'"{sha256(body).hexdigest()[:32]}"'
    headers = {**(more or {}), "etag": tag, "cache-control": "no-cache"}
    known = scope["by_name"].get(b"if-none-match", b"").decode("latin-1")
    # `*` is whatever there is.
    if {tag, "*"}.intersection(one.strip().removeprefix("W/") for one in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(body, 200, headers, media_type=media)
