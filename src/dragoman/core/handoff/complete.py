"""Complete and close a handoff, and add notes to it."""

from typing import Final

from msgspec.structs import replace

from dragoman.core.attempt import ReportOutcome, decide_report_outcome
from dragoman.core.errors import Refusal
from dragoman.core.handoff.activate import check_can_begin
from dragoman.core.handoff.common import (
    COORDINATOR_ROLES,
    find_in_state,
    find_visible_handoff,
    handoff_decision,
    handoff_receipt,
    letter_event,
    not_authorized_refusal,
)
from dragoman.core.handoff.state import (
    CloseHandoff,
    CompleteHandoff,
    Handoff,
    HandoffNoted,
    HandoffTransitioned,
    NoteHandoff,
)
from dragoman.core.ids import handoff_stream, task_stream
from dragoman.core.limits import MAX_TEXT, check_json, check_text
from dragoman.core.read import Decision, Read, StreamEvents
from dragoman.core.task_state import Task, TaskHandedOver

COMPLETION_NOTE_KIND: Final = "completion_notes"
"""Kind of the note that ends the work."""


def decide_complete(command: CompleteHandoff, read: Read, now: int) -> Decision | Refusal:
    """Complete the handoff: this is also the report of the recipient's attempt (S-SESSION)."""
    at = find_in_state(command.handoff, read, ("activated",), "complete")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.recipient:
        return not_authorized_refusal(handoff, read.actor, "complete", handoff.recipient)
    note = completion_note(command, read.actor.name)
    report = ReportOutcome(
        task.id, "done", details={"handoff": handoff.id}, apply=True, backoff=command.backoff
    )
    if not command.is_confidential:
        report = replace(report, notes=command.notes, details={**report.details, **note.data})
    reported = decide_report_outcome(report, read, now)
    if isinstance(reported, Refusal) and reported.code == "lease_lost":
        lost = f"{handoff.recipient} does not hold {task.id} any more"
        obstacle = check_can_begin(task)
        prefix = f"{obstacle.detail}; then " if obstacle else ""
        hint = f"{prefix}activate {handoff.id} again, then complete it"
        return Refusal("lease_lost", f"{lost}: {hint}")
    if isinstance(reported, Refusal):
        return reported
    done = completion_events(handoff, task, read, note)
    return replace(
        reported,
        events=(*reported.events, *done),
        receipt=replace(reported.receipt, stream=handoff_stream(handoff.id), state="completed"),
    )


def completion_note(command: CompleteHandoff, by: str) -> HandoffNoted:
    """Note with the last words about the work."""
    artifacts = list(command.final_artifacts)
    data: dict[str, object] = {"final_artifacts": artifacts} if artifacts else {}
    return HandoffNoted(by, COMPLETION_NOTE_KIND, command.notes, data)


def completion_events(
    handoff: Handoff,
    task: Task,
    read: Read,
    note: HandoffNoted,
    *,
    is_checkpoint: bool = False,
    outcome: str = "",
) -> StreamEvents:
    """Events that end the recipient's part, whatever dialect reported it, and a letter to the
    sender.

    The task cannot be handed back any more. `outcome`: where the work is not done, as its letter
    says. `is_checkpoint`: the work is left to a successor, not
    done.
    """
    stream = handoff_stream(handoff.id)
    events: StreamEvents = (
        (stream, HandoffTransitioned("activated", "completed", note.text, by=note.by)),
        (stream, note),
        (task_stream(task.id), TaskHandedOver(handoff.id, task.chain)),
    )
    if read.actor.name == handoff.sender:
        return events
    speaker, fields = handoff.recipient, {"note": note.text} if is_checkpoint or outcome else {}
    if outcome:
        fields["outcome"] = outcome
    notice = letter_event(
        read, "handoff.complete", (handoff.sender,), handoff, fields, speaker=speaker
    )
    return (*events, notice)


def decide_close(command: CloseHandoff, read: Read, _: int) -> Decision | Refusal:
    """Close the record of the handoff."""
    at = find_in_state(command.handoff, read, ("rejected", "completed"), "close")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.sender and read.actor.role not in COORDINATOR_ROLES:
        return not_authorized_refusal(
            handoff, read.actor, "close", f"{handoff.sender} or a coordinator"
        )
    refusal = check_text("closure_notes", command.notes, MAX_TEXT) or _check_finished(handoff, task)
    if refusal:
        return refusal
    closed = HandoffTransitioned(handoff.status, "closed", command.notes, by=read.actor.name)
    return Decision(
        handoff_receipt(handoff.id, "closed", task), ((handoff_stream(handoff.id), closed),)
    )


def _check_finished(handoff: Handoff, task: Task) -> Refusal | None:
    """Refuse to close completed work that was sent back to the recipient."""
    is_back = task.status in ("ready", "in-progress", "blocked") and task.handoff is None
    if handoff.status != "completed" or not is_back or task.assignee != handoff.recipient:
        return None
    return Refusal(
        "invalid_transition",
        f"{task.id} was sent back to {handoff.recipient} and is {task.status}: close {handoff.id} "
        "when the work is finished",
    )


# --- notes ------------------------------------------------------------------------------------

_MAX_KIND_CHARS: Final = 64

_RESERVED_NOTE_KINDS: Final = frozenset({"waiting", "superseded_by", "completion_notes"})


def decide_note(command: NoteHandoff, read: Read, _: int) -> Decision | Refusal:
    """Add a note to the handoff, by one of its parties, a coordinator or the hub."""
    handoff = find_visible_handoff(command.handoff, read)
    if isinstance(handoff, Refusal):
        return handoff
    actor = read.actor
    if (
        actor.name not in (handoff.sender, handoff.recipient)
        and actor.role not in COORDINATOR_ROLES
    ):
        allowed = f"{handoff.sender}, {handoff.recipient} or a coordinator"
        return not_authorized_refusal(handoff, actor, "add to", allowed)
    refusal = (
        check_text("kind", command.kind, _MAX_KIND_CHARS, minimum=1)
        or check_text("text", command.text, MAX_TEXT)
        or check_json("data", command.data)
        or _check_note_kind(command)
    )
    if refusal:
        return refusal
    event = HandoffNoted(actor.name, command.kind, command.text, command.data)
    return handoff_decision(handoff.id, handoff.status, event)


def _check_note_kind(command: NoteHandoff) -> Refusal | None:
    if command.kind not in _RESERVED_NOTE_KINDS:
        return None
    return Refusal("invalid_field", f"a note cannot be of the kind {command.kind}")
