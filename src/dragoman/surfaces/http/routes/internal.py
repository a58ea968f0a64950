"""Commands and operations in anybody's name, for the hub's owner: `/v1/internal/…`.

The command line uses them while a hub runs: the caller says for whom it speaks, as it could without
a running hub. `operations` is for those that need what only the running hub knows.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct, UnsetType

from dragoman.core.actor import Actor
from dragoman.core.base import Role
from dragoman.core.errors import Refused
from dragoman.core.ids import check_agent
from dragoman.core.limits import MAX_SAFE_INTEGER
from dragoman.engine.forwarding import (
    ForwardedCall,
    ForwardedCommands,
    ForwardedOutput,
    ForwardedReply,
    ForwardedResult,
)
from dragoman.engine.request import Rejected
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Endpoint, Query
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


async def run_cli_command(call: Call) -> ForwardedOutput:
    """Run a command of the command line for its caller."""
    return await call.context.deps.run_command(call.body)


MESSAGE_ENDPOINTS = (
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
        owner_only=True,
    ),
)
