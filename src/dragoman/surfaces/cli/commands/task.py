"""`dragoman task`: create, move, link, list, show, log, claim, heartbeat, release."""

from codecs import getincrementaldecoder
from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct, to_builtins

from dragoman.core.attempt import ClaimTask, ReleaseTask, RenewLease
from dragoman.core.attempt_state import Checkpoint, Lease, Report
from dragoman.core.base import Command, LinkKind, Priority, Status
from dragoman.core.errors import Refusal, Refused
from dragoman.core.limits import MAX_BODY
from dragoman.core.task_state import (
    ActiveHandoff,
    AliasTask,
    CreateTask,
    Delegation,
    LinkTask,
    MoveTask,
    NoteTask,
    Task,
)
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.tasks import (
    TaskFilter,
    find_task,
    find_task_stream,
    page_of_tasks,
    task_as_of,
    tasks_as_of,
)
from dragoman.engine.schemas.tasks import task_detail, task_summary
from dragoman.surfaces.cli.command import (
    AgentOption,
    AsOfOption,
    CliCommand,
    FenceOption,
    LimitOption,
    ReasonOption,
    TaskArgument,
    TtlOption,
    argument,
    option,
    parse_clock,
)
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    raise_usage_error,
    read_source,
)
from dragoman.surfaces.cli.data_directory import StoreSource
from dragoman.surfaces.cli.event_text import history_result
from dragoman.surfaces.cli.render import TASK_STATUS_STYLES, Column, Screen, pluralize

# --- a task as it is shown ---------------------------------------------------------------------


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


def task_to_summary(shown: TaskDisplay) -> dict[str, object]:
    """JSON object of a task without its body, which may be long."""
    return to_builtins(task_summary(shown.task, shown.lease, shown.now))


def task_to_dict(shown: TaskDisplay) -> dict[str, object]:
    """JSON object of a task."""
    return to_builtins(task_detail(shown.task, shown.lease, shown.now))


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


# --- create, move, link -----------------------------------------------------------------------

_MAX_BODY_BYTES = 4 * (MAX_BODY + 1)
"""More bytes than these always exceed the character limit of a body."""

BlockedByOption = Annotated[
    list[str] | None,
    option("--blocked-by", "ID", "Not claimable before that task has ended; repeatable."),
]

ParentOption = Annotated[str, option("--parent", "ID", "The task that it is a part of.")]

DiscoveredFromOption = Annotated[
    str, option("--discovered-from", "ID", "The task during which it was found.")
]

AliasOption = Annotated[
    list[str] | None,
    option("--alias", "KIND:NAME", "One more name, e.g. bead:ol-527.1; repeatable."),
]


def create(
    context: CommandContext,
    *,
    title: Annotated[str, argument("TITLE", "What to do.")],
    id: Annotated[str, option("--id", "ID", "Its id; else the day's next AOF id.")] = "",
    ready: Annotated[bool, option("--ready", "", "Claimable at once, not in the backlog.")] = False,
    assignee: Annotated[str, option("--assignee", "NAME", "Only this agent may take it.")] = "",
    parent: ParentOption = "",
    no_review: Annotated[
        bool, option("--no-review", "", "A report of done ends it, without a review.")
    ] = False,
    priority: Annotated[
        Priority,
        option(
            "--priority", "", "Tasks of a higher priority are claimed first.", show_default=True
        ),
    ] = "normal",
    body: Annotated[str, option("--body", "TEXT", "The whole description.")] = "",
    body_file: Annotated[
        str, option("--body-file", "FILE", "The description from a file; - reads standard input.")
    ] = "",
    blocked_by: BlockedByOption = None,
    discovered_from: DiscoveredFromOption = "",
    alias: AliasOption = None,
    due_by: Annotated[
        int | None,
        option(
            "--due-by",
            "RFC3339",
            "Delegate it to --assignee, as a part of --parent, until then.",
            parser=parse_clock,
        ),
    ] = None,
    criterion: Annotated[
        list[str] | None,
        option("--criterion", "TEXT", "What a delegated task has to meet; repeatable."),
    ] = None,
    expected_output: Annotated[
        list[str] | None,
        option("--expected-output", "TEXT", "What a delegated task has to leave; repeatable."),
    ] = None,
    context_ref: Annotated[
        list[str] | None,
        option("--context-ref", "REF", "What to read for a delegated task; repeatable."),
    ] = None,
    constraint: Annotated[
        list[str] | None,
        option("--constraint", "TEXT", "What a delegated task must keep to; repeatable."),
    ] = None,
    key: Annotated[
        str,
        option("--key", "KEY", "The same key again makes no second task, and answers as before."),
    ] = "",
) -> CommandResult:
    """Make a task, and print its id.

    \b
    Examples:
      dragoman task create "Write the parser" --ready
      dragoman task create "Test it" --ready --blocked-by TASK-2026-02-09-001
      dragoman task create "Check it" --ready --as ada --parent TASK-2026-02-09-001 \\
          --assignee bob --due-by 2026-02-10T12:00:00Z --criterion "all tests pass"
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
            may_skip_review=defaults.may_skip_review,
            priority=priority,
            blocked_by=tuple(blocked_by or ()),
            discovered_from=discovered_from,
            aliases=tuple(alias or ()),
            max_attempts=defaults.max_attempts,
            due_by=due_by,
            acceptance_criteria=tuple(criterion or ()),
            expected_outputs=tuple(expected_output or ()),
            context_refs=tuple(context_ref or ()),
            constraints=tuple(constraint or ()),
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
    status: Annotated[Status, argument("STATUS", "Where to.")],
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
    commands: list[Command] = [
        LinkTask(task, kind, other) for kind, others in links for other in others if other
    ]
    commands += [AliasTask(task, name) for name in alias or ()]
    if not commands:
        raise_usage_error("say to what: --blocked-by, --parent, --discovered-from or --alias")
    return _submit(context, *commands)


def _submit(context: CommandContext, *commands: Command) -> CommandResult:
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
    status: Annotated[Status | None, option("--status", "", "Only in this status.")] = None,
    assignee: Annotated[str, option("--assignee", "NAME", "Only this agent's.")] = "",
    ready: Annotated[
        bool, option("--ready", "", "Only what can be claimed now: ready, due, not waiting.")
    ] = False,
    limit: LimitOption = 50,
    before: Annotated[
        int | None,
        option(
            "--before", "CURSOR", "Go on with the next page, from where the last one says.", min=0
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
    task: Annotated[str, argument("ID", "The task; else the next that is ready.")] = "",
    agent: AgentOption = "",
    session: Annotated[str, option("--session", "NAME", "The agent's session, by name.")] = "",
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
