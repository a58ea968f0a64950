"""Commands that make and change tasks: create, move, link."""

from codecs import getincrementaldecoder
from collections.abc import Sequence
from typing import Annotated

import typer

from dragoman.core.commands import AliasTask, AnyCommand, CreateTask, LinkTask, MoveTask
from dragoman.core.events import LinkKind, Priority, Status
from dragoman.core.limits import MAX_BODY
from dragoman.surfaces.cli.call import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.options import FenceOption, ReasonOption, TaskArgument
from dragoman.surfaces.cli.reading import read_source
from dragoman.surfaces.cli.task.looking import load_task
from dragoman.surfaces.cli.task.view import task_to_dict
from dragoman.surfaces.cli.verb import CliCommand

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


CHANGE_COMMANDS = (CliCommand("create", create), CliCommand("move", move), CliCommand("link", link))
