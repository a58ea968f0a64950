"""Handoffs as people read them: a row in a list, a page of one, and why one is stuck."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from dragoman.core.moments import format_hours, to_rfc3339
from dragoman.surfaces.cli.screen import Column, Screen
from dragoman.surfaces.cli.words.phrases import format_pairs, truncate

if TYPE_CHECKING:
    from dragoman.core.states.handoff import Handoff, HandoffStep
    from dragoman.engine.handoff_diagnosis import HandoffDiagnosis

HANDOFF_STATUS_STYLES: dict[str, str] = {
    "draft": "dim",
    "proposed": "cyan",
    "validating": "magenta",
    "accepted": "blue",
    "activated": "yellow",
    "rejected": "red",
    "completed": "green",
    "closed": "dim",
}
HANDOFF_COLUMNS = (
    Column("ID", "bold"),
    Column("STATUS", styles=HANDOFF_STATUS_STYLES),
    Column("TASK"),
    Column("FROM"),
    Column("TO"),
    Column("DUE BY", styles={"late": "red"}),
    Column("TITLE"),
)
_MAX_TITLE = 60
_MARGIN = "    | "


def handoff_row(handoff: "Handoff", now: int) -> tuple[str, ...]:
    """Table row of a handoff."""
    from dragoman.engine.shown.handoffs import with_draft_fields

    handoff = with_draft_fields(handoff)
    return (
        handoff.id,
        handoff.status,
        handoff.task,
        handoff.sender,
        handoff.recipient,
        _due_text(handoff, now),
        truncate(handoff.title, _MAX_TITLE),
    )


def _due_text(handoff: "Handoff", now: int) -> str:
    deadline = handoff.escalation_due_at
    if handoff.is_escalated or (deadline is not None and deadline <= now):
        return "late"
    return "" if deadline is None else to_rfc3339(deadline)


def print_handoff(handoff: "Handoff", diagnosis: "HandoffDiagnosis", screen: Screen) -> None:
    """Print all of a handoff; empty fields are left out."""
    from dragoman.engine.shown.handoffs import with_draft_fields

    handoff = with_draft_fields(handoff)
    screen.line((handoff.id, "bold"), "  ", handoff.title)
    for label, text in _handoff_facts(handoff):
        if text:
            style = HANDOFF_STATUS_STYLES[handoff.status] if label == "status" else ""
            screen.line(f"  {label:<11} ", (text, style) if style else text)
    for label, text in _package_texts(_current_package(handoff)):
        if text:
            screen.line(f"  {label}")
            screen.block(text, _MARGIN)
    for step in _steps_with_own_note(handoff):
        screen.line(f"  {step.to:<11} ", f"by {step.by} at {to_rfc3339(step.at)}: {step.note}")
    for note in handoff.notes:
        note_text = ", ".join(filter(None, (note.text, format_pairs(note.data))))
        if note_text:
            screen.line(
                f"  {note.kind:<11} ", f"by {note.by} at {to_rfc3339(note.at)}: {note_text}"
            )
    screen.line("  next        ", diagnosis.summary)


def _steps_with_own_note(handoff: "Handoff") -> "list[HandoffStep]":
    """Steps whose note is not printed elsewhere on the page."""
    notes = {note.text for note in handoff.notes if note.kind == "completion_notes"}
    if handoff.rejection is not None:
        notes.add(handoff.rejection.detail)
    return [step for step in handoff.steps if step.note and step.note not in notes]


def _handoff_facts(handoff: "Handoff") -> tuple[tuple[str, str], ...]:
    return (
        ("status", f"{handoff.status} since {to_rfc3339(handoff.entered_at)}"),
        ("task", handoff.task),
        ("from", handoff.sender),
        ("to", handoff.recipient),
        ("reason", handoff.reason),
        ("teamspace", handoff.teamspace),
        ("thread", handoff.thread),
        ("chain", " → ".join(handoff.owners)),
        ("supersedes", handoff.supersedes),
        ("superseded", f"by {handoff.superseded_by}" if handoff.superseded_by else ""),
        ("hash", handoff.package_hash),
        (
            "due by",
            "" if handoff.escalation_due_at is None else to_rfc3339(handoff.escalation_due_at),
        ),
        ("approval", _approval_text(handoff)),
        *_package_facts(_current_package(handoff)),
        ("passed", ", ".join(handoff.passed)),
        ("failed", "; ".join(handoff.failed)),
        *(("artifact", text) for text in _artifact_lines(handoff)),
        ("left out", ", ".join(handoff.left_out)),
        ("rejected", _rejection_text(handoff)),
        *(("escalated", _escalation_text(one)) for one in handoff.escalations),
        ("workq", handoff.workq),
    )


def _current_package(handoff: "Handoff") -> dict[str, Any]:
    """The package with the work state updates of its recipient applied (S-ACP-11)."""
    updates = [note.data for note in handoff.notes if note.kind == "work_state_update"]
    work = _package_section(handoff.package, "work_state")
    for update in updates:
        work = {**work, **update}
    return {**handoff.package, "work_state": work}


def _package_facts(package: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Fields of the package that an approver or recipient decides by."""
    task, policy, work = (
        _package_section(package, name) for name in ("task", "policy", "work_state")
    )
    percent = work.get("percent_complete")
    done = "" if percent is None else f", {percent} %"
    return (
        ("objective", str(task.get("objective", ""))),
        ("priority", str(task.get("priority", ""))),
        ("deadline", str(task.get("deadline", ""))),
        ("work", f"{work['status']}{done}" if "status" in work else ""),
        *((label, str(work.get(field, ""))) for label, field in _WORK_FIELDS),
        *(("refers to", text) for text in _reference_lines(task)),
        *((name, str(policy.get(name, ""))) for name in _POLICY_FIELDS),
    )


