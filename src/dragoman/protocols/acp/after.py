"""What follows an action once it is on record: the work queue hears of it, the caller the rest.

The handoff is never held up by it: ACP owns the protocol, a work queue is optional (section 8).
"""

from collections.abc import Sequence
from typing import Any, Final

from dragoman.core.actors import Actor
from dragoman.core.errors import Refusal
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.handoff_items import items_of
from dragoman.engine.handing_on import hand_on, told_of_items, workq_status
from dragoman.engine.operation import Commands, Facts
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.handoffs import find_handoff
from dragoman.engine.workq import Workq
from dragoman.protocols.acp.read import Asked
from dragoman.protocols.acp.reply import Reply, at_gate, with_metadata
from dragoman.protocols.acp.settings import Choices

_BACK: Final = frozenset({"reject", "reassign"})
"""Actions that may give begun work back, and its work items with it."""
_SAID: Final = frozenset({"approve"})
"""Actions that get a warning if nobody has asked for them."""


def lingers(asked: Asked, reply: Reply, choices: Choices) -> bool:
    """Return whether a follow-up reads the store or calls a queue, so that it needs a thread."""
    if _lacks(asked, reply) or asked.action in _SAID:
        return True
    if choices.workq is None:
        return False
    is_begun = asked.action == "activate"
    return asked.action in _BACK or (
        is_begun and any(items_of(handoff.package) for handoff in asked.seen)
    )


def follow_up(
    asked: Asked, _: Actor, facts: Facts, reply: Reply, choices: Choices
) -> tuple[Commands, Any]:
    """Follow up an action: commands that record what was done, and the complete reply."""
    if asked.action in _SAID:
        return (), _with_doubt(reply, facts)
    if asked.action in _BACK:
        return _given_back(asked.given.handoff_id, facts, choices.workq, reply)
    handoff = next(iter(asked.seen), None)
    if _lacks(asked, reply):
        found = find_handoff(facts.store, reply["handoff_id"])
        handoff = found if isinstance(found, Handoff) else handoff
    if handoff is None or reply["status"] == "draft":
        return (), reply
    is_told = bool(handoff.escalations) or handoff.is_late(facts.now())
    told = with_metadata(reply, escalation_triggered=is_told)
    if asked.action == "accept":
        return (), at_gate(told, handoff) if _lacks(asked, reply) else told
    if asked.action != "activate":
        return (), told
    if _lacks(asked, reply):
        told = _with_attempt(told, handoff, facts)
    if handoff.workq or not handoff.is_active:
        return (), _with_items(told, handoff.workq or "not_applicable", told_of_items(handoff))
    if choices.workq is None:
        return (), _with_items(told, "not_applicable")
    done = hand_on(handoff, choices.workq, handoff.recipient)
    return done.commands, _with_items(told, done.outcome, done.details)


def _with_doubt(reply: Reply, facts: Facts) -> Reply:
    """Warn that the approval was not asked for: it is recorded, and changes nothing."""
    found = find_handoff(facts.store, reply["handoff_id"])
    if isinstance(found, Refusal) or found.needs_approval:
        return reply
    doubt = "nobody has asked for an approval of it: your word is on record, and opens no gate"
    warnings = reply.get("metadata", {}).get("warnings", ())
    return with_metadata(reply, warnings=[*warnings, doubt])


def _with_items(told: Reply, status: str, details: Sequence[str] = ()) -> Reply:
    told = with_metadata(told, workq_status=workq_status(status))
    return with_metadata(told, workq_items=list(details)) if details else told


def _given_back(id: str, facts: Facts, workq: Workq | None, reply: Reply) -> tuple[Commands, Reply]:
    """Return work items whose work was given back: commands, and the reply."""
    found = find_handoff(facts.store, id) if workq is not None else None
    if workq is None or not isinstance(found, Handoff) or not found.items_due:
        return (), reply
    back = hand_on(found, workq, found.items_due)
    return back.commands, _with_items(reply, back.outcome, back.details)


def _lacks(asked: Asked, reply: Reply) -> bool:
    """Return whether the reply lacks the result of the action, because it was a duplicate."""
    wanted = {"accept": "verification_passed", "activate": "fence"}.get(asked.action)
    return wanted is not None and wanted not in reply.get("metadata", {})


def _with_attempt(told: Reply, handoff: Handoff, facts: Facts) -> Reply:
    """Add the attempt and its fencing token, unless the handoff is over and the task has another
    token.
    """
    found = find_task(facts.store, handoff.task)
    if isinstance(found, Refusal) or not handoff.is_active:
        return told
    return with_metadata(told, attempt=found.task.attempts, fence=found.task.fence)
