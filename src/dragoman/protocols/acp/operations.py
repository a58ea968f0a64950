"""The ACP dialect: its table of operations, queries of handoffs, and follow-ups of an action.

The work queue never holds up a handoff: ACP owns the protocol, a work queue is optional (section
8).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import UNSET

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import Handoff, work_items_of
from dragoman.core.ids import quote_name
from dragoman.engine.operation import (
    ALL_ROLES,
    Answer,
    Dialect,
    Errors,
    Facts,
    Fault,
    Linter,
    Operation,
    Plan,
    fault_from_refusal,
)
from dragoman.engine.queries.entries import END_OF_LIST
from dragoman.engine.queries.handoffs import HandoffFilter, find_handoff, handoff_page
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.queries.visibility import find_reader
from dragoman.engine.request import Commands
from dragoman.engine.schemas.handoffs import handoff_detail, handoff_summary
from dragoman.engine.workq import WorkQueue, describe_failed_items, protocol_status, transfer_items
from dragoman.protocols.acp import mail_operations, translate
from dragoman.protocols.acp.answers import answer_offer
from dragoman.protocols.acp.errors import REFUSAL_CODES
from dragoman.protocols.acp.lint import KINDS, lint
from dragoman.protocols.acp.notice import from_notice, to_notice
from dragoman.protocols.acp.parse import HANDOFF, ActionCall, parse_action, parse_message
from dragoman.protocols.acp.render import (
    EVENTS,
    Reply,
    add_gate_result,
    add_metadata,
    refusal_in_reply,
    refusal_reply,
    success_reply,
)
from dragoman.protocols.acp.settings import DEFAULTS, Choices
from dragoman.protocols.acp.wire import HandoffCall, Query, package_schema
from dragoman.protocols.acp.workq_operations import workq_operations

NAME: Final = "acp"

_LOOKUP_ACTIONS: Final = frozenset({"initiate", "query"})
"""Actions that read more than the handoff before the hub decides."""


def dialect(choices: Choices = DEFAULTS) -> Dialect:
    """The ACP dialect with these settings."""
    operations = (
        _handoff_operation(choices),
        *mail_operations.mail_operations(choices),
        *workq_operations(choices),
    )
    by_name = {operation.name: operation for operation in operations}
    return Dialect(
        name=NAME,
        version="1.0.0",
        operations=operations,
        parse=lambda incoming: parse_message(incoming, by_name),
        lint=Linter(lint, KINDS, schema=package_schema),
        errors=Errors(
            REFUSAL_CODES,
            lambda message, refusal, actor, facts: refusal_reply(
                message, refusal, actor, facts, choices
            ),
        ),
        events=EVENTS,
        to_notice=to_notice,
        from_notice=from_notice,
        answer_offer=lambda notice, actor, facts: answer_offer(notice, actor, facts, choices),
        hint=(
            "an object with action (initiate, accept, …), or with to, payload and type "
            "(status.update, …)"
        ),
    )


def _handoff_operation(choices: Choices) -> Operation:
    return Operation(
        name=HANDOFF,
        input=HandoffCall,
        parse=parse_action,
        roles=ALL_ROLES,
        plan=partial(_plan_action, choices),
        needs_io=lambda call, _: (
            call.action in _LOOKUP_ACTIONS or translate.needs_handoff(call, choices)
        ),
        reply=success_reply,
        summary=(
            "ACP: hand a task over with proof. Sender: initiate, withdraw, close. Recipient: "
            "accept (checks the package), then activate, complete; or reject. query looks handoffs "
            "up. The answer has success, status and, if it failed, error."
        ),
    )


def _plan_action(choices: Choices, call: ActionCall, actor: Actor, facts: Facts) -> Any:
    """Plan an action; one that only reads is answered at once."""
    fault = _check_sender(call, actor.name)
    if fault is not None:
        return fault
    if call.action == "query":
        return _list_handoffs(call.arguments, actor, facts, choices)
    commands = translate.action_commands(call, actor, facts, choices)
    if isinstance(commands, Fault):
        return commands

    def after(reply: Reply) -> Answer:
        recorded, complete = follow_up(call, facts, reply, choices)
        return Answer(complete, refusal=refusal_in_reply(complete), commands=recorded)

    return Plan(
        commands,
        follow_up=after,
        follow_up_blocks=lambda reply: has_follow_up(call, reply, choices),
    )


def _check_sender(call: ActionCall, speaker: str) -> Fault | None:
    """Check that the sender of an offer is the caller; in a query `from_agent` is a filter."""
    sender = call.filled.get("from_agent", "") if call.action == "initiate" else ""
    if sender in ("", speaker):
        return None
    detail = f"{speaker} cannot hand over for {quote_name(str(sender))}"
    return Fault("identity_mismatch", detail, "from_agent")


# --- queries ----------------------------------------------------------------------------------


def _list_handoffs(call: Query, actor: Actor, facts: Facts, choices: Choices) -> Any:
    if call.handoff_id:
        return _show_handoff(call.handoff_id, actor, facts, choices)
    filters = HandoffFilter(
        status=None if call.status is UNSET else call.status,
        task=call.task_id,
        sender=call.from_agent,
        recipient=call.to_agent,
        teamspace=call.teamspace_id,
        reader=find_reader(actor, choices.teamspaces),
        before=END_OF_LIST if call.cursor is UNSET else call.cursor,
        limit=call.limit,
    )
    page = handoff_page(facts.store, filters)
    if isinstance(page, Refusal):
        return fault_from_refusal(page)
    return {
        "success": True,
        "handoffs": [msgspec.to_builtins(handoff_summary(one)) for one in page.handoffs],
        "cursor": page.next,
    }


def _show_handoff(id: str, actor: Actor, facts: Facts, choices: Choices) -> Any:
    found = find_handoff(facts.store, id, find_reader(actor, choices.teamspaces))
    if isinstance(found, Refusal):
        return fault_from_refusal(found)
    return {
        "success": True,
        "handoff_id": found.id,
        "status": found.status,
        "handoffs": [msgspec.to_builtins(handoff_detail(found))],
        "cursor": None,
    }


# --- follow-ups -------------------------------------------------------------------------------

_RETURNING_ACTIONS: Final = frozenset({"reject", "reassign"})
"""Actions that may give begun work back, and its work items with it."""


def has_follow_up(call: ActionCall, reply: Reply, choices: Choices) -> bool:
    """Return whether a follow-up reads the store or calls a queue, so that it needs a thread."""
    if _needs_recorded_result(call, reply):
        return True
    if choices.workq is None:
        return False
    is_begun = call.action == "activate"
    return call.action in _RETURNING_ACTIONS or (
        is_begun and any(work_items_of(handoff.package) for handoff in call.looked_up)
    )


def follow_up(
    call: ActionCall, facts: Facts, reply: Reply, choices: Choices
) -> tuple[Commands, Any]:
    """Follow up an action: commands that record what was done, and the complete reply."""
    if call.action in _RETURNING_ACTIONS:
        return _return_items(call.arguments.handoff_id, facts, choices.workq, reply)
    handoff = next(iter(call.looked_up), None)
    if _needs_recorded_result(call, reply):
        found = find_handoff(facts.store, reply["handoff_id"])
        handoff = found if isinstance(found, Handoff) else handoff
    if handoff is None:
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


def _add_item_status(reply: Reply, outcome: str, details: Sequence[str] = ()) -> Reply:
    reply = add_metadata(reply, workq_status=protocol_status(outcome))
    return add_metadata(reply, workq_items=list(details)) if details else reply


def _return_items(
    id: str, facts: Facts, workq: WorkQueue | None, reply: Reply
) -> tuple[Commands, Reply]:
    """Return work items whose work was given back: commands, and the reply."""
    found = find_handoff(facts.store, id) if workq is not None else None
    if workq is None or not isinstance(found, Handoff) or not found.has_items_to_return:
        return (), reply
    transfer = transfer_items(found, workq, found.sender)
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