_WORK_FIELDS = (("branch", "branch"), ("worktree", "worktree_path"), ("tests", "test_status"))
"""Label -> field of the work state: where the work is, and its tests."""


def _reference_lines(task: dict[str, Any]) -> Iterator[str]:
    """External references of the task."""
    for ref in _dicts_of(task.get("external_refs")):
        more = ", ".join(str(ref[name]) for name in ("description", "version") if name in ref)
        yield f"{ref.get('type', '')} {ref.get('value', '')}{f' ({more})' if more else ''}"


def _artifact_lines(handoff: "Handoff") -> Iterator[str]:
    """Artifacts of the package: path, description, and the hash of the stored copy."""
    for artifact in _dicts_of(handoff.package.get("artifacts")):
        ref, id = _package_section(artifact, "ref"), str(artifact.get("artifact_id", ""))
        stored_hash = handoff.artifacts.get(id, "")
        details = (
            f"{id}: {ref.get('type', '')} {ref.get('path', '')}",
            f"{ref['size_bytes']} bytes" if "size_bytes" in ref else "",
            f"SHA-256 {ref['sha256']}" if "sha256" in ref else "",
            *(str(ref.get(name, "")) for name in ("description", "version")),
            "may be missing" if ref.get("required") is False else "",
            f"kept as {stored_hash[:12]}" if stored_hash else "",
        )
        yield ", ".join(filter(None, details))


_POLICY_FIELDS = ("classification", "sensitivity", "visibility")
"""Policy fields: who should see the package."""


_TEXT_FIELDS = (
    ("summary", "context", "summary"),
    ("next step", "work_state", "next_step"),
    ("criteria", "task", "success_criteria"),
    ("constraints", "context", "constraints"),
    ("assumptions", "context", "assumptions"),
    ("open questions", "context", "open_questions"),
    ("known risks", "context", "known_risks"),
    ("completed steps", "work_state", "completed_steps"),
    ("export restrictions", "policy", "export_restrictions"),
    ("related sessions", "provenance", "related_sessions"),
    ("decisions", "provenance", "decision_refs"),
)
"""Label -> part of the package and its field, in reading order of a recipient."""


def _package_texts(package: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Texts of the package; a list has one item on each line."""
    for label, part, field in _TEXT_FIELDS:
        value: Any = _package_section(package, part).get(field, "")
        listed = cast(list[Any], value) if isinstance(value, list) else [value]
        yield label, "\n".join(map(str, listed))


def _dicts_of(listed: object) -> Iterator[dict[str, Any]]:
    """Objects of a list; a draft may hold anything."""
    for one in cast(list[Any], listed) if isinstance(listed, list) else ():
        if isinstance(one, dict):
            yield cast(dict[str, Any], one)


def _package_section(package: dict[str, Any], name: str) -> dict[str, Any]:
    from dragoman.core.states.handoff import package_section

    return package_section(package, name)


def _approval_text(handoff: "Handoff") -> str:
    approval = handoff.approval
    if approval is None:
        return "a person's is required" if handoff.needs_approval else ""
    word = "approved" if approval.is_yes else "denied"
    return (
        f"{word} by {approval.by} at "
        f"{to_rfc3339(approval.at)}{f': {approval.note}' if approval.note else ''}"
    )


def _rejection_text(handoff: "Handoff") -> str:
    rejection = handoff.rejection
    if rejection is None:
        return ""
    fix = f"; suggested fix: {rejection.suggested_fix}" if rejection.suggested_fix else ""
    return (
        f"{rejection.reason} by {rejection.by} at {to_rfc3339(rejection.at)}: "
        f"{rejection.detail}{fix}"
    )


def _escalation_text(escalation: Any) -> str:
    after = f" after {format_hours(escalation.elapsed_ms)}" if escalation.elapsed_ms else ""
    to = escalation.to or "nobody"
    return (
        f"{escalation.trigger} in {escalation.stage}{after}, escalated to {to} at "
        f"{to_rfc3339(escalation.at)}"
    )


def print_diagnosis(diagnosis: "HandoffDiagnosis", screen: Screen) -> None:
    """Print why a handoff is stuck, who has to act, by when, and with which command."""
    style = HANDOFF_STATUS_STYLES[diagnosis.status]
    screen.line((diagnosis.handoff_id, "bold"), "  ", (diagnosis.status, style))
    screen.line(f"  {diagnosis.summary}")
    if diagnosis.late:
        screen.line("  ", ("late", "red"), f": it should have gone on by {diagnosis.due_by}")
    elif diagnosis.due_by is not None:
        screen.line(f"  by {diagnosis.due_by}")
    for step in diagnosis.steps:
        who = " or ".join(step.who) or _DEFAULT_ACTORS.get(step.action, "a coordinator")
        screen.line("  ", (f"{who} can {step.action}: ", "bold"), step.command)
    for finding in diagnosis.findings:
        screen.line("  ", ("look: ", "yellow"), finding)


_DEFAULT_ACTORS = {"approve": "a person", "deny": "a person"}
"""Action -> who can do it where nobody is named."""
