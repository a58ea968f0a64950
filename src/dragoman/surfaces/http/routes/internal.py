"""Commands of the command line while a hub runs: `/v1/internal/…`.

`commands` and `operations` are for the hub's owner: the caller says for whom it speaks, as it could
without a running hub. `cli` runs a command of the command line for the bearer of any token.
"""

import asyncio
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.core.actor import Actor
from dragoman.core.base import Role
from dragoman.core.errors import Refusal, Refused, SettingsError
from dragoman.core.ids import check_agent
from dragoman.core.limits import MAX_SAFE_INTEGER
from dragoman.engine.forwarding import (
    CommandRun,
    ForwardedCall,
    ForwardedCommands,
    ForwardedOutput,
    ForwardedReply,
    ForwardedResult,
)
from dragoman.engine.request import Rejected
from dragoman.engine.schemas.settings import ReloadedSettings
from dragoman.surfaces.http.context import AppContext, Call, open_waiter
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.errors import encode
from dragoman.surfaces.http.parameters import AgentFilter
from dragoman.surfaces.http.routes.messages import count_message

# --- commands ---------------------------------------------------------------------------------


class _OriginalText(Struct, frozen=True):
    """The original text of a request, byte by byte."""

    original_text: Raw | UnsetType = msgspec.UNSET


async def run_commands(call: Call) -> ForwardedResult:
    """Run commands in anybody's name."""
    request: ForwardedCommands = call.body
    original_text = msgspec.json.decode(call.raw, type=_OriginalText).original_text
    accepted = await call.context.hub.submit_async(
        request.actor,
        *request.commands,
        key=request.key or call.key,
        original_text=original_text,
        per_attempt=request.per_attempt,
        sent_at=request.sent_at,
        receipt_event=request.receipt_event,
        effect=request.effect,
    )
    return ForwardedResult(
        accepted.receipts, accepted.repeated, accepted.declined, accepted.redaction_warnings
    )


OPERATION_ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/internal/commands",
        run_commands,
        ForwardedResult,
        body=ForwardedCommands,
        max_bytes=None,
        owner_only=True,
    ),
)


# --- operations -------------------------------------------------------------------------------


class OperationQuery(Query, frozen=True):
    """The operation, and the actor in whose name it is called."""

    operation: Annotated[str, Meta(max_length=100, description="Its name.")]
    role: Role
    name: AgentFilter
    via: Annotated[
        str, Meta(max_length=100, description="Surface that the request came through.")
    ] = ""
    task: Annotated[
        str, Meta(max_length=300, description="The only task that its credential is valid for.")
    ] = ""
    fence: Annotated[
        int, Meta(ge=0, le=MAX_SAFE_INTEGER, description="Fencing token of that task.")
    ] = 0


async def call_operation(call: Call) -> ForwardedReply:
    """Call an operation; a refusal of its dialect is an answer, too."""
    query: OperationQuery = call.query
    malformed = check_agent(query.name, "name")
    if malformed is not None:
        raise Refused(malformed)
    actor = Actor(query.role, query.name, query.via, query.task, query.fence)
    answer = await call.context.deps.router.call_async(
        query.operation, call.raw, actor, key=call.key
    )
    count_message(call.context, answer)
    return (
        ForwardedReply(rejected=answer)
        if isinstance(answer, Rejected)
        else ForwardedReply(accepted=answer)
    )


# --- command line -----------------------------------------------------------------------------

_SIGN_OF_LIFE_SECONDS = 2.0
"""A caller that waits gets an empty line this often, so that it notices a hub that hangs."""
_LINES = "application/x-ndjson"


async def run_cli_command(call: Call) -> Any:
    """Run a command of the command line as the bearer of the token."""
    start = call.context.deps.start_command
    if start is None:
        return ForwardedOutput(runs_here=False)
    run = start(call.body, call.principal)
    part = asyncio.ensure_future(run.next_part())
    await asyncio.wait({part}, timeout=_SIGN_OF_LIFE_SECONDS)
    if part.done() and part.result().is_last:
        return part.result()
    return CommandStream(call.context, run, part)


class CommandStream(Response):
    """The response of a command that takes its time: a line for each part of its output."""

    def __init__(
        self, context: AppContext, run: CommandRun, first: "asyncio.Future[ForwardedOutput]"
    ) -> None:
        super().__init__()
        self._context = context
        self._run = run
        self._first = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        run, part = self._run, self._first
        scope["progress"].is_stream = True
        try:
            async with open_waiter(self._context, Request(scope, receive)) as waiter:
                headers = [(b"content-type", _LINES.encode()), (b"cache-control", b"no-store")]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                while True:
                    await asyncio.wait({part}, timeout=_SIGN_OF_LIFE_SECONDS)
                    if waiter.is_closed:
                        run.close()
                    line = encode(part.result()) if part.done() else b""
                    await send(
                        {"type": "http.response.body", "body": line + b"\n", "more_body": True}
                    )
                    if part.done():
                        if part.result().is_last:
                            break
                        part = asyncio.ensure_future(run.next_part())
        finally:
            run.close()
            part.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


# --- settings ---------------------------------------------------------------------------------


async def reload_settings(call: Call) -> ReloadedSettings:
    """Reload the settings of the hub: agents are added, changed and removed while it runs."""
    try:
        return await call.context.deps.reload()
    except SettingsError as error:
        detail = f"{error.detail}; nothing was changed, the hub goes on as it was"
        raise Refused(Refusal(error.code, detail)) from None


MESSAGE_ENDPOINTS = (
    Endpoint("POST", "/v1/reload", reload_settings, ReloadedSettings, owner_only=True),
    Endpoint(
        "POST",
        "/v1/internal/operations",
        call_operation,
        ForwardedReply,
        query=OperationQuery,
        body=Any,
        max_bytes=None,
        parses_body=False,
        owner_only=True,
    ),
    Endpoint(
        "POST",
        "/v1/internal/cli",
        run_cli_command,
        ForwardedOutput,
        body=ForwardedCall,
        max_bytes=None,
        other_media={_LINES: (ForwardedOutput,)},
    ),
)
