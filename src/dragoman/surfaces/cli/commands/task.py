"""`dragoman task`: create, move, link, list, show, log, claim, heartbeat, release."""

from codecs import getincrementaldecoder
from collections.abc import Sequence
from typing import Annotated

import typer
from msgspec import Struct

from dragoman.core.attempt import ClaimTask, ReleaseTask, RenewLease
from dragoman.core.base import LinkKind, Priority, Status
from dragoman.core.command_table import AnyCommand
from dragoman.core.errors import Refusal, Refused
from dragoman.core.limits import MAX_BODY
from dragoman.core.task_state import AliasTask, CreateTask, LinkTask, MoveTask, NoteTask
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.tasks import TaskFilter, find_task_stream, page_of_tasks, tasks_as_of
from dragoman.surfaces.cli.command import (
    AgentOption,
    AsOfOption,
    CliCommand,
    FenceOption,
    LimitOption,
    ReasonOption,
    TaskArgument,
    TtlOption,
)
from dragoman.surfaces.cli.context import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.data_directory import StoreSource
from dragoman.surfaces.cli.event_text import history_result
from dragoman.surfaces.cli.input_files import read_source
from dragoman.surfaces.cli.render import Screen
from dragoman.surfaces.cli.task_view import (
    TASK_COLUMNS,
    TaskDisplay,
    load_task,
    print_task,
    task_row,
    task_to_dict,
    task_to_summary,
)

# --- create, move, link -----------------------------------------------------------------------

_MAX_BODY_BYTES = 4 * (MAX_BODY + 1)
"""More bytes than these always exceed the character limit of a body."""

BlockedByOption = Annotated[
    list[str] | None,
    typer.Option(
        "--blocked-by",
        metavar="ID",
        show_default=False,
        help="Not claimable before that task has ended; repeatable.",
    ),
]

ParentOption = Annotated[
    str,
    typer.Option(
        "--parent", metavar="ID", show_default=False, help="The task that it is a part of."
    ),
]

DiscoveredFromOption = Annotated[
    str,
    typer.Option(
        "--discovered-from",
        metavar="ID",
        show_default=False,
        help="The task during which it was found.",
    ),
]

AliasOption = Annotated[
    list[str] | None,
    typer.Option(
        "--alias",
        metavar="KIND:NAME",
        show_default=False,
        help="One more name, e.g. bead:ol-527.1; repeatable.",
    ),
]


def create(
    context: CommandContext,
    *,
    title: Annotated[str, typer.Argument(metavar="TITLE", show_default=False, help="What to do.")],
    id: Annotated[
        str,
        typer.Option(
            "--id", metavar="ID", show_default=False, help="Its id; else the day's next AOF id."
        ),
    ] = "",
    ready: Annotated[
        bool, typer.Option("--ready", help="Claimable at once, not in the backlog.")
    ] = False,
    assignee: Annotated[
        str,
        typer.Option(
            "--assignee",
            metavar="NAME",
            show_default=False,
            help="Only this agent may take it.",
        ),
    ] = "",
    parent: ParentOption = "",
    no_review: Annotated[
        bool, typer.Option("--no-review", help="A report of done ends it, without a review.")
    ] = False,
    priority: Annotated[
        Priority, typer.Option("--priority", help="Tasks of a higher priority are claimed first.")
    ] = "normal",
    body: Annotated[
        str,
        typer.Option("--body", metavar="TEXT", show_default=False, help="The whole description."),
    ] = "",
    body_file: Annotated[
        str,
        typer.Option(
            "--body-file",
            metavar="FILE",
            show_default=False,
            help="The description from a file; - reads standard input.",
        ),
    ] = "",
    blocked_by: BlockedByOption = None,
    discovered_from: DiscoveredFromOption = "",
    alias: AliasOption = None,
    key: Annotated[
        str,
        typer.Option(
            "--key",
            metavar="KEY",
            show_default=False,
            help="The same key again makes no second task, and answers as before.",
        ),
    ] = "",
) -> CommandResult:
    """Make a task, and print its id.

    \b
    Examples:
      dragoman task create "Write the parser" --ready
      dragoman task create "Test it" --ready --blocked-by TASK-2026-02-09-001
    """
    if body and body_file:
        raise_usage_error("--body and --body-file exclude each other: give one of them")
    whole_body = _read_body(body_file) if body_file else body
    with context.open_for_writing() as directory:
        defaults = directory.settings.tasks
        command = CreateTask(
            title=title,
            id=id,
            body=whole_body,
            ready=ready,
            assignee=assignee,
            parent=parent,
            review_required=defaults.review_required and not no_review,
            priority=priority,
            blocked_by=tuple(blocked_by or ()),
            discovered_from=discovered_from,
            aliases=tuple(alias or ()),
            max_attempts=defaults.max_attempts,
        )
        accepted = directory.hub.submit(
            context.actor(directory, context.acting_agent()), command, key=key
        )
        task_id = accepted.receipts[0].task
        shown = task_to_dict(load_task(directory.hub, task_id))
        return CommandResult(
            {**shown, "repeated": accepted.repeated}, lambda screen: screen.line(task_id)
        )


