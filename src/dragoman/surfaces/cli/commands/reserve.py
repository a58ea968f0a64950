"""`dragoman reserve`: keep others from files for a while, and see who keeps whom."""

from collections.abc import Callable
from typing import Annotated, Any

from dragoman.core.timestamps import parse_duration
from dragoman.surfaces.cli.command import CliCommand, ReasonOption, argument, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.render import Column, Screen

_TtlOption = Annotated[
    int | None,
    option(
        "--ttl",
        "TIME",
        "For how long: seconds, or 90s, 5m, 2h; else an hour.",
        parser=parse_duration,
    ),
]
_NamesArgument = Annotated[
    list[str] | None, argument("ID|PATTERN", "Which ones; none: all of your own.")
]
_ReplyText = Callable[[dict[str, Any]], str]
"""Formats a reply as one line."""
_COLUMNS = tuple(map(Column, ("ID", "HOLDER", "MODE", "UNTIL", "FOR", "PATTERNS")))


def take(
    context: CommandContext,
    patterns: Annotated[
        list[str],
        argument(
            "PATTERN", "Paths and globs from the root of the repository; `src/`: all that is in it."
        ),
    ],
    ttl: _TtlOption = None,
    shared: Annotated[
        bool, option("--shared", "", "Others may reserve them too, but not exclusively.")
    ] = False,
    task: Annotated[
        str,
        option(
            "--task", "ID", "For this task: it also ends when nobody works on the task any more."
        ),
    ] = "",
    reason: ReasonOption = "",
) -> CommandResult:
    """Reserve files, so that nobody else works on them meanwhile.

    Reservations are advisory: `dragoman guard` checks them in git, and waves respect them. The same
    files again are reserved for longer.

    \b
    Examples:
      dragoman reserve take src/auth/ --as ada --ttl 2h
      dragoman reserve take "docs/**/*.md" README.md --shared
    """
    arguments: dict[str, Any] = {
        "patterns": patterns,
        "exclusive": not shared,
        "task": task,
        "reason": reason,
    }
    return _run_operation(
        context,
        "reserve.take",
        arguments | _ttl_arguments(ttl),
        lambda reply: f"reserved until {reply['until']}: {' '.join(reply['patterns'])}",
    )


def renew(
    context: CommandContext, names: _NamesArgument = None, ttl: _TtlOption = None
) -> CommandResult:
    """Keep reserved files for longer, from now on.

    What was reserved for longer than that stays so: to end it, release it.

    \b
    Example:
      dragoman reserve renew src/auth/ --as ada --ttl 2h
    """
    arguments = {"names": names or []} | _ttl_arguments(ttl)
    return _run_operation(
        context, "reserve.renew", arguments, lambda reply: f"reserved until {reply['until']}"
    )


def release(context: CommandContext, names: _NamesArgument = None) -> CommandResult:
    """Give reserved files back.

    People and orchestrators may give back those of others too, by naming them.

    \b
    Examples:
      dragoman reserve release --as ada
      dragoman reserve release src/auth/
    """
    arguments = {"names": names or []}
    return _run_operation(
        context, "reserve.release", arguments, lambda reply: reply.get("remark", "released")
    )


def list_reservations(
    context: CommandContext,
    patterns: Annotated[
        list[str] | None, argument("PATTERN", "Only what collides with these.")
    ] = None,
) -> CommandResult:
    """List who has reserved which files, and until when.

    \b
    Examples:
      dragoman reserve list
      dragoman reserve list src/auth/login.py --json
    """
    from dragoman.engine.request import Rejected

    with context.open_for_reading() as directory:
        actor = context.actor(directory, context.acting_agent())
        answer = directory.router.call("reserve.list", {"patterns": patterns or []}, actor)
    if isinstance(answer, Rejected):
        return context.rejection_result(answer)
    reservations: list[dict[str, Any]] = answer.reply["reservations"]

    def show(screen: Screen) -> None:
        if reservations:
            screen.table(_COLUMNS, [_reservation_row(one) for one in reservations])
        else:
            screen.line("nothing is reserved")

    return CommandResult(answer.reply, show)


def _reservation_row(reservation: dict[str, Any]) -> tuple[str, ...]:
    return (
        reservation["id"],
        reservation["holder"] or "-",
        reservation["mode"],
        reservation["until"] or "-",
        " ".join(
            filter(
                None,
                (
                    reservation.get("task"),
                    reservation.get("wave") and f"(wave {reservation['wave']})",
                ),
            )
        ),
        " ".join(reservation["patterns"]),
    )


def _ttl_arguments(ttl: int | None) -> dict[str, Any]:
    return {} if ttl is None else {"ttl_ms": ttl}


def _run_operation(
    context: CommandContext, operation: str, arguments: dict[str, Any], describe: _ReplyText
) -> CommandResult:
    from dragoman.engine.request import Rejected

    with context.open_for_writing() as directory:
        actor = context.actor(directory, context.acting_agent())
        answer = directory.router.call(operation, arguments, actor)
        if isinstance(answer, Rejected):
            return context.rejection_result(answer)
        directory.warnings.extend(answer.warnings)
    return CommandResult(answer.reply, lambda screen: screen.line(describe(answer.reply)))


COMMANDS = (
    CliCommand("take", take),
    CliCommand("renew", renew),
    CliCommand("release", release),
    CliCommand("list", list_reservations, takes_as=False),
)
