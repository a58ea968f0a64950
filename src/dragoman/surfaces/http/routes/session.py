"""Browser sessions over HTTP: sign in by a one-time link or a token, show who is signed in, sign
out."""

from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.responses import Response

from dragoman.core.authority import (
    MAY_ANSWER,
    MAY_MANAGE_CREDENTIALS,
    MAY_PAUSE,
    MAY_WRITE,
)
from dragoman.core.base import Role
from dragoman.core.errors import Refusal, Refused
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.auth import MAX_TOKEN_LENGTH, Principal
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Body, Endpoint, respond
from dragoman.surfaces.http.limits import VIA
from dragoman.surfaces.http.sessions import SESSION_S, cookie_name

Credential = Annotated[str, Meta(min_length=1, max_length=MAX_TOKEN_LENGTH)]


class Permissions(Struct, frozen=True, rename="camel"):
    """Permissions of the caller's role in general; each task may still refuse."""

    write: bool
    """Create, edit and move tasks."""
    answer: bool
    """Answer questions about any task."""
    pause: bool
    """Pause and resume agents."""
    credentials: bool
    """Create and revoke tokens of agents."""


class Session(Struct, frozen=True, rename="camel"):
    """The caller, and when its session ends; null: it called with a token."""

    name: str
    role: Role
    owner: bool
    expires_at: str | None
    may: Permissions


class SignInLink(Struct, frozen=True, rename="camel"):
    """A one-time link: the dashboard begins a session by its code."""

    path: str
    """Path of the page that signs in by it."""
    expires_at: str


class SignInBody(Body, frozen=True):
    """The code of a one-time link, or a token."""

    code: Credential = ""
    token: Credential = ""


async def sign_in(call: Call) -> Response:
    """Begin a session: exchange the code of a one-time link, or a token, for a cookie."""
    body: SignInBody = call.body
    sessions = call.context.deps.sessions
    if bool(body.code) == bool(body.token):
        raise Refused(Refusal("invalid_field", "give either `code` or `token`"))
    token = sessions.redeem(body.code) if body.code else body.token
    if isinstance(token, Refusal):
        raise Refused(token)
    principal = await call.context.deps.identity.authenticate_async(token, VIA)
    if isinstance(principal, Refusal):
        raise Refused(principal)
    ends_at = call.now + SESSION_S * 1_000
    response = respond(_to_resource(principal, ends_at), 200)
    _set_cookie(call, response, sessions.seal(token), SESSION_S)
    return response


async def show_session(call: Call) -> Session:
    """Show who the caller is, and what its role may do."""
    return _to_resource(call.principal, call.request.scope.get("session_ends_at"))


async def sign_out(call: Call) -> Response:
    """End the session of this browser."""
    response = Response(status_code=204)
    _set_cookie(call, response, "", 0)
    return response


async def add_link(call: Call) -> SignInLink:
    """Make a one-time link that signs its bearer in as the caller; it is good for a minute."""
    link = call.context.deps.sessions.add_link(call.request.scope["token"])
    return SignInLink(link.path, to_rfc3339(link.expires_at))


def _to_resource(principal: Principal, ends_at: int | None) -> Session:
    actor = principal.actor
    return Session(
        name=actor.name,
        role=actor.role,
        owner=principal.is_owner,
        expires_at=None if ends_at is None else to_rfc3339(ends_at),
        may=Permissions(
            write=actor.role in MAY_WRITE,
            answer=actor.role in MAY_ANSWER,
            pause=actor.role in MAY_PAUSE,
            credentials=bool(MAY_MANAGE_CREDENTIALS[actor.role]),
        ),
    )


def _set_cookie(call: Call, response: Response, value: str, max_age: int) -> None:
    scope: Any = call.request.scope
    response.set_cookie(
        cookie_name(scope["server"][1]),
        value,
        max_age=max_age,
        path="/",
        secure=scope["scheme"] == "https",
        httponly=True,
        samesite="strict",
    )


ENDPOINTS = (
    Endpoint("POST", "/v1/sign-in", sign_in, Session, body=SignInBody, is_open=True),
    Endpoint("POST", "/v1/sign-in/links", add_link, SignInLink, body=Body, status=201),
    Endpoint("GET", "/v1/session", show_session, Session),
    Endpoint("DELETE", "/v1/session", sign_out, status=204),
)
