"""`dragoman task`: list, search, show, log."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Struct, to_builtins

from dragoman.core.attempt import explain_wait
from dragoman.core.attempt_state import Checkpoint, Lease, Report
from dragoman.core.base import Status
from dragoman.core.errors import Refusal, Refused
from dragoman.core.ids import turns_stream
from dragoman.core.question_state import Question
from dragoman.core.task_state import (
    ActiveHandoff,
    Delegation,
    NoteTask,
    Task,
)
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.entries import LIST_PAGE, walk_list
from dragoman.engine.queries.intents import find_intent_of_task
from dragoman.engine.queries.tasks import (
    TaskFilter,
    find_task,
    find_task_stream,
    page_of_past_tasks,
    page_of_tasks,
    task_as_of,
)
from dragoman.engine.schemas.tasks import task_detail, task_summary
from dragoman.engine.sentences import truncate
from dragoman.surfaces.cli.command import (
    AsOfOption,
    CliCommand,
    FenceOption,
    LimitOption,
    TaskArgument,
    argument,
    option,
)
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    raise_usage_error,
)
from dragoman.surfaces.cli.data_directory import StoreSource
from dragoman.surfaces.cli.event_text import history_result
from dragoman.surfaces.cli.render import TASK_STATUS_STYLES, Column, Screen, pluralize
from dragoman.surfaces.cli.suggestions import suggesting_task

# --- a task as it is shown ---------------------------------------------------------------------


class TaskDisplay(Struct, frozen=True):
    """A task with its lease, if that is known, and the time of reading."""

    task: Task
    lease: Lease | None
    now: int


def load_task(source: StoreSource, name: str, as_of: int | None = None) -> TaskDisplay:
    """Load a task by any of its names, now or at a past position (which knows no leases)."""
    now = source.clock.now()
    with suggesting_task(source.store, name):
        if as_of is not None:
            past = task_as_of(source.store, name, as_of)
            if isinstance(past, Refusal):
                raise Refused(past)
            return TaskDisplay(past, None, now)
        view = find_task(source.store, name)
        if isinstance(view, Refusal):
            raise Refused(view)
        return TaskDisplay(view.task, view.lease, now)


def task_to_summary(shown: TaskDisplay) -> dict[str, object]:
    """JSON object of a task without its body, which may be long."""
    return to_builtins(task_summary(shown.task, shown.lease, shown.now))


def task_to_dict(shown: TaskDisplay) -> dict[str, object]:
    """JSON object of a task."""
    return to_builtins(task_detail(shown.task, shown.lease, shown.now))


class TaskRelations(Struct, frozen=True, rename="camel"):
    """Everything that belongs to a task and has streams of its own, as it is now."""

    intent: str | None = None
    """Id of the intent that it belongs to."""
    intent_state: str | None = None
    letters: int = 0
    """Letters about it."""
    turns: int = 0


def find_relations(store: Store, task: Task) -> TaskRelations:
    intent = find_intent_of_task(store, task)
    lists = {f"{kind}:{name}" for name in (task.mail_name, task.id) for kind in ("thread", "bead")}
    letters = {
        item.row.name
        for name in lists
        for item in walk_list(store, ListQuery(name, limit=LIST_PAGE))
    }
    turns = store.stream(turns_stream(task.id))
    return TaskRelations(
        intent and intent.id,
        intent and intent.state,
        len(letters),
        0 if turns is None else turns.version,
    )


_TASK_COLUMNS = (
    Column("ID", style="bold"),
    Column("STATUS", styles=TASK_STATUS_STYLES),
    Column("PRIORITY"),
    Column("ASSIGNEE"),
    Column("UPDATED", style="dim"),
    Column("WAITS", style="yellow"),
    Column("TITLE"),
)

_WAITS = 5
"""Index of the column with the reason why not anybody can claim a ready task."""


def _task_row(shown: TaskDisplay) -> tuple[str, ...]:
    """Cells of _TASK_COLUMNS."""
    task, wait = shown.task, explain_wait(shown.task, shown.now)
    to_the_minute = to_rfc3339(task.updated_at)[:16] + "Z"
    reason = wait.reason if wait else ""
    return (task.id, task.status, task.priority, task.assignee, to_the_minute, reason, task.title)


def print_task(shown: TaskDisplay, screen: Screen, related: TaskRelations | None) -> None:
    """Print all of a task; empty fields are left out."""
    task = shown.task
    screen.line((task.id, "bold"), "  ", task.title)
    for label, text in (*_task_facts(shown), *_related_facts(shown.task, related)):
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
        ("waits", _format_wait(shown)),
        ("waits for", ", ".join(task.open_blockers)),
        ("waited for", ", ".join(one for one in task.blocked_by if one not in task.open_blockers)),
        ("blocks", ", ".join(task.blocks)),
        ("part of", task.parent),
        ("parts", ", ".join(task.children)),
        ("found doing", task.discovered_from),
        ("led to", ", ".join(task.discovered)),
        ("attempts", _format_attempts(task)),
        ("not before", to_rfc3339(task.not_before) if task.not_before else ""),
        ("deadline", _format_deadline(shown)),
        ("lease", _format_lease(shown.lease, shown.now)),
        ("report", _format_report(task.reported)),
        ("checks", _format_checks(task)),
        ("delegation", _format_delegation(task.delegation)),
        ("handoff", _format_handoff(task.handoff)),
        ("owners", " → ".join(task.chain)),
        ("checkpoint", _format_checkpoint(task.checkpoint)),
        ("created", to_rfc3339(task.created_at)),
        ("updated", to_rfc3339(task.updated_at)),
    )


def _related_facts(task: Task, related: TaskRelations | None) -> Iterator[tuple[str, str]]:
    """A line for each question, answer and reason of a review, and for what else there is."""
    for one in task.questions:
        asker = f" of {one.asked_by}" if one.asked_by else ""
        yield "question", truncate(f"{one.id}{asker}, open since {_since(one)}: {one.text}")
    for one in task.answers:
        yield "answer", truncate(f"{one.id} by {one.answered_by}: {one.answer}")
    for one in task.feedback:
        yield "sent back", truncate(f"at {to_rfc3339(one.at)}: {one.text}")
    if related is None:
        return
    if related.intent:
        yield "intent", f"{related.intent}, {related.intent_state}: dragoman why {related.intent}"
    if related.letters:
        thread = f"dragoman mail thread {task.mail_name}"
        yield "letters", f"{related.letters}: {thread}"
    if related.turns:
        yield "turns", f"{related.turns}: dragoman story {task.id}"


def _since(question: Question) -> str:
    return to_rfc3339(question.asked_at)


def _format_attempts(task: Task) -> str:
    if not task.attempts:
        return ""
    return (
        f"{task.attempts} (fence {task.fence}); {task.failures} of at most {task.max_attempts} "
        "failures in a row"
    )


def _format_wait(shown: TaskDisplay) -> str:
    """Reason why not anybody can claim it; what it waits for has a line of its own."""
    wait = explain_wait(shown.task, shown.now)
    return wait.reason if wait and wait.kind in ("backoff", "handoff") else ""


def _format_deadline(shown: TaskDisplay) -> str:
    if not shown.task.deadline:
        return ""
    late = ", overdue" if shown.task.is_overdue(shown.now) else ""
    return f"{to_rfc3339(shown.task.deadline)}{late}"


def _format_lease(lease: Lease | None, now: int) -> str:
    if lease is None:
        return ""
    session = f", session {lease.session}" if lease.session else ""
    until = to_rfc3339(lease.expires_at)
    state = f"live until {until}" if lease.is_valid(now) else f"ended at {until}, awaits `tick`"
    beats = pluralize(lease.heartbeats, "beat")
    quiet = f", no progress since {to_rfc3339(lease.progress_at)}" if lease.is_quiet else ""
    return f"{lease.holder}, fence {lease.fence}{session}, {beats}, {state}{quiet}"


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


def _format_checks(task: Task) -> str:
    """Line on the evidence of the work: proven, failed, or only claimed."""
    evidence = task.evidence
    if task.awaits_checks:
        return f"the hub runs them: {'; '.join(task.required_checks)}"
    if evidence is None or evidence.attempt != task.attempts:
        claimed = task.status in ("review", "done") and task.reported is not None
        return "none: the report is a claim" if claimed else "; ".join(task.required_checks)
    failed = next((one for one in evidence.results if not one.has_passed), None)
    if failed is None:
        return f"proven by {'; '.join(one.command for one in evidence.results)}"
    how = failed.problem or f"exit code {failed.exit_code}"
    return f"failed: {failed.command}, {how}"


def _format_report(report: Report | None) -> str:
    if report is None:
        return ""
    blockers = f"; blocked by {', '.join(report.blockers)}" if report.blockers else ""
    at = to_rfc3339(report.at)
    instead = f" by the {report.by}, not" if report.by else ""
    return (
        f"{report.outcome}{instead} by {report.agent} (attempt {report.attempt}) at {at}{blockers}"
    )


# --- list, show, log --------------------------------------------------------------------------


class TaskPage(Struct, frozen=True):
    """A page of tasks, and the cursor of the next page, if there may be one."""

    tasks: list[TaskDisplay]
    next: int | None


def current_page(source: StoreSource, filters: TaskFilter) -> TaskPage:
    """Page of tasks as they are."""
    now = source.clock.now()
    page = page_of_tasks(source.store, filters, now)
    return TaskPage([TaskDisplay(view.task, view.lease, now) for view in page.tasks], page.next)


def past_page(source: StoreSource, filters: TaskFilter, position: int) -> TaskPage:
    """Page of tasks as they were."""
    now = source.clock.now()
    page = page_of_past_tasks(source.store, filters, position, now)
    return TaskPage([TaskDisplay(view.task, None, now) for view in page.tasks], page.next)


BeforeOption = Annotated[
    int | None,
    option("--before", "CURSOR", "Go on with the next page, from where the last one says.", min=0),
]


def list_tasks(
    context: CommandContext,
    *,
    status: Annotated[Status | None, option("--status", "", "Only in this status.")] = None,
    assignee: Annotated[str, option("--assignee", "NAME", "Only this agent's.")] = "",
    ready: Annotated[
        bool, option("--ready", "", "Only what can be claimed now: ready, due, not waiting.")
    ] = False,
    limit: LimitOption = 50,
    before: BeforeOption = None,
    as_of: AsOfOption = None,
) -> CommandResult:
    """List tasks, newest first, a page at a time.

    \b
    Examples:
      dragoman task list --status review
      dragoman task list --ready --json
    """
    if ready and status not in (None, "ready"):
        raise_usage_error(f"--ready and --status {status} exclude each other: give one of them")
    filters = TaskFilter("ready" if ready else status, assignee, ready, before, limit)
    with context.open_readonly() as directory:
        page = (
            current_page(directory, filters)
            if as_of is None
            else past_page(directory, filters, as_of)
        )
        _note_ledger_end(context, directory.store, as_of)
    return _page_result(page)


def search(
    context: CommandContext,
    words: Annotated[list[str], argument("WORDS", "All of them stand in it, in any case.")],
    *,
    status: Annotated[Status | None, option("--status", "", "Only in this status.")] = None,
    limit: LimitOption = 50,
    before: BeforeOption = None,
) -> CommandResult:
    """Find tasks by words, newest first.

    They stand in its names, its title, its text, its obstacle or the notes of its last report.

    \b
    Examples:
      dragoman task search login token
      dragoman task search "rate limit" --status review
    """
    filters = TaskFilter(status, before=before, limit=limit, words=tuple(words))
    with context.open_readonly() as directory:
        page = current_page(directory, filters)
    return _page_result(page)


def _page_result(page: TaskPage) -> CommandResult:
    tasks = [task_to_summary(shown) for shown in page.tasks]
    return CommandResult(
        {"tasks": tasks, "next": page.next}, lambda screen: _print_tasks(page, screen)
    )


def show(context: CommandContext, task: TaskArgument, as_of: AsOfOption = None) -> CommandResult:
    """Show a task, by any of its names.

    \b
    Examples:
      dragoman task show TASK-2026-02-09-001
      dragoman task show bead:ol-527.1 --as-of 42 --json
    """
    with context.open_readonly() as directory:
        shown = load_task(directory, task, as_of)
        _note_ledger_end(context, directory.store, as_of)
        # What the past had is not known.
        related = find_relations(directory.store, shown.task) if as_of is None else None
    return CommandResult(
        {**task_to_dict(shown), **({} if related is None else to_builtins(related))},
        lambda screen: print_task(shown, screen, related),
    )


def _note_ledger_end(context: CommandContext, store: Store, as_of: int | None) -> None:
    if as_of is not None and as_of > (head := store.head()):
        context.err.line(f"the ledger ends at {head}: this is how things are now")


def log(
    context: CommandContext,
    task: TaskArgument,
    text: Annotated[str | None, argument("TEXT", "A line for the work log.")] = None,
    after: Annotated[
        int, option("--after", "N", "Begin after the task's N-th entry.", min=0, show_default=True)
    ] = 0,
    limit: LimitOption = 200,
    fence: FenceOption = None,
) -> CommandResult:
    """Read a task's history; with a text, add a line to its work log.

    \b
    Examples:
      dragoman task log TASK-2026-02-09-001
      dragoman task log TASK-2026-02-09-001 "half of the tests pass" --as ada --fence 1
    """
    if text is not None:
        return _add_note(context, NoteTask(task, text, fence))
    if fence is not None:
        raise_usage_error("--fence goes with a text: reading needs none")
    return _read_history(context, task, after, limit)


def _add_note(context: CommandContext, note: NoteTask) -> CommandResult:
    with context.open_for_writing() as directory:
        actor = context.actor(directory, context.acting_agent())
        with suggesting_task(directory.hub.store, note.task):
            noted = directory.hub.submit(actor, note).receipts[0].task
        shown = load_task(directory.hub, noted)
    return CommandResult(
        task_to_dict(shown), lambda screen: screen.line(f"noted in the log of {noted}")
    )


def _read_history(context: CommandContext, task: str, after: int, limit: int) -> CommandResult:
    with context.open_readonly() as directory:
        store = directory.store
        with suggesting_task(store, task):
            stream = find_task_stream(store, task)
            if isinstance(stream, Refusal):
                raise Refused(stream)
        entries = store.history(stream, after, limit + 1)
    return history_result({"id": stream.partition(":")[2]}, entries, limit)


def _print_tasks(page: TaskPage, screen: Screen) -> None:
    if page.tasks:
        rows = [_task_row(shown) for shown in page.tasks]
        # A column that says nothing is left out.
        is_said = any(row[_WAITS] for row in rows)
        kept = [at for at in range(len(_TASK_COLUMNS)) if is_said or at != _WAITS]
        screen.table([_TASK_COLUMNS[at] for at in kept], [[row[at] for at in kept] for row in rows])
    else:
        screen.line("no tasks")
    if page.next is not None:
        screen.line(f"There are more: add --before {page.next}")


COMMANDS = (
    CliCommand("list", list_tasks, takes_as=False),
    CliCommand("search", search, takes_as=False),
    CliCommand("show", show, takes_as=False),
    CliCommand("log", log),
)
