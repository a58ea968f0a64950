"""`dragoman tick`: run every time-driven service once, or over and over."""

from collections.abc import Mapping
from typing import Annotated

from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult, describe_error
from dragoman.surfaces.cli.data_directory import DataDirectory, ServiceOutcome
from dragoman.surfaces.cli.render import Screen

_COUNT_TEXT = {
    "lease-expiry": (
        "lease ended, by a report or by taking the task back",
        "leases ended, by a report or by taking the task back",
    ),
    "attempt-limits": (
        "attempt without progress flagged or escalated, or ended for its length",
        "attempts without progress flagged or escalated, or ended for their length",
    ),
    "sla": ("deadline passed and was escalated", "deadlines passed and were escalated"),
    "waves": ("wave advanced", "waves advanced"),
    "entropy": (
        "sign of a lost agent escalated or settled",
        "signs of lost agents escalated or settled",
    ),
    "stale-streams": ("abandoned thought stream closed", "abandoned thought streams closed"),
    "artifacts": ("leftover of a copy removed", "leftovers of copies removed"),
    "artifact-cleanup": (
        "copy that no handoff needs removed",
        "copies that no handoff needs removed",
    ),
    "deliverer": ("message delivered in its dialect", "messages delivered in their dialects"),
    "spawner": ("request for a worker answered", "requests for a worker answered"),
    "inbox": ("message of the inbox answered", "messages of the inbox answered"),
    "file-watch": ("edited or moved task file answered", "edited or moved task files answered"),
    "projection": ("entry written into the files", "entries written into the files"),
    "retry-promotion": (
        "task back in the queue after its cooldown",
        "tasks back in the queue after their cooldown",
    ),
    "checks": ("task checked", "tasks checked"),
    "checkpoint": ("entry signed", "entries signed"),
    "owner-inbox": ("letter written to the owner", "letters written to the owner"),
    "notifier": ("notification delivered", "notifications delivered"),
    "search-index": ("letter indexed for search", "letters indexed for search"),
}
"""Service -> what its count means, in the singular and the plural."""

WatchOption = Annotated[
    bool, option("--watch", "", "Go on until Ctrl-C, as the only hub of the data directory.")
]


def tick(context: CommandContext, *, watch: WatchOption = False) -> CommandResult | None:
    """Run every service of a hub once.

    Recovery, deadlines, waves, spawn requests, deliveries, queue, work items of handoffs, inbox,
    edited files, projection, repair of files, artifact copies, checkpoint, notifications, search
    index.

    Without a running hub, call it from time to time. Two at once do no more than one.

    \b
    Examples:
      dragoman tick
      dragoman tick --watch
    """
    with context.open_for_writing() as directory:
        if watch:
            return _tick_until_stopped(context, directory)
        outcomes = dict(directory.run_services(directory.services))
        return _make_result(context, outcomes, directory.parts.service_remarks())


def _tick_until_stopped(context: CommandContext, directory: DataDirectory) -> CommandResult | None:
    """Run all services until nobody reads the output or one fails; only news is printed."""
    # Only `--watch` takes the lock of a hub.
    from dragoman.system.hub_lock import HubLock

    printed_remarks: Mapping[str, str] = {}
    already_printed = frozenset[str]()
    with HubLock.acquire(directory.path, "dragoman tick --watch"):
        while True:
            outcomes = {
                name: done for name, done in directory.run_services(directory.services) if done
            }
            remarks = directory.parts.service_remarks()
            answer = _make_result(context, outcomes, remarks)
            if not answer.is_ok:
                return answer
            if outcomes or remarks != printed_remarks:
                context.print_result(answer)
            printed_remarks = remarks
            already_printed = context.print_new_warnings(directory, already_printed)
            if not context.wait():
                return None


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
    one, many = _COUNT_TEXT.get(name, ("", ""))
    return f"{name:<16} {count:>6}  {one if count == 1 else many}{'; ' if remark else ''}{remark}"


COMMANDS = (CliCommand("tick", tick, takes_as=False),)
