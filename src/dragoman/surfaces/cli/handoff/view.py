"""Handoffs as people read them: a row in a list, a page of one, and why one is stuck."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from dragoman.core.moments import in_hours, to_rfc3339
from dragoman.surfaces.cli.screen import Column, Screen
from dragoman.surfaces.cli.words.phrases import cut, pairs

if TYPE_CHECKING:
    from dragoman.core.states.handoff import Handoff, Step
    from dragoman.engine.handoff_diagnosis import Diagnosis

STATUS_STYLES: dict[str, str] = {
    "draft": "dim",
    "proposed": "cyan",
    "validating": "magenta",
    "accepted": "blue",
    "activated": "yellow",
    "rejected": "red",
    "completed": "green",
    "closed": "dim",
}
COLUMNS = (
    Column("ID", "bold"),
    Column("STATUS", styles=STATUS_STYLES),
    Column("TASK"),
    Column("FROM"),
    Column("TO"),
    Column("DUE BY", styles={"late": "red"}),
    Column("TITLE"),
)
_TITLE = 60
_MARGIN = "    | "


def as_row(handoff: "Handoff", now: int) -> tuple[str, ...]:
    """Table row of a handoff."""
    from dragoman.engine.shown.handoffs import as_written

    handoff = as_written(handoff)
    return (
        handoff.id,
        handoff.status,
        handoff.task,
        handoff.sender,
        handoff.recipient,
        _due(handoff, now),
        cut(handoff.title, _TITLE),
    )


def _due(handoff: "Handoff", now: int) -> str:
    deadline = handoff.deadline
    if handoff.is_escalated or (deadline is not None and deadline <= now):
        return "late"
    return "" if deadline is None else to_rfc3339(deadline)


def print_page(handoff: "Handoff", diagnosis: "Diagnosis", screen: Screen) -> None:
    """Print all of a handoff; empty fields are left out."""
    from dragoman.engine.shown.handoffs import as_written

    handoff = as_written(handoff)
    screen.line((handoff.id, "bold"), "  ", handoff.title)
    for label, text in _facts(handoff):
        if text:
            style = STATUS_STYLES[handoff.status] if label == "status" else ""
            screen.line(f"  {label:<11} ", (text, style) if style else text)
    for label, text in _texts(_as_it_stands(handoff)):
        if text:
            screen.line(f"  {label}")
            screen.block(text, _MARGIN)
    for step in _with_words_of_their_own(handoff):
        screen.line(f"  {step.to:<11} ", f"by {step.by} at {to_rfc3339(step.at)}: {step.note}")
    for note in handoff.notes:
        said = ", ".join(filter(None, (note.text, pairs(note.data))))
        if said:
            screen.line(f"  {note.kind:<11} ", f"by {note.by} at {to_rfc3339(note.at)}: {said}")
    screen.line("  next        ", diagnosis.summary)


def _with_words_of_their_own(handoff: "Handoff") -> "list[Step]":
    """Steps whose note is not printed elsewhere on the page."""
    said = {note.text for note in handoff.notes if note.kind == "completion_notes"}
    if handoff.rejection is not None:
        said.add(handoff.rejection.detail)
    return [step for step in handoff.steps if step.note and step.note not in said]


def _facts(handoff: "Handoff") -> tuple[tuple[str, str], ...]:
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
        ("due by", "" if handoff.deadline is None else to_rfc3339(handoff.deadline)),
        ("approval", _approval(handoff)),
        *_of_package(_as_it_stands(handoff)),
        ("passed", ", ".join(handoff.passed)),
        ("failed", "; ".join(handoff.failed)),
        *(("artifact", text) for text in _artifacts(handoff)),
        ("left out", ", ".join(handoff.left_out)),
        ("rejected", _rejection(handoff)),
        *(("escalated", _escalation(one)) for one in handoff.escalations),
        ("workq", handoff.workq),
    )


def _as_it_stands(handoff: "Handoff") -> dict[str, Any]:
    """The package with the work state updates of its recipient applied (S-ACP-11)."""
    updates = [note.data for note in handoff.notes if note.kind == "work_state_update"]
    work = _part(handoff.package, "work_state")
    for update in updates:
        work = {**work, **update}
    return {**handoff.package, "work_state": work}


def _of_package(package: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Fields of the package that an approver or recipient decides by."""
    task, policy, work = (_part(package, name) for name in ("task", "policy", "work_state"))
    percent = work.get("percent_complete")
    done = "" if percent is None else f", {percent} %"
    return (
        ("objective", str(task.get("objective", ""))),
        ("priority", str(task.get("priority", ""))),
        ("deadline", str(task.get("deadline", ""))),
        ("work", f"{work['status']}{done}" if "status" in work else ""),
        *((label, str(work.get(field, ""))) for label, field in _OF_WORK),
        *(("refers to", text) for text in _references(task)),
        *((name, str(policy.get(name, ""))) for name in _LABELS),
    )


