"""Commands that make and change tasks: create, move, link."""

from codecs import getincrementaldecoder
from collections.abc import Sequence
from typing import Annotated

import typer

from dragoman.core.commands import AliasTask, AnyCommand, CreateTask, LinkTask, MoveTask
from dragoman.core.events import LinkKind, Priority, Status
from dragoman.core.limits import BODY
from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.options import FenceOption, ReasonOption, TaskArgument
from dragoman.surfaces.cli.reading import read_source
from dragoman.surfaces.cli.task.looking import look_at
from dragoman.surfaces.cli.task.view import as_object
from dragoman.surfaces.cli.verb import Verb

_BODY_BYTES = 4 * (BODY + 1)
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
    call: Call,
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
) -> Answer:
    """Make a task, and print its id.

    \b
    Examples:
      dragoman task create "Write the parser" --ready
      dragoman task create "Test it" --ready --blocked-by TASK-2026-02-09-001
    """
    if body and body_file:
        wrong_usage("--body and --body-file exclude each other: give one of them")
    whole_body = _read_body(body_file) if body_file else body
    with call.writing() as place:
        defaults = place.settings.tasks
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
        accepted = place.hub.do(call.actor(place, call.speaker()), command, key=key)
        made = accepted.receipts[0].task
        shown = as_object(look_at(place.hub, made))
        return Answer({**shown, "repeated": accepted.repeated}, lambda screen: screen.line(made))


def move(
    call: Call,
    task: TaskArgument,
    status: Annotated[
        Status, typer.Argument(metavar="STATUS", show_default=False, help="Where to.")
    ],
    reason: ReasonOption = "",
    fence: FenceOption = None,
) -> Answer:
    """Move a task to another status.

    Into in-progress there is only one way: `dragoman task claim`.

    \b
    Examples:
      dragoman task move TASK-2026-02-09-001 done --reason "reviewed"
      dragoman task move TASK-2026-02-09-001 review --as ada --fence 1
    """
    return _change(call, MoveTask(task, status, reason, fence))


def link(
    call: Call,
    task: TaskArgument,
    blocked_by: BlockedByOption = None,
    parent: ParentOption = "",
    discovered_from: DiscoveredFromOption = "",
    alias: AliasOption = None,
) -> Answer:
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
        wrong_usage("say to what: --blocked-by, --parent, --discovered-from or --alias")
    return _change(call, *commands)


def _change(call: Call, *commands: AnyCommand) -> Answer:
    with call.writing() as place:
        receipts = place.hub.do(call.actor(place, call.speaker()), *commands).receipts
        shown = look_at(place.hub, receipts[-1].task)
    task = shown.task
    waits = f", and waits for {', '.join(task.open_blockers)}" if task.open_blockers else ""
    return Answer(
        as_object(shown), lambda screen: screen.line(f"{task.id} is {task.status}{waits}")
    )


def _read_body(file: str) -> str:
    """Read a body from a file or standard input; of one too long, only enough to be refused."""
    body = read_source(file, _BODY_BYTES)
    try:
        return getincrementaldecoder("utf-8")().decode(body, final=len(body) <= _BODY_BYTES)
    except UnicodeDecodeError:
        wrong_usage(f"--body-file {file}: it is not UTF-8 text")


VERBS = (Verb("create", create), Verb("move", move), Verb("link", link))
