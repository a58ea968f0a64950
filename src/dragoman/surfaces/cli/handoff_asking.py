"""How the commands about handoffs ask: what changes something goes by the operation of the dialect.

So the command line says no more and no less than every other door.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dragoman.core.errors import Refusal, Refused
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from dragoman.core.handoff import Handoff
    from dragoman.engine.handoff_diagnosis import Diagnosis

OPERATION = "acp_handoff"

HandoffArgument = Annotated[
    str, typer.Argument(metavar="ID", show_default=False, help="The handoff's id.")
]


def found(place: Place, id: str, reader: str) -> "Handoff":
    """The handoff with this id; a refusal is raised."""
    from dragoman.engine.handoffs import find_handoff

    handoff = find_handoff(place.hub.store, id, reader)
    if isinstance(handoff, Refusal):
        raise Refused(handoff)
    return handoff


def asked(call: Call, action: str, arguments: Mapping[str, Any], *, makes: bool = False) -> Answer:
    """What comes of an action; what was not said is left out of it."""
    from dragoman.engine.interpreter import Turned

    given = {name: value for name, value in arguments.items() if value not in ("", None, [], ())}
    with call.writing(makes=makes) as place:
        actor = call.actor(place, call.speaker())
        answer = place.interpreter.call(OPERATION, {"action": action, **given}, actor)
        reply = cast(dict[str, Any], answer.reply or {})
        after = _diagnosed(place, str(reply.get("handoff_id", "")))
    if isinstance(answer, Turned):
        turned = call.turned(answer)
        return Answer({**reply, **turned.data}, turned.show, is_ok=False)
    return _answer(call, reply, after)


def _diagnosed(place: Place, id: str) -> "Diagnosis | None":
    from dragoman.engine.handoff_diagnosis import look_at
    from dragoman.engine.handoffs import find_handoff

    handoff = find_handoff(place.hub.store, id) if id else None
    if handoff is None or isinstance(handoff, Refusal):
        return None
    return look_at(place.hub.store, handoff, place.hub.clock.now())


def _answer(call: Call, reply: dict[str, Any], after: "Diagnosis | None") -> Answer:
    """The reply as the dialect has it; one that is no success is told as a refusal is."""
    is_ok = bool(reply.get("success"))
    error = cast(dict[str, Any], reply.get("error") or {})
    failed = {"code": error.get("code"), "detail": error.get("detail")} if error else {}

    def show(screen: Screen) -> None:
        if error:
            call.err.line((f"{error['code']}: ", "bold red"), str(error["detail"]))
        screen.line((str(reply.get("handoff_id", "")), "bold"), f" {reply.get('status', '')}")
        metadata = cast(dict[str, Any], reply.get("metadata") or {})
        for failure in metadata.get("verification_failed", ()):
            screen.line(("failed: ", "red"), str(failure))
        if metadata.get("workq_status") == "degraded":
            screen.line("the work queue did not take part: its item may have to be claimed by hand")
        if after is not None and after.steps:
            screen.line(f"next: {after.summary}")

    return Answer({**reply, **failed}, show, is_ok=is_ok)
