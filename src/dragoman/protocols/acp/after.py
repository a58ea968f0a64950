"""What follows an action once it is on record: the work queue hears of it, the caller the rest.

The handoff is never held up by it: ACP owns the protocol, a work queue is optional (section 8).
"""

from typing import Any, Final, Literal

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand, NoteHandoff, ReleaseWorkItem
from dragoman.core.errors import Refusal
from dragoman.core.handoff import Handoff, section
from dragoman.core.ids import check_mail_id
from dragoman.engine.ask import find_task
from dragoman.engine.handoffs import find_handoff
from dragoman.engine.operation import Commands, Facts
from dragoman.engine.workq import Moved, Workq
from dragoman.protocols.acp.gate import artifacts_of
from dragoman.protocols.acp.read import Asked
from dragoman.protocols.acp.reply import Reply, at_gate, with_metadata
from dragoman.protocols.acp.settings import Choices

WorkqStatus = Literal["transferred", "degraded", "not_applicable"]

NOTE: Final = "workq_integration"
_ITEM: Final = "workq_item"
_PREFIX: Final = "workq:"


def lingers(asked: Asked, reply: Reply, choices: Choices) -> bool:
    """Whether something is looked up or somebody is called; else nobody has to wait for it."""
    if _lacks(asked, reply):
        return True
    is_begun = asked.action == "activate" and choices.workq is not None
    return is_begun and any(items_of(handoff) for handoff in asked.seen)


def follow_up(
    asked: Asked, _: Actor, facts: Facts, reply: Reply, choices: Choices
) -> tuple[Commands, Any]:
    """What the hub notes down, and the whole reply."""
    handoff = next(iter(asked.seen), None)
    if _lacks(asked, reply):
        found = find_handoff(facts.store, reply["handoff_id"])
        handoff = found if isinstance(found, Handoff) else handoff
    if handoff is None or reply["status"] == "draft":
        return (), reply
    told = with_metadata(reply, escalation_triggered=bool(handoff.escalations))
    if asked.action == "accept":
        return (), at_gate(told, handoff) if _lacks(asked, reply) else told
    if asked.action != "activate":
        return (), told
    if _lacks(asked, reply):
        told = _with_attempt(told, handoff, facts)
    if handoff.workq:
        return (), with_metadata(told, workq_status=handoff.workq)
    noted, status = _handed_on(handoff, choices.workq)
    return noted, with_metadata(told, workq_status=status)


def _lacks(asked: Asked, reply: Reply) -> bool:
    """Whether what is told of such an action is not known: it was said before, and not done now."""
    wanted = {"accept": "verification_passed", "activate": "fence"}.get(asked.action)
    return wanted is not None and wanted not in reply.get("metadata", {})


def _with_attempt(told: Reply, handoff: Handoff, facts: Facts) -> Reply:
    found = find_task(facts.store, handoff.task)
    if isinstance(found, Refusal):
        return told
    return with_metadata(told, attempt=found.task.attempts, fence=found.task.fence)


def items_of(handoff: Handoff) -> tuple[str, ...]:
    """The items of a work queue that a handoff refers to, each once."""
    refs = section(handoff.package, "task").get("external_refs", ())
    named = [str(ref.get("value", "")) for ref in refs if ref.get("type") == _ITEM]
    named += [one.ref.path for one in artifacts_of(handoff) if one.ref.type == _ITEM]
    return tuple(dict.fromkeys(name.removeprefix(_PREFIX) for name in named))


def _handed_on(handoff: Handoff, workq: Workq | None) -> tuple[Commands, WorkqStatus]:
    items = items_of(handoff)
    if workq is None or not items:
        return (), "not_applicable"
    moved = {item: _moved(workq, item, handoff) for item in items}
    status = _status(moved)
    if status == "not_applicable":
        return (), status
    said: dict[str, object] = {
        item: {"outcome": one.outcome, "detail": one.detail} for item, one in moved.items()
    }
    orphaned: list[AnyCommand] = [
        ReleaseWorkItem(item, is_orphaned=True)
        for item, one in moved.items()
        if one.outcome == "unavailable"
    ]
    return (*orphaned, NoteHandoff(handoff.id, NOTE, status, {"items": said})), status


def _moved(workq: Workq, item: str, handoff: Handoff) -> Moved:
    malformed = check_mail_id(item, "item id")
    if malformed is not None:
        return Moved("missing", malformed.detail)
    return workq.transfer_ownership(item, handoff.sender, handoff.recipient)


def _status(moved: dict[str, Moved]) -> WorkqStatus:
    outcomes = {one.outcome for one in moved.values()}
    if outcomes & {"refused", "unavailable"}:
        return "degraded"
    return "transferred" if "transferred" in outcomes else "not_applicable"
