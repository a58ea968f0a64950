"""Accept and approve a handoff: every check of the gate must pass (S-ACP-3, S-ACP-9)."""

from msgspec.structs import replace

from dragoman.core.actor import HUB_NAME
from dragoman.core.base import Event
from dragoman.core.errors import Refusal
from dragoman.core.handoff.common import (
    find_in_state,
    handoff_receipt,
    letter_event,
    not_authorized_refusal,
    policy_objection,
)
from dragoman.core.handoff.ownership import check_ownership_cycle, current_owner, owner_chain
from dragoman.core.handoff.reject import rejection_events
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ApproveHandoff,
    GateFailure,
    Handoff,
    HandoffApproved,
    HandoffNoted,
    HandoffRejected,
    HandoffTransitioned,
    HandoffVerified,
)
from dragoman.core.ids import handoff_stream
from dragoman.core.limits import MAX_TEXT, check_text
from dragoman.core.read import Decision, Read, StreamEvents
from dragoman.core.task_state import Task

_UNDECIDED_STATES = ("proposed", "validating")


def decide_accept(command: AcceptHandoff, read: Read, now: int) -> Decision | Refusal:
    """Accept the package, if it passes every check (S-ACP-3)."""
    at = find_in_state(command.handoff, read, _UNDECIDED_STATES, "accept")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.recipient:
        return not_authorized_refusal(handoff, read.actor, "accept", handoff.recipient)
    refusal = check_text("notes", command.notes, MAX_TEXT)
    if refusal:
        return refusal
    if command.package_hash != handoff.package_hash:
        return Refusal(
            "hash_mismatch", f"the package of {handoff.id} is not the one that was checked"
        )
    objection = policy_objection(handoff.recipient, task, read, now, handoff.package)
    command = _apply_intent_policy(command, objection)
    failed = _gate_failures(command, handoff, task)
    waits_for = "" if failed else _pending_reason(command, handoff)
    refused = _gate_refusal(command, handoff, failed, waits_for)
    if waits_for and _is_still_waiting(command, handoff, waits_for):
        return refused or Decision(handoff_receipt(handoff.id, "validating", task))
    verification = _verification_events(command, handoff, failed)
    if failed:
        code, detail = failed[0]
        rejection = rejection_events(
            handoff, task, HandoffRejected(HUB_NAME, code, detail), read, from_state="validating"
        )
        receipt = handoff_receipt(handoff.id, "rejected", task)
        return Decision(receipt, (*verification, *rejection), refusal=refused)
    stream = handoff_stream(handoff.id)
    if waits_for:
        waits = (stream, HandoffNoted(HUB_NAME, "waiting", waits_for))
        receipt = handoff_receipt(handoff.id, "validating", task)
        return Decision(receipt, (*verification, waits), refusal=refused)
    transition = HandoffTransitioned("validating", "accepted", command.notes, by=read.actor.name)
    notice = letter_event(read, "handoff.accept", (handoff.sender,), handoff)
    return Decision(
        handoff_receipt(handoff.id, "accepted", task), (*verification, (stream, transition), notice)
    )


def _apply_intent_policy(command: AcceptHandoff, objection: str) -> AcceptHandoff:
    """Add the veto of an intent's policy to the findings of the gate, in the gate's order."""
    if not objection:
        return command
    failed: tuple[GateFailure, ...] = (("policy_violation", objection), *command.failed)
    return replace(
        command,
        passed=tuple(check for check in command.passed if check != "policy"),
        failed=tuple(sorted(failed, key=lambda failure: failure[0] != "schema_invalid")),
    )


def _gate_failures(command: AcceptHandoff, handoff: Handoff, task: Task) -> tuple[GateFailure, ...]:
    """Failures that the gate found, or an ownership cycle that has come about since."""
    if command.failed:
        return command.failed
    chain = owner_chain(task, current_owner(task, handoff.sender))
    cycle = check_ownership_cycle(chain, handoff.recipient)
    return (("ownership_conflict", cycle.detail),) if cycle else ()


def _pending_reason(command: AcceptHandoff, handoff: Handoff) -> str:
    if command.waits_for:
        return command.waits_for
    missing = f"a person's approval of {handoff.package_hash} is missing"
    return missing if handoff.awaits_approval else ""


def _gate_refusal(
    command: AcceptHandoff, handoff: Handoff, failed: tuple[GateFailure, ...], waits_for: str
) -> Refusal | None:
    """Refusal of a request that goes on only if the gate passes."""
    if not command.must_pass or not (failed or waits_for):
        return None
    if failed:
        code, detail = failed[0]
        return Refusal(code, f"the gate has rejected {handoff.id}: {detail}")
    return Refusal("not_ready", f"{handoff.id} cannot be accepted yet: {waits_for}")


def _is_still_waiting(command: AcceptHandoff, handoff: Handoff, waits_for: str) -> bool:
    """Return whether the same result is recorded already, so that nothing is added."""
    waiting_notes = [note.text for note in handoff.notes if note.kind == "waiting"]
    return (
        waiting_notes[-1:] == [waits_for]
        and (handoff.passed, handoff.artifacts) == (command.passed, command.artifacts)
        and handoff.left_out == command.left_out
    )


def _verification_events(
    command: AcceptHandoff, handoff: Handoff, failed: tuple[GateFailure, ...]
) -> StreamEvents:
    stream = handoff_stream(handoff.id)
    events: list[tuple[str, Event]] = []
    if handoff.status == "proposed":
        events.append((stream, HandoffTransitioned("proposed", "validating", by=handoff.recipient)))
    labels = tuple(f"{code}: {detail}" for code, detail in failed)
    verified = HandoffVerified(command.passed, labels, command.artifacts, command.left_out)
    return (*events, (stream, verified))


def decide_approve(command: ApproveHandoff, read: Read, _: int) -> Decision | Refusal:
    """Record a person's approval or denial, bound to the package that the person saw (S-ACP-9)."""
    at = find_in_state(command.handoff, read, _UNDECIDED_STATES, "approve or deny")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    actor = read.actor
    if actor.role != "human" or actor.name in (handoff.sender, handoff.recipient):
        allowed = "a person other than its sender and its recipient"
        return not_authorized_refusal(handoff, actor, "approve or deny", allowed)
    refusal = check_text("note", command.note, MAX_TEXT)
    if refusal:
        return refusal
    if command.package_hash not in ("", handoff.package_hash):
        return Refusal(
            "hash_mismatch",
            f"{handoff.id} has the hash {handoff.package_hash}, which is not the approved one",
        )
    if command.approved and handoff.is_approved:
        return Decision(handoff_receipt(handoff.id, handoff.status, task))
    approval = HandoffApproved(actor.name, handoff.package_hash, command.approved, command.note)
    events: StreamEvents = ((handoff_stream(handoff.id), approval),)
    state = handoff.status
    if not command.approved:
        state = "rejected"
        detail = f"denied by {actor.name}" + (f": {command.note}" if command.note else "")
        events += rejection_events(
            handoff, task, HandoffRejected(HUB_NAME, "policy_violation", detail), read
        )
    return Decision(handoff_receipt(handoff.id, state, task), events)
