"""`dragoman reserve`: keep others from files for a while, and see who keeps whom."""

from dragoman.core.timestamps import parse_duration
from dragoman.surfaces.cli.generated import Field, OperationCommand, make_commands

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
                Field(
                    "ttl_ms",
                    "--ttl",
                    "TIME",
                    "For how long: seconds, or 90s, 5m, 2h; else an hour.",
                    parse=parse_duration,
                ),
                Field("reason", "--reason", "TEXT", "The reason, recorded in the ledger."),
            ),
            headline=("reserved until {until}: {patterns:words}",),
        ),
        OperationCommand(
            "release",
            "reserve.release",
            """Give reserved files back.

    People and orchestrators may give back those of others too, by naming them.""",
            "dragoman reserve release --as ada",
            fields=(
                Field("names", "", "ID|PATTERN", "Which ones; none: all of your own.", many=True),
            ),
            headline=("{?released}released|{!released}nothing was reserved",),
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
                "UNTIL": "{until}",
                "FOR": "{task}| (wave {wave})",
                "PATTERNS": "{patterns:words}",
            },
        ),
    )
)
