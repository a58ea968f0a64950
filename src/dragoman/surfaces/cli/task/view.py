"""A task as it is shown: one object for programs, a table row and a page of lines for people."""

from msgspec import Struct, to_builtins

from dragoman.core.moments import to_rfc3339
from dragoman.core.states.lease import Lease
from dragoman.core.states.task import ActiveHandoff, Checkpoint, Delegation, Reported, Task
from dragoman.engine.shown.tasks import task_summary, whole_task
from dragoman.surfaces.cli.screen import Column, Screen
from dragoman.surfaces.cli.words.phrases import counted

STATUS_STYLES: dict[str, str] = {
    "backlog": "dim",
    "ready": "cyan",
    "in-progress": "yellow",
    "blocked": "magenta",
    "review": "blue",
    "done": "green",
    "deadletter": "bold red",
    "cancelled": "dim",
}

COLUMNS = (
    Column("ID", style="bold"),
    Column("STATUS", styles=STATUS_STYLES),
    Column("PRIORITY"),
    Column("ASSIGNEE"),
    Column("UPDATED", style="dim"),
    Column("TITLE"),
)


class Shown(Struct, frozen=True):
    """A task with its lease, if that is known, and the time of reading."""

    task: Task
    lease: Lease | None
    now: int


def as_summary(shown: Shown) -> dict[str, object]:
    """JSON object of a task without its body, which may be long."""
    return to_builtins(task_summary(shown.task, shown.lease, shown.now))


def as_object(shown: Shown) -> dict[str, object]:
    """JSON object of a task."""
    return to_builtins(whole_task(shown.task, shown.lease, shown.now))


def as_row(task: Task) -> tuple[str, ...]:
    """Cells of TASK_COLUMNS."""
    to_the_minute = to_rfc3339(task.updated_at)[:16] + "Z"
    return (task.id, task.status, task.priority, task.assignee, to_the_minute, task.title)


def print_page(shown: Shown, screen: Screen) -> None:
    """Print all of a task; empty fields are left out."""
    task = shown.task
    screen.line((task.id, "bold"), "  ", task.title)
    for label, text in _facts(shown):
        if text:
            style = STATUS_STYLES[task.status] if label == "status" else ""
            screen.line(f"  {label:<11} ", (text, style) if style else text)
    longer = (
        ("obstacle", task.obstacle),
        ("body", task.body),
        ("notes", task.reported.notes if task.reported else ""),
        ("next steps", task.checkpoint.next_steps if task.checkpoint else ""),
    )
    for label, text in longer:
        if text:
            screen.line(f"  {label}")
            screen.block(text, "    | ")


def _facts(shown: Shown) -> tuple[tuple[str, str], ...]:
    task = shown.task
    return (
        ("status", f"{task.status} since {to_rfc3339(task.moved_at)}"),
        ("assignee", task.assignee),
        ("reserved", f"for {task.reserved_for}" if task.reserved_for else ""),
        ("priority", task.priority),
        ("review", "required" if task.review_required else "not required"),
        ("aof id", task.aof_id if task.aof_id != task.id else ""),
        ("also called", ", ".join(task.aliases)),
        ("origin", task.origin),
        ("waits for", ", ".join(task.open_blockers)),
        ("waited for", ", ".join(one for one in task.blocked_by if one not in task.open_blockers)),
        ("blocks", ", ".join(task.blocks)),
        ("part of", task.parent),
        ("parts", ", ".join(task.children)),
        ("found doing", task.discovered_from),
        ("led to", ", ".join(task.discovered)),
        ("attempts", _attempts(task)),
        ("not before", to_rfc3339(task.not_before) if task.not_before else ""),
        ("lease", _lease_in_words(shown.lease, shown.now)),
        ("report", _report_in_words(task.reported)),
        ("handoff", _delegation_in_words(task.delegation)),
        ("on its way", _handoff_in_words(task.handoff)),
        ("owners", " → ".join(task.chain)),
        ("checkpoint", _checkpoint_in_words(task.checkpoint)),
        ("created", to_rfc3339(task.created_at)),
        ("updated", to_rfc3339(task.updated_at)),
    )


def _attempts(task: Task) -> str:
    if not task.attempts:
        return ""
    return (
        f"{task.attempts} (fence {task.fence}); {task.failures} of at most {task.max_attempts} "
        "failures in a row"
    )


def _lease_in_words(lease: Lease | None, now: int) -> str:
    if lease is None:
        return ""
    session = f", session {lease.session}" if lease.session else ""
    until = to_rfc3339(lease.expires_at)
    state = f"live until {until}" if lease.is_live(now) else f"ended at {until}, awaits `tick`"
    return f"{lease.holder}, fence {lease.fence}{session}, {counted(lease.beats, 'beat')}, {state}"


def _handoff_in_words(under_way: ActiveHandoff | None) -> str:
    if under_way is None:
        return ""
    how = "taken over by" if under_way.is_taken else f"from {under_way.owner} to"
    return f"{how} {under_way.recipient}, handoff {under_way.id}"


def _delegation_in_words(asked: Delegation | None) -> str:
    if asked is None:
        return ""
    late = ", overdue" if asked.escalated else ""
    return (
        f"{asked.from_agent} to {asked.to_agent}, {asked.state}, "
        f"due by {to_rfc3339(asked.due_by)}{late}"
    )


def _checkpoint_in_words(left: Checkpoint | None) -> str:
    if left is None:
        return ""
    said = filter(None, (left.by and f"by {left.by}", left.commit and f"commit {left.commit}"))
    return ", ".join((f"{left.reason} at {to_rfc3339(left.at)}", *said))


def _report_in_words(report: Reported | None) -> str:
    if report is None:
        return ""
    blockers = f"; blocked by {', '.join(report.blockers)}" if report.blockers else ""
    at = to_rfc3339(report.at)
    instead = f" by the {report.by}, not" if report.by else ""
    return (
        f"{report.outcome}{instead} by {report.agent} (attempt {report.attempt}) at {at}{blockers}"
    )
