"""How the commands about handoffs ask: what changes something goes by the operation of the dialect.

So the command line says no more and no less than every other door.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dragoman.core.errors import Refusal, Refused
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from dragoman.core.states.handoff import Handoff
    from dragoman.engine.handoff_diagnosis import Diagnosis

OPERATION = "acp_handoff"

HandoffArgument = Annotated[
    str, typer.Argument(metavar="ID", show_default=False, help="The handoff's id.")
]


def found(call: Call, place: Place, id: str) -> "Handoff":
    """Find a handoff that the actor may see; raises the refusal."""
    from dragoman.engine.reads.handoffs import find_handoff

    handoff = find_handoff(place.hub.store, id, call.speaker(), closed(call, place))
    if isinstance(handoff, Refusal):
        raise Refused(handoff)
    return handoff


def closed(call: Call, place: Place) -> frozenset[str]:
    """Teamspaces that the actor does not belong to."""
    from dragoman.engine.reads.teamspaces import closed_to

    return closed_to(place.settings.teamspaces, call.actor(place, call.speaker()))


def asked(call: Call, action: str, arguments: Mapping[str, Any]) -> Answer:
    """Open the data directory and run an action on a handoff."""
    with call.writing(makes=False) as place:
        return answered(call, place, action, arguments)


def answered(call: Call, place: Place, action: str, arguments: Mapping[str, Any]) -> Answer:
    """Run an action on a handoff, without its empty arguments."""
    from dragoman.engine.plan import Turned

    given = {name: value for name, value in arguments.items() if value not in ("", None, [], ())}
    actor = call.actor(place, call.speaker())
    answer = place.interpreter.call(OPERATION, {"action": action, **given}, actor)
    reply = cast(dict[str, Any], answer.reply or {})
    after = _diagnosed(call, place, str(reply.get("handoff_id", "")))
    no = (answer.refusal.code, answer.detail) if isinstance(answer, Turned) else None
    return _answer(call, reply, no, after)


def _diagnosed(call: Call, place: Place, id: str) -> "Diagnosis | None":
    """Diagnosis of the handoff after the action, if the actor may see it."""
    from dragoman.engine.handoff_diagnosis import look_at
    from dragoman.engine.reads.handoffs import find_handoff

    if not id:
        return None
    handoff = find_handoff(place.hub.store, id, call.speaker(), closed(call, place))
    if isinstance(handoff, Refusal):
        return None
    return look_at(place.hub.store, handoff, place.hub.clock.now(), place.settings.teamspaces)


def _apart(no: tuple[str, str] | None, failures: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Separate the reason of a refusal from the other failures, so that none is printed twice."""
    if no is None:
        return "", failures
    code, detail = no
    if len(failures) > 1 and detail == "; ".join(failures):
        return f"{len(failures)} faults", failures
    return detail, [one for one in failures if one not in (detail, f"{code}: {detail}")]


def _checks(metadata: Mapping[str, Any], failures: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Lines about verification: label, style and text."""
    passed = metadata.get("verification_passed")
    if passed:
        yield "passed: ", "green", ", ".join(passed)
    yield from (("failed: ", "red", failure) for failure in failures)


def _answer(
    call: Call, reply: dict[str, Any], no: tuple[str, str] | None, after: "Diagnosis | None"
) -> Answer:
    """Result with the dialect's reply; a refusal is printed as by every command."""

    metadata = cast(dict[str, Any], reply.get("metadata") or {})
    reason, failures = _apart(no, metadata.get("verification_failed", ()))

    def show(screen: Screen) -> None:
        if no is not None:
            call.err.line((f"{no[0]}: ", "bold red"), reason)
        status = reply.get("status", "") if after is None else after.status
        if status:
            screen.line((reply["handoff_id"], "bold"), f" {status}")
        for head, style, check in _checks(metadata, failures):
            screen.line((head, style), check)
        if "package_hash" in metadata:
            screen.line(f"package {metadata['package_hash']}")
        if after is not None and after.due_by and "due_by" in metadata:
            screen.line(f"by {after.due_by}")
        for told in metadata.get("warnings", ()):
            screen.line(("look: ", "yellow"), str(told))
        for told in metadata.get("workq_items", ()):
            screen.line(("work queue: ", "yellow"), str(told))
        if after is not None and after.steps:
            screen.line(f"next: {after.summary}")

    told = {} if no is None else {"code": no[0], "detail": no[1]}
    return Answer({**reply, **told}, show, is_ok=no is None)
