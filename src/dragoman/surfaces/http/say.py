"""`POST /v1/say`: an operation in anybody's name, for the person whose data directory this is.

Our own command line uses it while a hub runs, for what must be looked through by the hub itself,
which knows what no command beside it does.
"""

from typing import Annotated, Any

from msgspec import Meta

from dragoman.core.actors import Actor
from dragoman.core.errors import Refused
from dragoman.core.events import Role
from dragoman.core.ids import check_agent
from dragoman.core.limits import MAX_SAFE_INTEGER
from dragoman.engine.errand import ForwardedReply
from dragoman.engine.plan import Rejected
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.messages import count_message
from dragoman.surfaces.http.names import AgentFilter
from dragoman.surfaces.http.office import Call


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
    with call.context.track_write_failures():
        answer = await call.context.deps.router.call_async(
            query.operation, call.raw, actor, key=call.key
        )
    count_message(call.context, answer)
    return (
        ForwardedReply(turned=answer)
        if isinstance(answer, Rejected)
        else ForwardedReply(taken=answer)
    )


SAY_ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/say",
        "Call an operation as any actor (owner only)",
        call_operation,
        ForwardedReply,
        query=OperationQuery,
        body=Any,
        parses_body=False,
        owner_only=True,
    ),
)
