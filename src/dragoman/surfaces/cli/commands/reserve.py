"""`dragoman reserve`: keep others from files for a while, and see who keeps whom."""

from typing import Any

from dragoman.core.timestamps import parse_duration
from dragoman.surfaces.cli.context import CommandContext
from dragoman.surfaces.cli.generated import Field, OperationCommand, Typed, make_commands

_TTL = Field(
    "ttl_ms",
    "--ttl",
    "TIME",
    "For how long: seconds, or 90s, 5m, 2h; else an hour.",
    parse=parse_duration,
)

_NAMES = Field("names", "", "ID|PATTERN", "Which ones; none: all of your own.", many=True)


def _set_mode(_: CommandContext, arguments: dict[str, Any], typed: Typed) -> None:
    arguments["exclusive"] = not typed["shared"]


COMMANDS = make_commands(
    (
        OperationCommand(
            "take",
            "reserve.take",
            """Reserve files, so that nobody else works on them meanwhile.

    Reservations are advisory: `dragoman guard` checks them in git, and waves respect them. The same
    files again are reserved for longer.""",
            "dragoman reserve take src/auth/ --as ada --ttl 2h",
            fields=(
                Field(
                    "patterns",
                    "",
                    "PATTERN",
                    "Paths and globs from the root of the repository; `src/`: all that is in it.",
                    many=True,
                    required=True,
                ),
                _TTL,
                Field("", "--shared", "", "Others may reserve them too, but not exclusively."),
                Field(
                    "task",
                    "--task",
                    "ID",
                    "For this task: it also ends when nobody works on the task any more.",
                ),
                Field("reason", "--reason", "TEXT", "The reason, recorded in the ledger."),
            ),
            complete=_set_mode,
            headline=("reserved until {until}: {patterns:words}",),
        ),
        OperationCommand(
            "renew",
            "reserve.renew",
            """Keep reserved files for longer, from now on.

    What was reserved for longer than that stays so: to end it, release it.""",
            "dragoman reserve renew src/auth/ --as ada --ttl 2h",
            fields=(_NAMES, _TTL),
            headline=("reserved until {until}",),
        ),
        OperationCommand(
            "release",
            "reserve.release",
            """Give reserved files back.

    People and orchestrators may give back those of others too, by naming them.""",
            "dragoman reserve release --as ada",
            fields=(_NAMES,),
            headline=("{remark}|{!remark}released",),
        ),
        OperationCommand(
            "list",
            "reserve.list",
            "List who has reserved which files, and until when.",
            "dragoman reserve list src/auth/login.py",
            fields=(Field("patterns", "", "PATTERN", "Only what collides with these.", many=True),),
            writes=False,
            columns={
                "ID": "{id}",
                "HOLDER": "{holder}",
                "MODE": "{mode}",
                "UNTIL": "{until}",
                "FOR": "{task}| (wave {wave})",
                "PATTERNS": "{patterns:words}",
            },
        ),
    )
)
