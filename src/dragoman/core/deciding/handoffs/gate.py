"""Deciders of the gate: the recipient takes a package that stands every check, a person agrees."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.core.actors import HUB
from dragoman.core.commands import AcceptHandoff, ApproveHandoff, Failure
from dragoman.core.deciding.handoffs.common import about, found, letter, not_yours
from dragoman.core.deciding.handoffs.policy import why_not_to
from dragoman.core.deciding.handoffs.ways_out import turned_down
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    HandoffApproved,
    HandoffMoved,
    HandoffNoted,
    HandoffRejected,
    HandoffVerified,
)
from dragoman.core.ids import handoff_stream
from dragoman.core.limits import TEXT, check_text
from dragoman.core.reading import Decision, Read, StreamEvents
from dragoman.core.rules.handoff_chain import chain_of, check_cycle, owner_of
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.task import Task

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

_UNDECIDED = ("proposed", "validating")


def accept(command: AcceptHandoff, read: Read, now: int) -> Decision | Refusal:
    """Accept the package, if it passes every check (S-ACP-3)."""
    at = found(command.handoff, read, _UNDECIDED, "accept")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.recipient:
        return not_yours(handoff, read.actor, "accept", handoff.recipient)
    refusal = check_text("notes", command.notes, TEXT)
    if refusal:
        return refusal
    if command.package_hash != handoff.package_hash:
        return Refusal(
            "hash_mismatch", f"the package of {handoff.id} is not the one that was checked"
        )
    forbidden = why_not_to(handoff.recipient, task, read, now, handoff.package)
    command = _governed(command, forbidden)
    failed = _failures(command, handoff, task)
    waits_for = "" if failed else _waits_for(command, handoff)
    if waits_for and _is_still_waiting(command, handoff, waits_for):
        return Decision(about(handoff.id, "validating", task))
    looked_at = _looked_at(command, handoff, failed)
    if failed:
        code, detail = failed[0]
        down = turned_down(handoff, task, HandoffRejected(HUB, code, detail), read, at="validating")
        return Decision(about(handoff.id, "rejected", task), (*looked_at, *down))
    stream = handoff_stream(handoff.id)
    if waits_for:
        waits = (stream, HandoffNoted(HUB, "waiting", waits_for))
        return Decision(about(handoff.id, "validating", task), (*looked_at, waits))
    taken = HandoffMoved("validating", "accepted", command.notes, by=read.actor.name)
    told = letter(read, "handoff.accept", (handoff.sender,), handoff)
    return Decision(about(handoff.id, "accepted", task), (*looked_at, (stream, taken), told))


def _governed(command: AcceptHandoff, forbidden: str) -> AcceptHandoff:
    """Add the veto of an intent's policy to the findings of the gate, in the gate's order."""
    if not forbidden:
        return command
    failed: tuple[Failure, ...] = (("policy_violation", forbidden), *command.failed)
    return replace(
        command,
        passed=tuple(check for check in command.passed if check != "policy"),
        failed=tuple(sorted(failed, key=lambda failure: failure[0] != "schema_invalid")),
    )


def _failures(command: AcceptHandoff, handoff: Handoff, task: Task) -> tuple[Failure, ...]:
    """Failures that the gate found, or an ownership cycle that has come about since."""
    if command.failed:
        return command.failed
    chain = chain_of(task, owner_of(task, handoff.sender))
    cycle = check_cycle(chain, handoff.recipient, goes_back=handoff.goes_back)
    return (("ownership_conflict", cycle.detail),) if cycle else ()


def _waits_for(command: AcceptHandoff, handoff: Handoff) -> str:
    if command.waits_for:
        return command.waits_for
    missing = f"a person's approval of {handoff.package_hash} is missing"
    return missing if handoff.awaits_approval else ""


def _is_still_waiting(command: AcceptHandoff, handoff: Handoff, waits_for: str) -> bool:
    """Return whether the same result is recorded already, so that nothing is added."""
    said = [note.text for note in handoff.notes if note.kind == "waiting"]
    return (
        said[-1:] == [waits_for]
        and (handoff.passed, handoff.artifacts) == (command.passed, command.artifacts)
        and handoff.left_out == command.left_out
    )


def _looked_at(
    command: AcceptHandoff, handoff: Handoff, failed: tuple[Failure, ...]
) -> StreamEvents:
    stream = handoff_stream(handoff.id)
    events: list[tuple[str, AnyEvent]] = []
    if handoff.status == "proposed":
        events.append((stream, HandoffMoved("proposed", "validating", by=handoff.recipient)))
    labels = tuple(f"{code}: {detail}" for code, detail in failed)
    verified = HandoffVerified(command.passed, labels, command.artifacts, command.left_out)
    return (*events, (stream, verified))


def approve(command: ApproveHandoff, read: Read, now: int) -> Decision | Refusal:
    """Record a person's approval or denial, bound to the package that the person saw (S-ACP-9)."""
    del now
    at = found(command.handoff, read, _UNDECIDED, "approve or deny")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    actor = read.actor
    if actor.role != "human" or actor.name in (handoff.sender, handoff.recipient):
        whose = "a person other than its sender and its recipient"
        return not_yours(handoff, actor, "approve or deny", whose)
    refusal = check_text("note", command.note, TEXT)
    if refusal:
        return refusal
    if command.package_hash not in ("", handoff.package_hash):
        return Refusal(
            "hash_mismatch",
            f"{handoff.id} has the hash {handoff.package_hash}, which is not the approved one",
        )
    if command.is_yes and handoff.is_approved:
        return Decision(about(handoff.id, handoff.status, task))
    said = HandoffApproved(actor.name, handoff.package_hash, command.is_yes, command.note)
    events: StreamEvents = ((handoff_stream(handoff.id), said),)
    state = handoff.status
    if not command.is_yes:
        state = "rejected"
        detail = f"denied by {actor.name}" + (f": {command.note}" if command.note else "")
        events += turned_down(handoff, task, HandoffRejected(HUB, "policy_violation", detail), read)
    return Decision(about(handoff.id, state, task), events)
