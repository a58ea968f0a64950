"""Replies of ACP operations, and the events that ACP renders."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    HANDOFF_FOLDS,
    AcceptHandoff,
    ActivateHandoff,
    ExtendHandoff,
    Handoff,
    ProposeHandoff,
    ReassignHandoff,
)
from dragoman.core.task_state import TaskHandedOver
from dragoman.core.timestamps import to_rfc3339
from dragoman.core.work_queue import WORK_ITEM_FOLDS
from dragoman.engine.operation import Facts
from dragoman.engine.queries.handoffs import find_handoff
from dragoman.engine.queries.visibility import find_reader
from dragoman.engine.request import Commands, Committed
from dragoman.protocols.acp.errors import REFUSAL_CODES
from dragoman.protocols.acp.parse import ActionCall
from dragoman.protocols.acp.settings import Choices

# --- replies ----------------------------------------------------------------------------------

APPROVAL_REQUIRED: Final = "approval_required"

CONFLICT_RETRY: Final = "conflict_retry"

_COMMANDS_WITH_DEADLINE: Final = (ProposeHandoff, ExtendHandoff, ReassignHandoff)
"""Commands that give a handoff a new deadline."""

Reply = dict[str, Any]


def success_reply(call: ActionCall, commands: Commands, accepted: Committed) -> Reply:
    """Reply of success: the handoff and its state, or what it waits for."""
    receipt, command = accepted.receipts[-1], commands[-1]
    reply: Reply = {
        "success": True,
        "handoff_id": receipt.stream.partition(":")[2],
        "status": receipt.state,
    }
    if isinstance(command, _COMMANDS_WITH_DEADLINE):
        reply = add_metadata(reply, package_hash=receipt.package_hash)
        reply = (
            add_metadata(reply, due_by=to_rfc3339(receipt.expires_at))
            if receipt.expires_at
            else reply
        )
    if warnings := [*call.warnings, *accepted.redaction_warnings]:
        reply = add_metadata(reply, warnings=warnings)
    if isinstance(command, AcceptHandoff):
        return _gate_reply(reply, command)
    if isinstance(command, ActivateHandoff) and receipt.fence:
        return add_metadata(reply, attempt=receipt.attempt, fence=receipt.fence)
    return reply


def _gate_reply(reply: Reply, command: AcceptHandoff) -> Reply:
    """Add the result of the gate; nothing for a duplicate, or if the hub itself rejected it."""
    is_unknown = reply["status"] == "rejected" and not command.failed
    if is_unknown or not (command.passed or command.failed):
        return reply
    failed = [f"{code}: {detail}" for code, detail in command.failed]
    result = _add_verification(reply, command.passed, failed, command.left_out)
    if command.failed:
        return as_failure(result, *command.failed[0])
    if reply["status"] == "validating":
        code = CONFLICT_RETRY if command.waits_for else APPROVAL_REQUIRED
        reason = command.waits_for or "a person's approval is missing"
        return as_failure(
            result, code, f"{reason}; it stays where it is, and can be accepted again"
        )
    return result


def add_metadata(reply: Reply, **metadata: Any) -> Reply:
    return {**reply, "metadata": {**reply.get("metadata", {}), **metadata}}


def add_gate_result(reply: Reply, handoff: Handoff) -> Reply:
    """Add the recorded result of the gate: checks, and the reason of a rejection."""
    result = _add_verification(reply, handoff.passed, handoff.failed, handoff.left_out)
    if handoff.failed and handoff.rejection is not None:
        rejection = handoff.rejection
        return as_failure(result, rejection.reason, rejection.detail)
    return result


def _add_verification(
    reply: Reply, passed: Sequence[str], failed: Sequence[str], left_out: Sequence[str]
) -> Reply:
    result = add_metadata(reply, verification_passed=list(passed), verification_failed=list(failed))
    return add_metadata(result, left_out=list(left_out)) if left_out else result


def as_failure(reply: Reply, code: str, detail: str) -> Reply:
    """Turn the reply into a failure."""
    return {**reply, "success": False, "error": {"code": code, "detail": detail}}


def refusal_in_reply(reply: Any) -> Refusal | None:
    """Refusal in a reply, if it is a failure."""
    error: Mapping[str, str] | None = reply.get("error")
    return None if error is None else Refusal(error["code"], error["detail"])


def refusal_reply(
    message: Any, refusal: Refusal, actor: Actor, facts: Facts, choices: Choices
) -> Reply:
    """Reply of a refusal: its code and detail, and the state of the handoff if the caller may see
    it.
    """
    # Codes of the surface itself are kept.
    error = {"code": REFUSAL_CODES.get(refusal.code, refusal.code), "detail": refusal.detail}
    if refusal.code == "ownership_conflict":
        error["kind"] = refusal.kind
    reply: Reply = {"success": False, "error": error}
    handoff_id = message.arguments.handoff_id if isinstance(message, ActionCall) else ""
    if not handoff_id:
        return reply
    known = find_handoff(facts.store, handoff_id, find_reader(actor, choices.teamspaces))
    # What does not exist for the caller has no status either.
    is_hidden = refusal.code == "handoff_not_found"
    if is_hidden or isinstance(known, Refusal):
        return {**reply, "handoff_id": handoff_id}
    return {**reply, "handoff_id": handoff_id, "status": known.status}


# --- events -----------------------------------------------------------------------------------

EVENTS: Final = frozenset({*HANDOFF_FOLDS, *WORK_ITEM_FOLDS, TaskHandedOver})
"""Events about handoffs and work items."""
