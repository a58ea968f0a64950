"""`dragoman handoff list`, `show`, `timeline`, `verify` and `diagnose`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, cast

from msgspec import to_builtins

from dragoman.core.errors import Refusal, Refused
from dragoman.core.handoff.state import HandoffStatus
from dragoman.core.ids import handoff_stream
from dragoman.core.timestamps import format_hours, to_rfc3339
from dragoman.surfaces.cli.command import CliCommand, LimitOption, option
from dragoman.surfaces.cli.commands.handoff import HandoffArgument, closed_teamspaces, load_handoff
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
)
from dragoman.surfaces.cli.event_text import history_result
from dragoman.surfaces.cli.render import Column, Screen, format_pairs, truncate

if TYPE_CHECKING:
    from dragoman.core.handoff.state import Handoff, HandoffStep
    from dragoman.engine.handoff_diagnosis import HandoffDiagnosis
    from dragoman.files.handoff_verification import HandoffCheck


# --- list, show, timeline ---------------------------------------------------------------------


def list_handoffs(
    context: CommandContext,
    *,
    status: Annotated[HandoffStatus | None, option("--status", "", "Only in this state.")] = None,
    task: Annotated[str, option("--task", "TASK", "Only of this task, by any name.")] = "",
    sender: Annotated[str, option("--from", "NAME", "Only from this one.")] = "",
    recipient: Annotated[str, option("--to", "NAME", "Only to this one.")] = "",
    teamspace: Annotated[str, option("--teamspace", "NAME", "Only of this one.")] = "",
    before: Annotated[
        int | None,
        option(
            "--before", "CURSOR", "Go on with the next page, from where the last one says.", min=0
        ),
    ] = None,
    limit: LimitOption = 50,
) -> CommandResult:
    """List handoffs, newest first, a page at a time.

    \b
    Examples:
      dragoman handoff list --status proposed --to bob
      dragoman handoff list --task TASK-2026-02-09-001 --json
    """
    from dragoman.engine.queries.handoffs import HandoffFilter, handoff_page
    from dragoman.engine.queries.streams import END_OF_LIST
    from dragoman.engine.schemas.handoffs import handoff_summary

    with context.open_for_reading() as directory:
        filters = HandoffFilter(
            status=status,
            task=task,
            sender=sender,
            recipient=recipient,
            teamspace=teamspace,
            reader=context.acting_agent(),
            hidden_teamspaces=closed_teamspaces(context, directory),
            before=END_OF_LIST if before is None else before,
            limit=limit,
        )
        page, now = handoff_page(directory.hub.store, filters), directory.hub.clock.now()
    if isinstance(page, Refusal):
        raise Refused(page)
    rows = [to_builtins(handoff_summary(one)) for one in page.handoffs]

    def show(screen: Screen) -> None:
        if page.handoffs:
            screen.table(HANDOFF_COLUMNS, [handoff_row(one, now) for one in page.handoffs])
        else:
            screen.line("no handoffs")
        if page.next is not None:
            screen.line(f"There may be more: add --before {page.next}")

    return CommandResult({"handoffs": rows, "next": page.next}, show)


def show(context: CommandContext, id: HandoffArgument) -> CommandResult:
    """Show a handoff, and what it waits for.

    Its package, its checks, and the notes on it.

    \b
    Examples:
      dragoman handoff show fix-login-1
      dragoman handoff show fix-login-1 --json
    """
    from dragoman.engine.handoff_diagnosis import diagnose_handoff
    from dragoman.engine.schemas.handoffs import handoff_detail

    with context.open_for_reading() as directory:
        handoff = load_handoff(context, directory, id)
        diagnosis = diagnose_handoff(directory.hub.store, handoff, directory.hub.clock.now())
    return CommandResult(
        to_builtins(handoff_detail(handoff)),
        lambda screen: print_handoff(handoff, diagnosis, screen),
    )


def timeline(
    context: CommandContext,
    id: HandoffArgument,
    after: Annotated[
        int,
        option("--after", "N", "Begin after the handoff's N-th entry.", min=0, show_default=True),
    ] = 0,
    limit: LimitOption = 200,
) -> CommandResult:
    """Show what happened to a handoff, in order.

    Every entry of it in the ledger.

    \b
    Example:
      dragoman handoff timeline fix-login-1
    """
    with context.open_for_reading() as directory:
        handoff = load_handoff(context, directory, id)
        stream = handoff_stream(handoff.id)
        entries = directory.hub.store.history(stream, after, limit + 1)
    return history_result({"handoff_id": handoff.id}, entries, limit)


# --- verify, diagnose -------------------------------------------------------------------------


def verify(context: CommandContext, id: HandoffArgument) -> CommandResult:
    """Prove that a handoff is as it was written.

    Its entries, its package, its audit lines and the copies of its artifacts are checked.

    \b
    Example:
      dragoman handoff verify fix-login-1
    """
    with context.open_for_reading() as directory:
        handoff = load_handoff(context, directory, id)
        checks = [*directory.audit(handoff)]
    is_ok = all(check.ok for check in checks)
    data: dict[str, object] = {"handoff_id": id, "checks": to_builtins(checks)}
    if not is_ok:
        first = next(check for check in checks if not check.ok)
        data |= {"code": "handoff_broken", "detail": f"{first.check}: {first.detail}"}

    def show(screen: Screen) -> None:
        screen.line(
            (id, "bold"), "  ", ("all good", "green") if is_ok else ("NOT good", "bold red")
        )
        for check in checks:
            _print_check(check, screen)

    return CommandResult(data, show, is_ok=is_ok)


def _print_check(check: "HandoffCheck", screen: Screen) -> None:
    verdict = ("ok  ", "green") if check.ok else ("NOT ", "bold red")
    screen.line("  ", verdict, f"{check.check}: {check.detail}")


def diagnose(context: CommandContext, id: HandoffArgument) -> CommandResult:
    """Say why a handoff does not go on.

    Who must act, by when, and with which command.

    \b
    Example:
      dragoman handoff diagnose fix-login-1
    """
    from dragoman.engine.handoff_diagnosis import diagnose_handoff

    with context.open_for_reading() as directory:
        handoff = load_handoff(context, directory, id)
        diagnosis = diagnose_handoff(
            directory.hub.store,
            handoff,
            directory.hub.clock.now(),
            directory.settings.teamspaces,
        )
    return CommandResult(to_builtins(diagnosis), lambda screen: print_diagnosis(diagnosis, screen))


# --- printing ---------------------------------------------------------------------------------

HANDOFF_STATUS_STYLES: dict[str, str] = {
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
    """Objects of a list."""
    for one in cast(list[Any], listed) if isinstance(listed, list) else ():
        if isinstance(one, dict):
            yield cast(dict[str, Any], one)


def _package_section(package: dict[str, Any], name: str) -> dict[str, Any]:
    from dragoman.core.handoff.state import package_section

    return package_section(package, name)


def _approval_text(handoff: "Handoff") -> str:
    approval = handoff.approval
    if approval is None:
        return "a person's is required" if handoff.needs_approval else ""
    word = "approved" if approval.approved else "denied"
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
        default = "a person" if step.action in ("approve", "deny") else "a coordinator"
        who = " or ".join(step.who) or default
        screen.line("  ", (f"{who} can {step.action}: ", "bold"), step.command)
    for finding in diagnosis.findings:
        screen.line("  ", ("look: ", "yellow"), finding)


COMMANDS = (
    CliCommand("list", list_handoffs),
    CliCommand("show", show),
    CliCommand("timeline", timeline),
    CliCommand("verify", verify),
    CliCommand("diagnose", diagnose),
)
