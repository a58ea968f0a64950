"""`dragoman tick`: run every time-driven service once."""

from collections.abc import Mapping

from dragoman.surfaces.cli.command import CliCommand
from dragoman.surfaces.cli.context import CommandContext, CommandResult, describe_error
from dragoman.surfaces.cli.data_directory import ServiceOutcome
from dragoman.surfaces.cli.render import Screen

_COUNT_TEXT = {
    "lease-expiry": "leases ended, by a report or by taking the task back",
    "attempt-limits": "attempts without progress flagged or escalated, or ended for their length",
    "sla": "deadlines passed and were escalated",
    "waves": "waves advanced",
    "entropy": "signs of lost agents escalated or settled",
    "stale-streams": "abandoned thought streams closed",
    "artifacts": "leftovers of copies removed",
    "deliverer": "messages delivered in their dialects",
    "spawner": "requests for a worker answered",
    "inbox": "messages of the inbox answered",
    "file-watch": "edited or moved task files answered",
    "projection": "entries written into the files",
    "retry-promotion": "tasks back in the queue after their cooldown",
    "checks": "tasks checked",
    "checkpoint": "entries signed",
    "owner-inbox": "letters written to the owner",
    "notifier": "notifications delivered",
    "search-index": "letters indexed for search",
}
"""Service -> what its count means."""


def tick(context: CommandContext) -> CommandResult:
    """Run every service of a hub once.

    Recovery, deadlines, waves, spawn requests, deliveries, queue, work items of handoffs, inbox,
    edited files, projection, repair of files, checkpoint, notifications, search index.

    Without a running hub, call it from time to time. Two at once do no more than one.

    \b
    Example:
      dragoman tick
    """
    with context.open_for_writing(create_missing=True) as directory:
        outcomes = dict(directory.run_services(directory.services))
        return _make_result(context, outcomes, directory.parts.service_remarks())


def _make_result(
    context: CommandContext, outcomes: Mapping[str, ServiceOutcome], remarks: Mapping[str, str]
) -> CommandResult:
    """Result of the services; failures are listed separately."""
    done = {name: count for name, count in outcomes.items() if isinstance(count, int)}
    failed = {
        name: describe_error(error)
        for name, error in outcomes.items()
        if not isinstance(error, int)
    }

    def show(screen: Screen) -> None:
        for name in [*done, *(name for name in remarks if name not in outcomes)]:
            screen.line(_format_line(name, done.get(name, 0), remarks.get(name, "")))
        for name, (code, detail) in failed.items():
            context.err.line((f"{name} failed: {code}: ", "bold red"), detail)

    failures = {name: {"code": code, "detail": detail} for name, (code, detail) in failed.items()}
    data = {"services": done, "remarks": remarks, **({"failed": failures} if failures else {})}
    return CommandResult(data, show, is_ok=not failures)


def _format_line(name: str, count: int, remark: str) -> str:
    return f"{name:<16} {count:>6}  {_COUNT_TEXT.get(name, '')}{'; ' if remark else ''}{remark}"


COMMANDS = (CliCommand("tick", tick, takes_as=False),)