def move(
    context: CommandContext,
    task: TaskArgument,
    status: Annotated[
        Status, typer.Argument(metavar="STATUS", show_default=False, help="Where to.")
    ],
    reason: ReasonOption = "",
    fence: FenceOption = None,
) -> CommandResult:
    """Move a task to another status.

    Into in-progress there is only one way: `dragoman task claim`.

    \b
    Examples:
      dragoman task move TASK-2026-02-09-001 done --reason "reviewed"
      dragoman task move TASK-2026-02-09-001 review --as ada --fence 1
    """
    return _submit(context, MoveTask(task, status, reason, fence))


def link(
    context: CommandContext,
    task: TaskArgument,
    blocked_by: BlockedByOption = None,
    parent: ParentOption = "",
    discovered_from: DiscoveredFromOption = "",
    alias: AliasOption = None,
) -> CommandResult:
    """Link a task to others, or give it one more name; all or none.

    \b
    Examples:
      dragoman task link TASK-2026-02-09-002 --blocked-by TASK-2026-02-09-001
      dragoman task link TASK-2026-02-09-002 --alias bead:ol-527.1
    """
    links: tuple[tuple[LinkKind, Sequence[str]], ...] = (
        ("blocked-by", blocked_by or ()),
        ("parent", (parent,)),
        ("discovered-from", (discovered_from,)),
    )
    commands: list[AnyCommand] = [
        LinkTask(task, kind, other) for kind, others in links for other in others if other
    ]
    commands += [AliasTask(task, name) for name in alias or ()]
    if not commands:
        raise_usage_error("say to what: --blocked-by, --parent, --discovered-from or --alias")
    return _submit(context, *commands)


def _submit(context: CommandContext, *commands: AnyCommand) -> CommandResult:
    with context.open_for_writing() as directory:
        receipts = directory.hub.submit(
            context.actor(directory, context.acting_agent()), *commands
        ).receipts
        shown = load_task(directory.hub, receipts[-1].task)
    task = shown.task
    waits = f", and waits for {', '.join(task.open_blockers)}" if task.open_blockers else ""
    return CommandResult(
        task_to_dict(shown), lambda screen: screen.line(f"{task.id} is {task.status}{waits}")
    )


def _read_body(file: str) -> str:
    """Read a body from a file or standard input; of one too long, only enough to be refused."""
    body = read_source(file, _MAX_BODY_BYTES)
    try:
        return getincrementaldecoder("utf-8")().decode(body, final=len(body) <= _MAX_BODY_BYTES)
    except UnicodeDecodeError:
        raise_usage_error(f"--body-file {file}: it is not UTF-8 text")


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
    """Page of tasks as they were; its cursor counts tasks by age, the oldest is 1."""
    now = source.clock.now()
    past = list(enumerate(tasks_as_of(source.store, position), start=1))
    end = len(past) if filters.before is None else min(len(past), max(filters.before - 1, 0))
    matches = [
        (number, task) for number, task in reversed(past[:end]) if filters.matches(task, now)
    ]
    page = matches[: filters.limit]
    next_cursor = page[-1][0] if len(matches) > filters.limit else None
    return TaskPage([TaskDisplay(task, None, now) for _, task in page], next_cursor)