_OF_WORK = (("branch", "branch"), ("worktree", "worktree_path"), ("tests", "test_status"))
"""Label -> field of the work state: where the work is, and its tests."""


def _references(task: dict[str, Any]) -> Iterator[str]:
    """External references of the task."""
    for ref in _objects(task.get("external_refs")):
        more = ", ".join(str(ref[name]) for name in ("description", "version") if name in ref)
        yield f"{ref.get('type', '')} {ref.get('value', '')}{f' ({more})' if more else ''}"


def _artifacts(handoff: "Handoff") -> Iterator[str]:
    """Artifacts of the package: path, description, and the hash of the stored copy."""
    for one in _objects(handoff.package.get("artifacts")):
        ref, id = _part(one, "ref"), str(one.get("artifact_id", ""))
        kept = handoff.artifacts.get(id, "")
        told = (
            f"{id}: {ref.get('type', '')} {ref.get('path', '')}",
            f"{ref['size_bytes']} bytes" if "size_bytes" in ref else "",
            f"SHA-256 {ref['sha256']}" if "sha256" in ref else "",
            *(str(ref.get(name, "")) for name in ("description", "version")),
            "may be missing" if ref.get("required") is False else "",
            f"kept as {kept[:12]}" if kept else "",
        )
        yield ", ".join(filter(None, told))


_LABELS = ("classification", "sensitivity", "visibility")
"""Policy fields: who should see the package."""


_TEXTS = (
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


def _texts(package: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Texts of the package; a list has one item on each line."""
    for label, part, field in _TEXTS:
        value: Any = _part(package, part).get(field, "")
        listed = cast(list[Any], value) if isinstance(value, list) else [value]
        yield label, "\n".join(map(str, listed))


def _objects(listed: object) -> Iterator[dict[str, Any]]:
    """Objects of a list; a draft may hold anything."""
    for one in cast(list[Any], listed) if isinstance(listed, list) else ():
        if isinstance(one, dict):
            yield cast(dict[str, Any], one)


def _part(package: dict[str, Any], name: str) -> dict[str, Any]:
    from dragoman.core.states.handoff import section

    return section(package, name)


def _approval(handoff: "Handoff") -> str:
    said = handoff.approval
    if said is None:
        return "a person's is required" if handoff.needs_approval else ""
    word = "approved" if said.is_yes else "denied"
    return f"{word} by {said.by} at {to_rfc3339(said.at)}{f': {said.note}' if said.note else ''}"


def _rejection(handoff: "Handoff") -> str:
    said = handoff.rejection
    if said is None:
        return ""
    fix = f"; suggested fix: {said.suggested_fix}" if said.suggested_fix else ""
    return f"{said.reason} by {said.by} at {to_rfc3339(said.at)}: {said.detail}{fix}"


def _escalation(told: Any) -> str:
    after = f" after {in_hours(told.elapsed_ms)}" if told.elapsed_ms else ""
    to = told.to or "nobody"
    return f"{told.trigger} in {told.stage}{after}, escalated to {to} at {to_rfc3339(told.at)}"


def print_diagnosis(diagnosis: "Diagnosis", screen: Screen) -> None:
    """Print why a handoff is stuck, who has to act, by when, and with which command."""
    style = STATUS_STYLES[diagnosis.status]
    screen.line((diagnosis.handoff_id, "bold"), "  ", (diagnosis.status, style))
    screen.line(f"  {diagnosis.summary}")
    if diagnosis.late:
        screen.line("  ", ("late", "red"), f": it should have gone on by {diagnosis.due_by}")
    elif diagnosis.due_by is not None:
        screen.line(f"  by {diagnosis.due_by}")
    for step in diagnosis.steps:
        who = " or ".join(step.who) or _ANYONE.get(step.action, "a coordinator")
        screen.line("  ", (f"{who} can {step.action}: ", "bold"), step.command)
    for finding in diagnosis.findings:
        screen.line("  ", ("look: ", "yellow"), finding)


_ANYONE = {"approve": "a person", "deny": "a person"}
"""Action -> who can do it where nobody is named."""
