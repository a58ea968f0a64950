"""`dragoman status`: who works on what, what waits and for whom, and what needs a person."""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import to_builtins
from msgspec.structs import replace

from dragoman.core.base import AttentionKind, Status
from dragoman.core.timestamps import format_rough_duration, parse_rfc3339
from dragoman.engine.queries.attention import find_attention
from dragoman.engine.queries.status import find_status
from dragoman.engine.schemas.agents import PauseResource
from dragoman.engine.schemas.status import AgentStatusResource, StatusResource, status_resource
from dragoman.engine.sentences import truncate
from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.data_directory import ReadOnlyDirectory
from dragoman.surfaces.cli.event_text import retry_while_unavailable
from dragoman.surfaces.cli.render import TASK_STATUS_STYLES, Column, Screen, StyledText, pluralize

_MAX_ATTENTION: Final = 12
_MAX_WORKING: Final = 24
_MAX_WAITING: Final = 8
_MAX_TITLE: Final = 60
_MAX_ALIGNED: Final = 48
"""Length of a command up to which the reasons behind the commands stand in one column."""

_CLEAR_TERMINAL: Final = "\x1b[H\x1b[2J\x1b[3J"

_POLLS_PER_READ: Final = 5
"""Polls of the ledger after which the status is read again though it has no new entry: a heartbeat
adds none."""


def status(
    context: CommandContext,
    *,
    watch: Annotated[
        bool, option("--watch", "", "Go on, and show it again when it changes; Ctrl-C ends it.")
    ] = False,
) -> CommandResult | None:
    """Show the whole hub: what needs you, who works, what waits.

    Everything that needs a person stands with the command that deals with it. An agent is shown
    that holds a task or has spoken lately, registered or not. SIGN is the last heartbeat of the
    attempt, PROGRESS the last entry or output of its agent.

    \b
    Examples:
      dragoman status
      dragoman status --watch
      dragoman status --json
    """
    if not watch:
        with context.open_readonly() as directory:
            return _result(context, read_status(directory))
    with context.open_readonly() as directory:
        _watch(context, directory)
    return None


def read_status(directory: ReadOnlyDirectory) -> StatusResource:
    """Read the status of the hub, as its owner sees it, or the bearer of a token."""
    store, now = directory.store, directory.clock.now()
    reader = CommandContext.bearer_as_reader(directory)
    attention = find_attention(store, now, served=directory.served_names, reader=reader)
    return status_resource(find_status(store, now, attention))


def _watch(context: CommandContext, directory: ReadOnlyDirectory) -> None:
    store, shown, polls = directory.store, None, 0
    while True:
        if shown is None or polls % _POLLS_PER_READ == 0 or store.head() != shown.position:
            found = retry_while_unavailable(context, store, lambda: read_status(directory))
            if shown is None or replace(found, at=shown.at) != shown:
                if context.out.is_terminal:
                    context.out.write_raw(_CLEAR_TERMINAL)
                context.print_result(_result(context, found))
                context.out.flush()
            shown = found
        polls += 1
        if not context.wait():
            return


def _result(context: CommandContext, found: StatusResource) -> CommandResult:
    return CommandResult(to_builtins(found), lambda screen: _print(context, found, screen))


# --- for people -------------------------------------------------------------------------------

_ATTENTION_STYLES: dict[str, str] = {
    "waits_for_input": "bold magenta",
    "question": "magenta",
    "help": "magenta",
    "gate": "blue",
    "review": "blue",
    "paused": "yellow",
    "deadletter": "bold red",
    "unknown_assignee": "red",
    "escalation": "red",
}

_ATTENTION_COLUMNS = (
    Column("WHAT", styles=_ATTENTION_STYLES),
    Column("AGO", style="dim"),
    Column("DO", style="bold", max_width=_MAX_ALIGNED),
    Column("WHY"),
)

_MORE: dict[AttentionKind, str] = {
    "question": "dragoman task list --status blocked",
    "review": "dragoman task list --status review",
    "deadletter": "dragoman task list --status deadletter",
    "unknown_assignee": "dragoman task list --status ready",
    "gate": "dragoman handoff list --status proposed",
    "help": "dragoman mail search HELP_REQUEST",
}
"""Kind -> the command that lists all of it."""

_WORKING_COLUMNS = (
    Column("AGENT", style="bold"),
    Column("TASK"),
    Column("ATTEMPT"),
    Column("FOR"),
    Column("SIGN"),
    Column("PROGRESS"),
    Column("LEASE", styles={"over": "red"}),
    Column("TITLE"),
)

_WAITING_COLUMNS = (
    Column("TASK", style="bold"),
    Column("FOR"),
    Column("WHO"),
    Column("WHY"),
    Column("TITLE"),
)

_STATUS_ORDER: tuple[Status, ...] = (
    "in-progress",
    "ready",
    "review",
    "blocked",
    "deadletter",
    "backlog",
    "done",
    "cancelled",
)


