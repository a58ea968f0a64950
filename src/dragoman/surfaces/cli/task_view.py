"""A task as it is shown: looked up by any of its names, as a dict, a table row or a page."""

from msgspec import Struct, to_builtins

from dragoman.core.attempt_state import Checkpoint, Lease, Report
from dragoman.core.errors import Refusal, Refused
from dragoman.core.task_state import ActiveHandoff, Delegation, Task
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.tasks import find_task, task_as_of
from dragoman.engine.schemas.tasks import task_detail, task_summary
from dragoman.surfaces.cli.data_directory import StoreSource
from dragoman.surfaces.cli.render import TASK_STATUS_STYLES, Column, Screen, pluralize


class TaskDisplay(Struct, frozen=True):
    """A task with its lease, if that is known, and the time of reading."""

    task: Task
    lease: Lease | None
    now: int


def load_task(source: StoreSource, name: str, as_of: int | None = None) -> TaskDisplay:
    """Load a task by any of its names, now or at a past position (which knows no leases)."""
    now = source.clock.now()
    if as_of is not None:
        past = task_as_of(source.store, name, as_of)
        if isinstance(past, Refusal):
            raise Refused(past)
        return TaskDisplay(past, None, now)
    view = find_task(source.store, name)
    if isinstance(view, Refusal):
        raise Refused(view)
    return TaskDisplay(view.task, view.lease, now)


# --- for programs -----------------------------------------------------------------------------


def task_to_summary(shown: TaskDisplay) -> dict[str, object]:
    """JSON object of a task without its body, which may be long."""
    return to_builtins(task_summary(shown.task, shown.lease, shown.now))


def task_to_dict(shown: TaskDisplay) -> dict[str, object]:
    """JSON object of a task."""
    return to_builtins(task_detail(shown.task, shown.lease, shown.now))


# --- for people -------------------------------------------------------------------------------

TASK_COLUMNS = (
    Column("ID", style="bold"),
    Column("STATUS", styles=TASK_STATUS_STYLES),
    Column("PRIORITY"),
    Column("ASSIGNEE"),
    Column("UPDATED", style="dim"),
    Column("TITLE"),
)


def task_row(task: Task) -> tuple[str, ...]:
    """Cells of TASK_COLUMNS."""
    to_the_minute = to_rfc3339(task.updated_at)[:16] + "Z"
    return (task.id, task.status, task.priority, task.assignee, to_the_minute, task.title)


def print_task(shown: TaskDisplay, screen: Screen) -> None:
    """Print all of a task; empty fields are left out."""
    task = shown.task
    screen.line((task.id, "bold"), "  ", task.title)
    for label, text in _task_facts(shown):
        if text:
            style = TASK_STATUS_STYLES[task.status] if label == "status" else ""
            screen.line(f"  {label:<11} ", (text, style) if style else text)
    texts = (
        ("obstacle", task.obstacle),
        ("body", task.body),
        ("notes", task.reported.notes if task.reported else ""),
        ("next steps", task.checkpoint.next_steps if task.checkpoint else ""),
    )
    for label, text in texts:
        if text:
            screen.line(f"  {label}")
            screen.block(text, "    | ")


def _task_facts(shown: TaskDisplay) -> tuple[tuple[str, str], ...]:
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
        ("attempts", _format_attempts(task)),
        ("not before", to_rfc3339(task.not_before) if task.not_before else ""),
        ("lease", _format_lease(shown.lease, shown.now)),
        ("report", _format_report(task.reported)),
        ("delegation", _format_delegation(task.delegation)),
        ("handoff", _format_handoff(task.handoff)),
        ("owners", " → ".join(task.chain)),
        ("checkpoint", _format_checkpoint(task.checkpoint)),
        ("created", to_rfc3339(task.created_at)),
        ("updated", to_rfc3339(task.updated_at)),
    )


def _format_attempts(task: Task) -> str:
    if not task.attempts:
        return ""
    return (
        f"{task.attempts} (fence {task.fence}); {task.failures} of at most {task.max_attempts} "
        "failures in a row"
    )


def _format_lease(lease: Lease | None, now: int) -> str:
    if lease is None:
        return ""
    session = f", session {lease.session}" if lease.session else ""
    until = to_rfc3339(lease.expires_at)
    state = f"live until {until}" if lease.is_valid(now) else f"ended at {until}, awaits `tick`"
    beats = pluralize(lease.heartbeats, "beat")
    return f"{lease.holder}, fence {lease.fence}{session}, {beats}, {state}"


def _format_handoff(handoff: ActiveHandoff | None) -> str:
    if handoff is None:
        return ""
    relation = "taken over by" if handoff.is_taken else f"from {handoff.owner} to"
    return f"{relation} {handoff.recipient}, handoff {handoff.id}"


def _format_delegation(delegation: Delegation | None) -> str:
    if delegation is None:
        return ""
    late = ", overdue" if delegation.escalated else ""
    return (
        f"{delegation.from_agent} to {delegation.to_agent}, {delegation.state}, "
        f"due by {to_rfc3339(delegation.due_by)}{late}"
    )


def _format_checkpoint(checkpoint: Checkpoint | None) -> str:
    if checkpoint is None:
        return ""
    details = filter(
        None,
        (
            checkpoint.by and f"by {checkpoint.by}",
            checkpoint.commit and f"commit {checkpoint.commit}",
        ),
    )
    return ", ".join((f"{checkpoint.reason} at {to_rfc3339(checkpoint.at)}", *details))


def _format_report(report: Report | None) -> str:
    if report is None:
        return ""
    blockers = f"; blocked by {', '.join(report.blockers)}" if report.blockers else ""
    at = to_rfc3339(report.at)
    instead = f" by the {report.by}, not" if report.by else ""
    return (
        f"{report.outcome}{instead} by {report.agent} (attempt {report.attempt}) at {at}{blockers}"
    )
