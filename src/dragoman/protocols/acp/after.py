"""What follows an action once it is on record: the work queue hears of it, the caller the rest.

The handoff is never held up by it: ACP owns the protocol, a work queue is optional (section 8).
"""

from collections.abc import Sequence
from typing import Any, Final

from dragoman.core.actors import Actor
from dragoman.core.errors import Refusal
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.handoff_items import work_items_of
from dragoman.engine.handing_on import describe_failed_items, protocol_status, transfer_items
from dragoman.engine.operation import Commands, Facts
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.handoffs import find_handoff
from dragoman.engine.workq import WorkQueue
from dragoman.protocols.acp.read import ActionCall
from dragoman.protocols.acp.reply import Reply, add_gate_result, add_metadata
from dragoman.protocols.acp.settings import Choices

_RETURNING_ACTIONS: Final = frozenset({"reject", "reassign"})
"""Actions that may give begun work back, and its work items with it."""
_APPROVING_ACTIONS: Final = frozenset({"approve"})
"""Actions that get a warning if nobody has asked for them."""


def has_follow_up(call: ActionCall, reply: Reply, choices: Choices) -> bool:
    """Return whether a follow-up reads the store or calls a queue, so that it needs a thread."""
    if _needs_recorded_result(call, reply) or call.action in _APPROVING_ACTIONS:
        return True
    if choices.workq is None:
        return False
    is_begun = call.action == "activate"
    return call.action in _RETURNING_ACTIONS or (
        is_begun and any(work_items_of(handoff.package) for handoff in call.looked_up)
    )


def follow_up(
    call: ActionCall, _: Actor, facts: Facts, reply: Reply, choices: Choices
) -> tuple[Commands, Any]:
    """Follow up an action: commands that record what was done, and the complete reply."""
    if call.action in _APPROVING_ACTIONS:
        return (), _add_approval_warning(reply, facts)
    if call.action in _RETURNING_ACTIONS:
        return _return_items(call.arguments.handoff_id, facts, choices.workq, reply)
    handoff = next(iter(call.looked_up), None)
    if _needs_recorded_result(call, reply):
        found = find_handoff(facts.store, reply["handoff_id"])
        handoff = found if isinstance(found, Handoff) else handoff
    if handoff is None or reply["status"] == "draft":
        return (), reply
    is_escalated = bool(handoff.escalations) or handoff.is_overdue(facts.now())
    result = add_metadata(reply, escalation_triggered=is_escalated)
    if call.action == "accept":
        return (), add_gate_result(result, handoff) if _needs_recorded_result(
            call, reply
        ) else result
    if call.action != "activate":
        return (), result
    if _needs_recorded_result(call, reply):
        result = _add_attempt(result, handoff, facts)
    if handoff.workq or not handoff.is_active:
        return (), _add_item_status(
            result, handoff.workq or "not_applicable", describe_failed_items(handoff)
        )
    if choices.workq is None:
        return (), _add_item_status(result, "not_applicable")
    transfer = transfer_items(handoff, choices.workq, handoff.recipient)
    return transfer.commands, _add_item_status(result, transfer.outcome, transfer.details)


def _add_approval_warning(reply: Reply, facts: Facts) -> Reply:
    """Warn that the approval was not asked for: it is recorded, and changes nothing."""
    found = find_handoff(facts.store, reply["handoff_id"])
    if isinstance(found, Refusal) or found.needs_approval:
        return reply
    warning = "nobody has asked for an approval of it: your word is on record, and opens no gate"
    warnings = reply.get("metadata", {}).get("warnings", ())
    return add_metadata(reply, warnings=[*warnings, warning])


def _add_item_status(reply: Reply, outcome: str, details: Sequence[str] = ()) -> Reply:
    reply = add_metadata(reply, workq_status=protocol_status(outcome))
    return add_metadata(reply, workq_items=list(details)) if details else reply


def _return_items(
    id: str, facts: Facts, workq: WorkQueue | None, reply: Reply
) -> tuple[Commands, Reply]:
    """Return work items whose work was given back: commands, and the reply."""
    found = find_handoff(facts.store, id) if workq is not None else None
    if workq is None or not isinstance(found, Handoff) or not found.pending_items_owner:
        return (), reply
    transfer = transfer_items(found, workq, found.pending_items_owner)
    return transfer.commands, _add_item_status(reply, transfer.outcome, transfer.details)


def _needs_recorded_result(call: ActionCall, reply: Reply) -> bool:
    """Return whether the reply lacks the result of the action, because it was a duplicate."""
    expected = {"accept": "verification_passed", "activate": "fence"}.get(call.action)
    return expected is not None and expected not in reply.get("metadata", {})


def _add_attempt(reply: Reply, handoff: Handoff, facts: Facts) -> Reply:
    """Add the attempt and its fencing token, unless the handoff is over and the task has another
    token.
    """
    found = find_task(facts.store, handoff.task)
    if isinstance(found, Refusal) or not handoff.is_active:
        return reply
    return add_metadata(reply, attempt=found.task.attempts, fence=found.task.fence)
