"""Every command, and the file that it stands in: only the file of the command given is loaded.

A call is for one of eighty commands, and to load them all takes longer than most of them run.
"""

from collections import UserDict
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any

import typer
from msgspec import Struct
from typer.core import TyperGroup
from typer.main import get_command

from dragoman.surfaces.cli.values import QuickGroup
from dragoman.surfaces.cli.verb import Verb, add_verb, help_when_alone

Files = Mapping[str, tuple[str, ...]]
"""File of this folder -> the commands that stand in it, in the order in which help lists them."""

FILES: Files = {
    "init": ("init",),
    "demo": ("demo",),
    "up": ("up",),
    "mcp": ("mcp",),
    "send": ("send",),
    "operate": ("call", "session-end"),
    "delegate": ("delegate", "why"),
    "lint": ("lint",),
    "schema": ("schema",),
    "tick": ("tick",),
    "events": ("events",),
    "watch": ("watch",),
    "trace": ("trace",),
    "otlp": ("otlp",),
    "redact": ("redact",),
    "rewind": ("rewind",),
    "verify": ("verify",),
    "files": ("watch-files", "rebuild-files", "export", "import"),
    "backup": ("backup", "restore"),
    "doctor": ("doctor",),
}
"""Those that stand alone; the groups follow."""


class Group(Struct, frozen=True):
    """Commands that are given behind a common word."""

    help: str
    files: Files
    hidden: bool = False


_AGENT = Group(
    "Make agents and people known.",
    {
        "agent_make": ("add", "token", "revoke"),
        "agent_read": ("list", "show"),
        "agent_pause": ("pause", "resume"),
        "agent_rank": ("rank", "discover"),
    },
)
GROUPS: Mapping[str, Group] = {
    "task": Group(
        "Make, take, move and read tasks.",
        {
            "task_make": ("create", "move", "link"),
            "task_read": ("list", "show", "log"),
            "task_hold": ("claim", "heartbeat", "release"),
        },
    ),
    "agent": _AGENT,
    "agents": Group(_AGENT.help, _AGENT.files, hidden=True),
    "intent": Group(
        "See what was delegated, and why.", {"intent": ("show", "list", "actions", "cancel")}
    ),
    "mail": Group(
        "Send and read letters.",
        {
            "mail_send": ("send",),
            "mail_box": ("inbox",),
            "mail_threads": ("show", "thread", "search", "summarize"),
            "mail_mark": ("ack", "read"),
        },
    ),
    "handoff": Group(
        "Hand work over, and see where it is stuck.",
        {
            "handoff_read": ("list", "show", "timeline"),
            "handoff_check": ("verify", "diagnose"),
            "handoff_draft": ("draft", "validate", "propose", "discard"),
            "handoff_offer": ("initiate",),
            "handoff_act": (
                *("accept", "reject", "activate", "complete", "close"),
                *("withdraw", "extend", "reassign", "approve", "deny"),
            ),
        },
    ),
    "wave": Group(
        "Run beads together, and see how far they are.",
        {"wave": ("start", "show", "watch", "list", "status")},
    ),
    "reserve": Group(
        "Reserve files, and see who has them.", {"reserve": ("take", "renew", "release", "list")}
    ),
    "guard": Group("Keep reserved files out of git commits.", {"guard": ("install", "check")}),
}


Make = Callable[[], Any]


def root_of(app: typer.Typer) -> TyperGroup:
    """The root with all commands below it."""
    groups = {name: cache(partial(_group, group)) for name, group in GROUPS.items()}
    return _with_commands(app, {**_makes(FILES), **groups})


def verbs_of(file: str) -> Mapping[str, Verb]:
    """Name -> verb, of a file."""
    verbs: tuple[Verb, ...] = import_module(f"{__package__}.{file}").VERBS
    return {verb.name: verb for verb in verbs}


class _OnDemand(UserDict[str, Any]):
    """Commands by name, each made when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return self.data[name]()


def _with_commands(app: typer.Typer, makes: Mapping[str, Make]) -> TyperGroup:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    group.commands = _OnDemand(makes)
    return group


def _makes(files: Files) -> dict[str, Make]:
    at = {name: file for file, names in files.items() for name in names}
    return {name: cache(partial(_command, file, name)) for name, file in at.items()}


def _command(file: str, name: str) -> Any:
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    add_verb(alone, verbs_of(file)[name])
    return get_command(alone)


def _group(group: Group) -> TyperGroup:
    app = typer.Typer(
        help=group.help,
        cls=QuickGroup,
        hidden=group.hidden,
        add_completion=False,
        rich_markup_mode=None,
    )
    app.callback(invoke_without_command=True)(help_when_alone)
    return _with_commands(app, _makes(group.files))
