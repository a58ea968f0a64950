"""`dragoman task`: create, claim, heartbeat."""

from codecs import getincrementaldecoder
from typing import Annotated

import msgspec

from dragoman.core.attempt import ClaimTask, RenewLease, explain_wait
from dragoman.core.base import Priority
from dragoman.core.errors import Refusal, Refused
from dragoman.core.limits import MAX_BODY
from dragoman.core.task_state import LinkTask
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.briefing import find_briefing
from dragoman.engine.schemas.briefing import briefing_resource, briefing_sections
from dragoman.surfaces.cli.command import (
    AgentOption,
    CliCommand,
    FenceOption,
    TaskArgument,
    TtlOption,
    WaitOption,
    argument,
    option,
    parse_clock,
)
from dragoman.surfaces.cli.commands.task_read import (
    TaskDisplay,
    load_task,
    task_to_dict,
    task_to_summary,
)
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    raise_usage_error,
    read_source,
)
from dragoman.surfaces.cli.data_directory import ReadOnlyDirectory
from dragoman.surfaces.cli.render import Screen
from dragoman.surfaces.cli.suggestions import suggesting_task, warn_of_unknown_agent
from dragoman.surfaces.cli.task_plan import MAX_PLAN_BYTES, parse_plan

# --- create -----------------------------------------------------------------------------------

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
    title: Annotated[str | None, argument("TITLE", "What to do.")] = None,
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
    body: Annotated[str, option("--body --text", "TEXT", "The whole description.")] = "",
    body_file: Annotated[
        str, option("--body-file", "FILE", "The description from a file; - reads standard input.")
    ] = "",
    blocked_by: BlockedByOption = None,
    discovered_from: DiscoveredFromOption = "",
    alias: AliasOption = None,
    deadline: Annotated[
        int | None,
        option("--deadline", "RFC3339", "By when it should have ended.", parser=parse_clock),
    ] = None,
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
    check: Annotated[
        list[str] | None,
        option("--check", "COMMAND", "The hub runs this before a completion counts; repeatable."),
    ] = None,
    key: Annotated[
        str,
        option("--key", "KEY", "The same key again makes no second task, and answers as before."),
    ] = "",
    file: Annotated[
        str, option("--file", "FILE", "Make the tasks of a plan instead; - reads standard input.")
    ] = "",
) -> CommandResult:
    """Make a task, and print its id; or all tasks of a plan.

    A plan is TOML with a table of the array `tasks` for each, or JSON with an object a line. Each
    has a title and as needed id, text, ready, priority, blocked_by, parent, assignee, deadline,
    review, discovered_from, aliases, checks. All of them are made or none.

    \b
    Examples:
      dragoman task create "Write the parser" --ready
      dragoman task create "Test it" --ready --blocked-by TASK-2026-02-09-001
      dragoman task create "Check it" --ready --as ada --parent TASK-2026-02-09-001 \\
          --assignee bob --due-by 2026-02-10T12:00:00Z --criterion "all tests pass"
      dragoman task create --file plan.toml
    """
    if file:
        texts = (title, id, assignee, parent, body, body_file, discovered_from)
        others = (
            ready,
            no_review,
            priority != "normal",
            blocked_by,
            alias,
            deadline,
            due_by,
            check,
        )
        if any((*texts, *others)):
            raise_usage_error("--file has the tasks: give no title and nothing else of a task")
        return _create_plan(context, file, key)
    if title is None:
        raise_usage_error("Missing argument 'TITLE', or --file with a plan")
    if body and body_file:
        raise_usage_error("--body and --body-file exclude each other: give one of them")
    whole_body = _read_body(body_file) if body_file else body
    with context.open_for_writing(create_missing=True) as directory:
        fields = {
            "title": title,
            "id": id,
            "body": whole_body,
            "ready": ready,
            "assignee": assignee,
            "parent": parent,
            "review_required": False if no_review else None,
            "priority": priority,
            "blocked_by": tuple(blocked_by or ()),
            "discovered_from": discovered_from,
            "aliases": tuple(alias or ()),
            "due_by": due_by,
            "acceptance_criteria": tuple(criterion or ()),
            "expected_outputs": tuple(expected_output or ()),
            "context_refs": tuple(context_ref or ()),
            "constraints": tuple(constraint or ()),
            "deadline": deadline,
            "checks": tuple(check or ()),
        }
        command = directory.settings.tasks.creation(fields)
        accepted = directory.hub.submit(
            context.actor(directory, context.acting_agent()), command, key=key
        )
        task_id = accepted.receipts[0].task
        shown = load_task(directory.hub, task_id)
        warn_of_unknown_agent(directory, assignee)

    def show(screen: Screen) -> None:
        screen.line(task_id)
        # Beside the id, which scripts read.
        context.err.line(_explain_status(shown))

    return CommandResult({**task_to_dict(shown), "repeated": accepted.repeated}, show)