def list_tasks(
    context: CommandContext,
    *,
    status: Annotated[
        Status | None, typer.Option("--status", show_default=False, help="Only in this status.")
    ] = None,
    assignee: Annotated[
        str,
        typer.Option("--assignee", metavar="NAME", show_default=False, help="Only this agent's."),
    ] = "",
    ready: Annotated[
        bool, typer.Option("--ready", help="Only what can be claimed now: ready, due, not waiting.")
    ] = False,
    limit: LimitOption = 50,
    before: Annotated[
        int | None,
        typer.Option(
            "--before",
            metavar="CURSOR",
            min=0,
            show_default=False,
            help="Go on with the next page, from where the last one says.",
        ),
    ] = None,
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
    return CommandResult(task_to_dict(shown), lambda screen: print_task(shown, screen))


def _note_ledger_end(context: CommandContext, store: Store, as_of: int | None) -> None:
    if as_of is not None and as_of > (head := store.head()):
        context.err.line(f"the ledger ends at {head}: this is how things are now")


def log(
    context: CommandContext,
    task: TaskArgument,
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", show_default=False, help="A line for the work log."),
    ] = None,
    after: Annotated[
        int, typer.Option("--after", metavar="N", min=0, help="Begin after the task's N-th entry.")
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
        noted = (
            directory.hub.submit(context.actor(directory, context.acting_agent()), note)
            .receipts[0]
            .task
        )
        shown = load_task(directory.hub, noted)
    return CommandResult(
        task_to_dict(shown), lambda screen: screen.line(f"noted in the log of {noted}")
    )


def _read_history(context: CommandContext, task: str, after: int, limit: int) -> CommandResult:
    with context.open_readonly() as directory:
        store = directory.store
        stream = find_task_stream(store, task)
        if isinstance(stream, Refusal):
            raise Refused(stream)
        entries = store.history(stream, after, limit + 1)
    return history_result({"id": stream.partition(":")[2]}, entries, limit)


def _print_tasks(page: TaskPage, screen: Screen) -> None:
    if page.tasks:
        screen.table(TASK_COLUMNS, [task_row(shown.task) for shown in page.tasks])
    else:
        screen.line("no tasks")
    if page.next is not None:
        screen.line(f"There are more: add --before {page.next}")


# --- claim, heartbeat, release ----------------------------------------------------------------


def claim(
    context: CommandContext,
    task: Annotated[
        str,
        typer.Argument(
            metavar="ID", show_default=False, help="The task; else the next that is ready."
        ),
    ] = "",
    agent: AgentOption = "",
    session: Annotated[
        str,
        typer.Option(
            "--session",
            metavar="NAME",
            show_default=False,
            help="The agent's session, by name.",
        ),
    ] = "",
    ttl: TtlOption = None,
) -> CommandResult:
    """Take a task for an agent, under a lease.

    Each claim is a new attempt with a higher fencing token. Send a heartbeat before the lease
    ends, and name the fence in what you write: after a newer claim the old token is refused as
    lease_lost.

    \b
    Examples:
      dragoman task claim --agent ada --json
      dragoman task claim TASK-2026-02-09-001 --agent ada --ttl 10m
    """
    speaker = context.required_agent(agent)
    with context.open_for_writing() as directory:
        actor = context.actor(directory, speaker)
        ttl_ms = directory.settings.leases.ttl_ms if ttl is None else ttl
        claimed = directory.hub.submit(
            actor, ClaimTask(task, actor.name, session, ttl_ms)
        ).receipts[0]
        shown = load_task(directory.hub, claimed.task).task
    expires = to_rfc3339(claimed.expires_at)
    data = {
        "id": shown.id,
        "task": shown.id,
        "aofId": shown.aof_id,
        "title": shown.title,
        "status": claimed.status,
        "agent": actor.name,
        "session": session or None,
        "attempt": claimed.attempt,
        "fence": claimed.fence,
        "expiresAt": expires,
        "priority": shown.priority,
        "body": shown.body,
    }

    def show(screen: Screen) -> None:
        screen.line((shown.id, "bold"), "  ", shown.title)
        screen.line(
            f"  {actor.name} has it until {expires}: attempt {claimed.attempt}, "
            f"fence {claimed.fence}"
        )
        if shown.body:
            screen.block(shown.body, "  | ")

    return CommandResult(data, show)


def heartbeat(
    context: CommandContext, task: TaskArgument, agent: AgentOption = "", fence: FenceOption = None
) -> CommandResult:
    """Renew an agent's lease.

    \b
    Example:
      dragoman task heartbeat TASK-2026-02-09-001 --agent ada --fence 1
    """
    speaker = context.required_agent(agent)
    with context.open_for_writing() as directory:
        actor = context.actor(directory, speaker)
        held = directory.hub.submit(actor, RenewLease(task, fence)).receipts[0]
    expires = to_rfc3339(held.expires_at)
    data = {
        "id": held.task,
        "task": held.task,
        "status": held.status,
        "agent": actor.name,
        "attempt": held.attempt,
        "fence": held.fence,
        "expiresAt": expires,
    }
    return CommandResult(
        data, lambda screen: screen.line(f"{actor.name} has {held.task} until {expires}")
    )


def release(
    context: CommandContext,
    task: TaskArgument,
    agent: AgentOption = "",
    reason: ReasonOption = "released",
    fence: FenceOption = None,
) -> CommandResult:
    """Give a task back, without a failure.

    It is ready again at once.

    \b
    Example:
      dragoman task release TASK-2026-02-09-001 --agent ada --reason "needs a compiler"
    """
    speaker = context.required_agent(agent)
    with context.open_for_writing() as directory:
        actor = context.actor(directory, speaker)
        released = directory.hub.submit(actor, ReleaseTask(task, reason, fence)).receipts[0]
        shown = load_task(directory.hub, released.task)
    return CommandResult(
        task_to_dict(shown), lambda screen: screen.line(f"{shown.task.id} is {shown.task.status}")
    )


COMMANDS = (
    CliCommand("create", create),
    CliCommand("move", move),
    CliCommand("link", link),
    CliCommand("list", list_tasks, takes_as=False),
    CliCommand("show", show, takes_as=False),
    CliCommand("log", log),
    CliCommand("claim", claim),
    CliCommand("heartbeat", heartbeat),
    CliCommand("release", release),
)
