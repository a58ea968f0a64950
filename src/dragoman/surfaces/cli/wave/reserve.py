"""`dragoman reserve`: keep others from files for a while, and see who keeps whom."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.options import ReasonOption
from dragoman.surfaces.cli.screen import Column, Screen
from dragoman.surfaces.cli.values import read_duration
from dragoman.surfaces.cli.verb import Verb

_ForOption = Annotated[
    int | None,
    typer.Option(
        "--ttl",
        metavar="TIME",
        parser=read_duration,
        show_default=False,
        help="For how long: seconds, or 90s, 5m, 2h; else an hour.",
    ),
]
_NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID|PATTERN", show_default=False, help="Which ones; none: all of your own."
    ),
]
_Words = Callable[[dict[str, Any]], str]
"""Formats a reply as one line."""
_COLUMNS = tuple(map(Column, ("ID", "HOLDER", "MODE", "UNTIL", "FOR", "PATTERNS")))


def take(
    call: Call,
    patterns: Annotated[
        list[str],
        typer.Argument(
            metavar="PATTERN",
            show_default=False,
            help="Paths and globs from the root of the repository; `src/`: all that is in it.",
        ),
    ],
    ttl: _ForOption = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="Others may reserve them too, but not exclusively.")
    ] = False,
    task: Annotated[
        str,
        typer.Option(
            "--task",
            metavar="ID",
            show_default=False,
            help="For this task: it also ends when nobody works on the task any more.",
        ),
    ] = "",
    reason: ReasonOption = "",
) -> Answer:
    """Reserve files, so that nobody else works on them meanwhile.

    Reservations are advisory: `dragoman guard` checks them in git, and waves respect them. The same
    files again are reserved for longer.

    \b
    Examples:
      dragoman reserve take src/auth/ --as ada --ttl 2h
      dragoman reserve take "docs/**/*.md" README.md --shared
    """
    wanted: dict[str, Any] = {
        "patterns": patterns,
        "exclusive": not shared,
        "task": task,
        "reason": reason,
    }
    return _do(
        call,
        "reserve.take",
        wanted | _lasting(ttl),
        lambda reply: f"reserved until {reply['until']}: {' '.join(reply['patterns'])}",
    )


def renew(call: Call, names: _NamesArgument = None, ttl: _ForOption = None) -> Answer:
    """Keep reserved files for longer, from now on.

    What was reserved for longer than that stays so: to end it, release it.

    \b
    Example:
      dragoman reserve renew src/auth/ --as ada --ttl 2h
    """
    wanted = {"names": names or []} | _lasting(ttl)
    return _do(call, "reserve.renew", wanted, lambda reply: f"reserved until {reply['until']}")


def release(call: Call, names: _NamesArgument = None) -> Answer:
    """Give reserved files back.

    People and orchestrators may give back those of others too, by naming them.

    \b
    Examples:
      dragoman reserve release --as ada
      dragoman reserve release src/auth/
    """
    wanted = {"names": names or []}
    return _do(call, "reserve.release", wanted, lambda reply: reply.get("remark", "released"))


def show_all(
    call: Call,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATTERN", show_default=False, help="Only what collides with these."
        ),
    ] = None,
) -> Answer:
    """List who has reserved which files, and until when.

    \b
    Examples:
      dragoman reserve list
      dragoman reserve list src/auth/login.py --json
    """
    from dragoman.engine.plan import Turned

    with call.reading() as place:
        actor = call.actor(place, call.speaker())
        answer = place.interpreter.call("reserve.list", {"patterns": patterns or []}, actor)
    if isinstance(answer, Turned):
        return call.turned(answer)
    reservations: list[dict[str, Any]] = answer.reply["reservations"]

    def show(screen: Screen) -> None:
        if reservations:
            screen.table(_COLUMNS, [_row(one) for one in reservations])
        else:
            screen.line("nothing is reserved")

    return Answer(answer.reply, show)


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    return (
        one["id"],
        one["holder"] or "-",
        one["mode"],
        one["until"] or "-",
        " ".join(filter(None, (one.get("task"), one.get("wave") and f"(wave {one['wave']})"))),
        " ".join(one["patterns"]),
    )


def _lasting(ttl: int | None) -> dict[str, Any]:
    return {} if ttl is None else {"ttl_ms": ttl}


def _do(call: Call, operation: str, wanted: dict[str, Any], words: _Words) -> Answer:
    from dragoman.engine.plan import Turned

    with call.writing() as place:
        actor = call.actor(place, call.speaker())
        answer = place.interpreter.call(operation, wanted, actor)
        if isinstance(answer, Turned):
            return call.turned(answer)
        place.warnings.extend(answer.warnings)
    return Answer(answer.reply, lambda screen: screen.line(words(answer.reply)))


VERBS = (
    Verb("take", take),
    Verb("renew", renew),
    Verb("release", release),
    Verb("list", show_all, speaks=False),
)