def _explain_status(shown: TaskDisplay) -> str:
    """Sentence on the status of a task, and what that means for those who take tasks."""
    task = shown.task
    if task.status == "backlog":
        return f"backlog: nobody takes it until it is ready: dragoman task move {task.id} ready"
    if task.status != "ready":
        return task.status
    wait = explain_wait(task, shown.now)
    if wait is None:
        return "ready: the next claim takes it"
    if wait.kind == "reserved":
        return f"ready: only {wait.agent} takes it"
    return f"ready, but nobody takes it yet: {wait.reason}"


def _create_plan(context: CommandContext, file: str, key: str) -> CommandResult:
    plan = parse_plan(file, read_source(file, MAX_PLAN_BYTES))
    with context.open_for_writing(create_missing=True) as directory:
        creations = [
            directory.settings.tasks.creation({**item.fields, "blocked_by": plan.blockers(index)})
            for index, item in enumerate(plan.items)
        ]
        links = [
            LinkTask(plan.items[index].task.id, "blocked-by", other)
            for index, other in plan.late_links
        ]
        try:
            accepted = directory.hub.submit(
                context.actor(directory, context.acting_agent()), *creations, *links, key=key
            )
        except Refused as refused:
            raise Refused(plan.locate(refused.refusal)) from None
        for name in dict.fromkeys(item.task.assignee for item in plan.items):
            warn_of_unknown_agent(directory, name)
        made = [
            load_task(directory.hub, receipt.task)
            for receipt in accepted.receipts[: len(plan.items)]
        ]

    def show(screen: Screen) -> None:
        for shown in made:
            screen.line((shown.task.id, "bold"), f"  {_explain_status(shown)}")

    tasks = [task_to_summary(shown) for shown in made]
    return CommandResult({"tasks": tasks, "repeated": accepted.repeated}, show)


def _read_body(file: str) -> str:
    """Read a body from a file or standard input; of one too long, only enough to be refused."""
    body = read_source(file, _MAX_BODY_BYTES)
    try:
        return getincrementaldecoder("utf-8")().decode(body, final=len(body) <= _MAX_BODY_BYTES)
    except UnicodeDecodeError:
        raise_usage_error(f"--body-file {file}: it is not UTF-8 text")


# --- claim, heartbeat -------------------------------------------------------------------------


def claim(
    context: CommandContext,
    task: Annotated[str, argument("ID", "The task; else the next that is ready.")] = "",
    agent: AgentOption = "",
    session: Annotated[str, option("--session", "NAME", "The agent's session, by name.")] = "",
    ttl: TtlOption = None,
    wait: WaitOption = None,
) -> CommandResult:
    """Take a task for an agent, under a lease.

    Each claim is a new attempt with a higher fencing token. Send a heartbeat before the lease
    ends, and name the fence in what you write: after a newer claim the old token is refused as
    lease_lost.

    \b
    Examples:
      dragoman task claim --agent ada --json
      dragoman task claim --agent ada --wait 10m
      dragoman task claim TASK-2026-02-09-001 --agent ada --ttl 10m
    """
    speaker = context.required_agent(agent)
    if wait is None:
        return _claim(context, task, speaker, session, ttl)
    if task:
        raise_usage_error("--wait is for the next task that is ready: name none")
    context.prepare_to_wait()

    def claim_next() -> CommandResult | None:
        try:
            return _claim(context, "", speaker, session, ttl)
        except Refused as refused:
            if refused.code != "nothing_ready":
                raise
            return None

    def find(directory: ReadOnlyDirectory) -> CommandResult | None:
        ready = directory.store.queue_counts()
        return claim_next() if ready.get("") or ready.get(speaker) else None

    claimed = claim_next() or context.wait_for(wait, find)
    if claimed is None:
        raise Refused(Refusal("nothing_ready", f"no task was ready for {speaker} in that time"))
    return claimed


def _claim(
    context: CommandContext, task: str, speaker: str, session: str, ttl: int | None
) -> CommandResult:
    with context.open_for_writing() as directory:
        actor = context.actor(directory, speaker)
        ttl_ms = directory.settings.leases.ttl_ms if ttl is None else ttl
        claim = ClaimTask(task, actor.name, session, ttl_ms)
        with suggesting_task(directory.hub.store, task):
            claimed = directory.hub.submit(actor, claim).receipts[0]
        shown = load_task(directory.hub, claimed.task).task
        briefing = find_briefing(directory.hub.store, shown)
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
        "briefing": msgspec.to_builtins(briefing_resource(briefing)),
    }

    def show(screen: Screen) -> None:
        screen.line((shown.id, "bold"), "  ", shown.title)
        screen.line(
            f"  {actor.name} has it until {expires}: attempt {claimed.attempt}, "
            f"fence {claimed.fence}"
        )
        if shown.body:
            screen.block(shown.body, "  | ")
        for head, text in briefing_sections(briefing) if briefing is not None else ():
            screen.line((f"  {head}", "bold"))
            screen.block(text, "  | ")

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
        with suggesting_task(directory.hub.store, task):
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


COMMANDS = (
    CliCommand("create", create),
    CliCommand("claim", claim),
    CliCommand("heartbeat", heartbeat),
)
