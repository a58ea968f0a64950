"""What a caller is told, in the one form that `acp_handoff` has for it: a yes, a no, a question."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AcceptHandoff,
    ActivateHandoff,
    ExtendHandoff,
    ProposeHandoff,
    ReassignHandoff,
)
from dragoman.core.errors import Refusal
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.handoff import Handoff
from dragoman.engine.operation import Commands, Facts
from dragoman.engine.reads.handoffs import find_handoff
from dragoman.engine.reads.teamspaces import closed_to
from dragoman.engine.request import Accepted
from dragoman.protocols.acp.errors import CODES
from dragoman.protocols.acp.read import Asked
from dragoman.protocols.acp.settings import Choices

APPROVAL_REQUIRED: Final = "approval_required"
TRY_AGAIN: Final = "try_again"

_TIMED: Final = (ProposeHandoff, ExtendHandoff, ReassignHandoff)
"""Commands that give a handoff a new deadline."""

Reply = dict[str, Any]


def done(asked: Asked, commands: Commands, accepted: Accepted) -> Reply:
    """Reply of success: the handoff and its state, or what it waits for."""
    told, command = accepted.receipts[-1], commands[-1]
    reply: Reply = {
        "success": True,
        "handoff_id": told.stream.partition(":")[2],
        "status": told.state,
    }
    if isinstance(command, _TIMED):
        reply = with_metadata(reply, package_hash=told.seal)
        reply = (
            with_metadata(reply, due_by=to_rfc3339(told.expires_at)) if told.expires_at else reply
        )
    if warnings := [*asked.warnings, *accepted.masked]:
        reply = with_metadata(reply, warnings=warnings)
    if isinstance(command, AcceptHandoff):
        return _of_gate(reply, command)
    if isinstance(command, ActivateHandoff) and told.fence:
        return with_metadata(reply, attempt=told.attempt, fence=told.fence)
    return reply


def _of_gate(reply: Reply, command: AcceptHandoff) -> Reply:
    """Add the result of the gate; nothing for a duplicate, or if the hub itself rejected it."""
    is_unknown = reply["status"] == "rejected" and not command.failed
    if is_unknown or not (command.passed or command.failed):
        return reply
    failed = [f"{code}: {detail}" for code, detail in command.failed]
    told = _verified(reply, command.passed, failed, command.left_out)
    if command.failed:
        return denied(told, *command.failed[0])
    if reply["status"] == "validating":
        code = TRY_AGAIN if command.waits_for else APPROVAL_REQUIRED
        why = command.waits_for or "a person's approval is missing"
        return denied(told, code, f"{why}; it stays where it is, and can be accepted again")
    return told


def with_metadata(reply: Reply, **more: Any) -> Reply:
    """Add metadata to a reply."""
    return {**reply, "metadata": {**reply.get("metadata", {}), **more}}


def at_gate(reply: Reply, handoff: Handoff) -> Reply:
    """Add the recorded result of the gate: checks, and the reason of a rejection."""
    told = _verified(reply, handoff.passed, handoff.failed, handoff.left_out)
    if handoff.failed and handoff.rejection is not None:
        said = handoff.rejection
        return denied(told, said.reason, said.detail)
    return told


def _verified(
    reply: Reply, passed: Sequence[str], failed: Sequence[str], left_out: Sequence[str]
) -> Reply:
    told = with_metadata(reply, verification_passed=list(passed), verification_failed=list(failed))
    return with_metadata(told, left_out=list(left_out)) if left_out else told


def denied(reply: Reply, code: str, detail: str) -> Reply:
    """Turn the reply into a failure."""
    return {**reply, "success": False, "error": {"code": code, "detail": detail}}


def no_in(reply: Any) -> Refusal | None:
    """Refusal in a reply, if it is a failure."""
    error: Mapping[str, str] | None = reply.get("error")
    return None if error is None else Refusal(error["code"], error["detail"])


def refused(message: Any, refusal: Refusal, actor: Actor, facts: Facts, choices: Choices) -> Reply:
    """Reply of a refusal: its code and detail, and the state of the handoff if the caller may see
    it.
    """
    # Codes of the surface itself are kept.
    error = {"code": CODES.get(refusal.code, refusal.code), "detail": refusal.detail}
    if refusal.code == "ownership_conflict":
        error["kind"] = refusal.kind
    reply: Reply = {"success": False, "error": error}
    handoff_id = message.given.handoff_id if isinstance(message, Asked) else ""
    if not handoff_id:
        return reply
    closed = closed_to(choices.teamspaces, actor)
    known = find_handoff(facts.store, handoff_id, actor.name, closed)
    # What does not exist for the caller has no status either.
    is_hidden = refusal.code == "handoff_not_found"
    if is_hidden or isinstance(known, Refusal) or known.status == "draft":
        return {**reply, "handoff_id": handoff_id}
    return {**reply, "handoff_id": handoff_id, "status": known.status}
