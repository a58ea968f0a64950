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
from dragoman.core.limits import WHOLE
from dragoman.engine.errand import Told
from dragoman.engine.plan import Turned
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.messages import count
from dragoman.surfaces.http.names import WantedAgent
from dragoman.surfaces.http.office import Call


class SayQuery(Query, frozen=True):
    """The operation, and the actor in whose name it is called."""

    operation: Annotated[str, Meta(max_length=100, description="Its name.")]
    role: Role
    name: WantedAgent
    via: Annotated[
        str, Meta(max_length=100, description="Surface that the request came through.")
    ] = ""
    task: Annotated[
        str, Meta(max_length=300, description="The only task that its credential is valid for.")
    ] = ""
    fence: Annotated[int, Meta(ge=0, le=WHOLE, description="Fencing token of that task.")] = 0


async def say(call: Call) -> Told:
    """Call an operation; a refusal of its dialect is an answer, too."""
    asked: SayQuery = call.query
    malformed = check_agent(asked.name, "name")
    if malformed is not None:
        raise Refused(malformed)
    actor = Actor(asked.role, asked.name, asked.via, asked.task, asked.fence)
    with call.office.writing():
        answer = await call.office.door.interpreter.call_soon(
            asked.operation, call.raw, actor, key=call.key
        )
    count(call.office, answer)
    return Told(turned=answer) if isinstance(answer, Turned) else Told(taken=answer)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/say",
        "Call an operation as any actor (owner only)",
        say,
        Told,
        query=SayQuery,
        body=Any,
        reads=False,
        owner_only=True,
    ),
)
