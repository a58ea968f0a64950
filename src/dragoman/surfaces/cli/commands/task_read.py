"""`dragoman task`: list, search, show, log."""

from typing import Annotated, Any

from msgspec import Struct, to_builtins

from dragoman.core.attempt import explain_wait
from dragoman.core.attempt_state import Lease
from dragoman.core.base import Status
from dragoman.core.errors import Refusal, Refused
from dragoman.core.ids import turns_stream
from dragoman.core.task_state import NoteTask, Task
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
from dragoman.engine.sentences import fill, truncate
from dragoman.surfaces.cli.command import (
    AsOfOption,
    CliCommand,
    FenceOption,
    LimitOption,
    TaskArgument,
    argument,
    option,
)
from dragoman.surfaces.cli.context import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.data_directory import StoreSource
from dragoman.surfaces.cli.generated import print_rows
from dragoman.surfaces.cli.render import TASK_STATUS_STYLES, Screen
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


_TASK_COLUMNS = {
    "ID": "{id}",
    "STATUS": "{status}",
    "PRIORITY": "{priority}",
    "ASSIGNEE": "{assignee}",
    "UPDATED": "{updatedAt:16}Z",
    "WAITS": "{waitReason}",
    "TITLE": "{title}",
}

_FACTS = {
    "status": "{status} since {lastTransitionAt}",
    "assignee": "{assignee}",
    "reserved": "for {reservedFor}",
    "priority": "{priority}",
    "review": "{?reviewRequired}required|{!reviewRequired}not required",
    "aof id": "{otherId}",
    "also called": "{aliases}",
    "origin": "{origin}",
    "waits": "{wait}",
    "waits for": "{waitsFor}",
    "waited for": "{waitedFor}",
    "blocks": "{blocks}",
    "part of": "{parent}",
    "parts": "{children}",
    "found doing": "{discoveredFrom}",
    "led to": "{discovered}",
    "attempts": (
        "{?attempt}{attempt} (fence {fence}); {failures} of at most {maxAttempts} failures in a row"
    ),
    "not before": "{notBefore}",
    "deadline": "{deadline}|{?overdue}, overdue",
    "lease": (
        "{lease.agent}, fence {lease.fence}|, session {lease.session}"
        "|, heartbeats: {lease.heartbeats}|{?lease.valid}, live until {lease.expiresAt}"
        "|{?lease}{!lease.valid}, ended at {lease.expiresAt}, awaits `tick`"
        "|, no progress since {quietSince}"
    ),
    "report": (
        "{report.outcome}| by the {report.by}, not| by {report.agent} (attempt {report.attempt})"
        "| at {report.at}|; blocked by {report.blockers}"
    ),
    "checks": "{proof}",
    "delegation": (
        "{delegation.from} to {delegation.to}, {delegation.state}, due by {delegation.dueBy}"
        "|{?delegation.escalated}, overdue"
    ),
    "handoff": (
        "{?handover.is_taken}taken over by|{!handover.is_taken}from {handover.owner} to"
        "| {handover.recipient}, handoff {handover.id}"
    ),
    "owners": "{handoffChain:chain}",
    "checkpoint": "{checkpoint.reason} at {checkpoint.at}|, by {checkpoint.by}"
    "|, commit {checkpoint.commit}",
    "created": "{createdAt}",
    "updated": "{updatedAt}",
    "intent": "{intent}, {intentState}: dragoman why {intent}",
    "letters": "{?letters}{letters}: dragoman mail thread {mailName}",
    "turns": "{?turns}{turns}: dragoman story {id}",
}
"""Label -> template of a line about a task; an empty line is left out."""

_LISTED_FACTS = {
    "question": ("questions", "{id}| of {askedBy}|, open since {askedAt}: {text}"),
    "answer": ("answers", "{id} by {answeredBy}: {answer}"),
    "sent back": ("feedback", "at {at}: {text}"),
}
"""Label -> field with a list, and the template of a line about each of its items."""

_TEXTS = {
    "obstacle": "{obstacle}",
    "body": "{body}",
    "notes": "{report.notes}",
    "next steps": "{checkpoint.nextSteps}",
}


def print_task(shown: TaskDisplay, screen: Screen, related: TaskRelations | None) -> None:
    """Print all of a task; empty fields are left out."""
    values = _printed_values(shown, related)
    screen.line((shown.task.id, "bold"), "  ", shown.task.title)
    lines = [(label, fill(template, values)) for label, template in _FACTS.items()]
    for label, (field, template) in _LISTED_FACTS.items():
        lines += [(label, truncate(fill(template, item))) for item in values[field]]
    for label, text in lines:
        if text:
            style = TASK_STATUS_STYLES[shown.task.status] if label == "status" else ""
            screen.line(f"  {label:<11} ", (text, style) if style else text)
    for label, template in _TEXTS.items():
        if text := fill(template, values):
            screen.line(f"  {label}")
            screen.block(text, "    | ")


def _printed_values(shown: TaskDisplay, related: TaskRelations | None) -> dict[str, Any]:
    """The JSON object of a task, with what is printed beside it."""
    task, lease, wait = shown.task, shown.lease, explain_wait(shown.task, shown.now)
    return {
        **task_to_dict(shown),
        **({} if related is None else to_builtins(related)),
        "otherId": task.aof_id if task.aof_id != task.id else "",
        "mailName": task.mail_name,
        "wait": wait.reason if wait and wait.kind in ("backoff", "handoff") else "",
        "waitedFor": [one for one in task.blocked_by if one not in task.open_blockers],
        "quietSince": to_rfc3339(lease.progress_at) if lease and lease.is_quiet else "",
        "handover": to_builtins(task.handoff) | {"is_taken": task.handoff.is_taken}
        if task.handoff
        else None,
        "proof": _describe_proof(task),
    }


def _describe_proof(task: Task) -> str:
    """Describe the evidence of the work: proven, failed, or only claimed."""
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

    def show(screen: Screen) -> None:
        # A column that says nothing is left out.
        is_said = any(task["waitReason"] for task in tasks)
        columns = {
            head: _TASK_COLUMNS[head] for head in _TASK_COLUMNS if is_said or head != "WAITS"
        }
        if tasks:
            print_rows(screen, columns, tasks, TASK_STATUS_STYLES)
        else:
            screen.line("no tasks")
        if page.next is not None:
            screen.line(f"There are more: add --before {page.next}")

    return CommandResult({"tasks": tasks, "next": page.next}, show)


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
    from dragoman.surfaces.cli.event_text import history_result

    return history_result({"id": stream.partition(":")[2]}, entries, limit)


COMMANDS = (
    CliCommand("list", list_tasks, takes_as=False),
    CliCommand("search", search, takes_as=False),
    CliCommand("show", show, takes_as=False),
    CliCommand("log", log),
)