def _print(context: CommandContext, found: StatusResource, screen: Screen) -> None:
    now = _ms(found.at)
    _print_counts(found, screen)
    _print_attention(context, found, now, screen)
    _print_working(found, now, screen)
    _print_waiting(found, now, screen)
    _print_idle(found.agents, now, screen)


def _print_counts(found: StatusResource, screen: Screen) -> None:
    known: list[Status] = [one for one in _STATUS_ORDER if found.counts.get(one)]
    parts: list[StyledText] = []
    for one in known:
        parts += [", " if parts else "", (f"{found.counts[one]} {one}", TASK_STATUS_STYLES[one])]
        if one == "ready":
            parts.append(f" ({found.claimable} for anybody, {found.reserved} for one agent)")
    screen.line(*(parts or ["no tasks yet: `dragoman task create TITLE --ready` makes one"]))


def _print_attention(
    context: CommandContext, found: StatusResource, now: int, screen: Screen
) -> None:
    if not found.attention:
        screen.line("nothing needs you")
        return
    shown = found.attention[:_MAX_ATTENTION]
    screen.line()
    screen.line((f"NEEDS YOU ({sum(found.attention_counts.values())})", "bold"))
    rows = [
        (
            item.kind.replace("_", " "),
            format_age(now - _ms(item.since)),
            context.next_command(item.command.removeprefix("dragoman ")),
            item.text,
        )
        for item in shown
    ]
    screen.table(_ATTENTION_COLUMNS, rows)
    for kind, count in found.attention_counts.items():
        more = count - sum(item.kind == kind for item in shown)
        if more > 0:
            where = f": {_MORE[kind]}" if kind in _MORE else ""
            screen.line((f"… and {more} more of {kind.replace('_', ' ')}{where}", "dim"))


def _print_working(found: StatusResource, now: int, screen: Screen) -> None:
    if not found.working:
        return
    screen.line()
    screen.line((f"WORKING ({found.counts.get('in-progress', 0)})", "bold"))
    rows = [
        (
            one.agent,
            one.task,
            f"{one.attempt}",
            format_age(now - _ms(one.since)),
            format_age(now - _ms(one.last_sign)) if one.last_sign else "",
            format_age(now - _ms(one.last_progress)),
            _format_lease(one.lease_until, now),
            truncate(one.title, _MAX_TITLE),
        )
        for one in found.working[:_MAX_WORKING]
    ]
    screen.table(_WORKING_COLUMNS, rows)
    _print_more(found.counts.get("in-progress", 0) - len(rows), "in-progress", screen)


def _print_waiting(found: StatusResource, now: int, screen: Screen) -> None:
    if not found.waiting:
        return
    count = found.counts.get("ready", 0) - found.claimable
    screen.line()
    screen.line((f"WAITING ({count})", "bold"))
    rows = [
        (
            one.task,
            format_age(now - _ms(one.since)),
            ", ".join(one.actors),
            one.reason,
            truncate(one.title, _MAX_TITLE),
        )
        for one in found.waiting[:_MAX_WAITING]
    ]
    screen.table(_WAITING_COLUMNS, rows)
    _print_more(count - len(rows), "ready", screen)


def _print_more(count: int, status: Status, screen: Screen) -> None:
    if count > 0:
        screen.line((f"… and {count} more: dragoman task list --status {status}", "dim"))


def _print_idle(agents: Sequence[AgentStatusResource], now: int, screen: Screen) -> None:
    """Print the agents that hold nothing, on a line."""
    idle = [_describe_idle(agent, now) for agent in agents if not agent.holds]
    if idle:
        screen.line()
        screen.line((f"{pluralize(len(idle), 'idle agent')}: ", "bold"), ", ".join(idle))


def _describe_idle(agent: AgentStatusResource, now: int) -> str:
    facts = (
        f"{format_age(now - _ms(agent.last_seen))} ago" if agent.last_seen else "",
        "" if agent.registered else "not registered",
        "waits for input" if any(one.state == "waiting" for one in agent.sessions) else "",
        _describe_pause(agent.paused) if agent.paused else "",
        f"{agent.waiting} ready" if agent.waiting else "",
    )
    return f"{agent.name} ({', '.join(filter(None, facts))})"


def _describe_pause(pause: PauseResource) -> str:
    until = f" until {pause.until}" if pause.until else ""
    return f"paused{until}: {pause.reason}"


def _format_lease(until: str | None, now: int) -> str:
    left = 0 if until is None else _ms(until) - now
    return f"{format_age(left)} left" if left > 0 else "over"


def format_age(ms: int) -> str:
    """Format a duration in its largest unit, as 5s, 12m, 3h or 2d."""
    return format_rough_duration(max(ms // 1_000, 1) * 1_000)


def _ms(at: str) -> int:
    return parse_rfc3339(at)


COMMANDS = (CliCommand("status", status, takes_as=False),)
