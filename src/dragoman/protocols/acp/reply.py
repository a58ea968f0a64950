"""What a caller is told, in the one form that `acp_handoff` has for it: a yes, a no, a question."""

from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.commands import AcceptHandoff
from dragoman.core.errors import Refusal
from dragoman.core.handoff import Handoff
from dragoman.engine.handoffs import find_handoff
from dragoman.engine.operation import Commands, Facts
from dragoman.engine.request import Accepted
from dragoman.protocols.acp.errors import CODES
from dragoman.protocols.acp.read import Asked

APPROVAL_REQUIRED: Final = "approval_required"
TRY_AGAIN: Final = "try_again"

Reply = dict[str, Any]


def done(_: Asked, commands: Commands, accepted: Accepted) -> Reply:
    """A yes: which handoff, and where it stands now; or that it waits for something."""
    told, command = accepted.receipts[-1], commands[-1]
    reply: Reply = {
        "success": True,
        "handoff_id": told.stream.partition(":")[2],
        "status": told.state,
    }
    if isinstance(command, AcceptHandoff) and told.state == "validating":
        is_passing = bool(command.waits_for)
        code = TRY_AGAIN if is_passing else APPROVAL_REQUIRED
        why = command.waits_for or "a person's approval is missing"
        return denied(reply, code, f"{why}; it stays where it is, and can be accepted again")
    return reply


def with_metadata(reply: Reply, **more: Any) -> Reply:
    """The reply, and what else there is to say."""
    return {**reply, "metadata": {**reply.get("metadata", {}), **more}}


def at_gate(reply: Reply, handoff: Handoff) -> Reply:
    """What the gate has said: which checks it made, and why it did not let the handoff through."""
    told = with_metadata(
        reply,
        verification_passed=list(handoff.passed),
        verification_failed=list(handoff.failed),
    )
    if handoff.left_out:
        told = with_metadata(told, left_out=list(handoff.left_out))
    if reply["status"] == "rejected" and handoff.rejection is not None:
        said = handoff.rejection
        return denied(told, said.reason, said.detail)
    return told


def denied(reply: Reply, code: str, detail: str) -> Reply:
    """The reply as a no."""
    return {**reply, "success": False, "error": {"code": code, "detail": detail}}


def no_in(reply: Any) -> Refusal | None:
    """The no in a reply, if it is one."""
    error: Mapping[str, str] | None = reply.get("error")
    return None if error is None else Refusal(error["code"], error["detail"])


def refused(message: Any, refusal: Refusal, facts: Facts) -> Reply:
    """A refusal: its code, what is wrong, and where the handoff stands all the same."""
    error = {"code": CODES[refusal.code], "detail": refusal.detail}
    if refusal.code == "ownership_conflict":
        error["kind"] = refusal.kind
    reply: Reply = {"success": False, "error": error}
    handoff_id = message.given.handoff_id if isinstance(message, Asked) else ""
    if not handoff_id:
        return reply
    known = find_handoff(facts.store, handoff_id)
    if isinstance(known, Refusal) or known.status == "draft":
        return {**reply, "handoff_id": handoff_id}
    return {**reply, "handoff_id": handoff_id, "status": known.status}
