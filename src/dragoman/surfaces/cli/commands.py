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
"""Module of this package -> its commands, in the order in which help lists them."""

FILES: Files = {
    "init": ("init",),
    "demo.play": ("demo",),
    "up": ("up",),
    "mcp": ("mcp",),
    "send": ("send",),
    "operate": ("call", "session-end"),
    "intent.delegate": ("delegate", "why"),
    "lint": ("lint",),
    "schema": ("schema",),
    "tick": ("tick",),
    "events": ("events",),
    "trace.watch": ("watch",),
    "trace.take": ("trace",),
    "trace.otlp": ("otlp",),
    "redact": ("redact",),
    "trace.rewind": ("rewind",),
    "verify": ("verify",),
    "files": ("watch-files", "rebuild-files", "export", "import"),
    "backup": ("backup", "restore"),
    "doctor.examine": ("doctor",),
}
"""Top-level commands; the groups follow."""


class Group(Struct, frozen=True):
    """A group of commands behind a common word."""

    help: str
    files: Files
    hidden: bool = False


_AGENT = Group(
    "Register agents and people, and see them.",
    {
        "agent.make": ("add", "token", "revoke"),
        "agent.read": ("list", "show"),
        "agent.pause": ("pause", "resume"),
        "agent.rank": ("rank", "discover"),
    },
)
GROUPS: Mapping[str, Group] = {
    "task": Group(
        "Make, take, move and read tasks.",
        {
            "task.make": ("create", "move", "link"),
            "task.read": ("list", "show", "log"),
            "task.hold": ("claim", "heartbeat", "release"),
        },
    ),
    "agent": _AGENT,
    "agents": Group(_AGENT.help, _AGENT.files, hidden=True),
    "intent": Group(
        "See what was delegated, and why.", {"intent.read": ("show", "list", "actions", "cancel")}
    ),
    "mail": Group(
        "Send and read letters.",
        {
            "mail.send": ("send",),
            "mail.box": ("inbox",),
            "mail.threads": ("show", "thread", "search", "summarize"),
            "mail.mark": ("ack", "read"),
        },
    ),
    "handoff": Group(
        "Hand work over, and see where it is stuck.",
        {
            "handoff.read": ("list", "show", "timeline"),
            "handoff.check": ("verify", "diagnose"),
            "handoff.draft": ("draft", "validate", "propose", "discard"),
            "handoff.offer": ("initiate",),
            "handoff.act": (
                *("accept", "reject", "activate", "complete", "close"),
                *("withdraw", "extend", "reassign", "approve", "deny"),
            ),
        },
    ),
    "wave": Group(
        "Run beads together, and see how far they are.",
        {"wave.run": ("start", "status", "watch", "list", "show")},
    ),
    "reserve": Group(
        "Reserve files, and see who has them.",
        {"wave.reserve": ("take", "renew", "release", "list")},
    ),
    "guard": Group("Keep reserved files out of git commits.", {"wave.guard": ("install", "check")}),
}


Make = Callable[[], Any]


def root_of(app: typer.Typer) -> TyperGroup:
    """Build the root with all commands below it."""
    groups = {name: cache(partial(_group, group)) for name, group in GROUPS.items()}
    return _with_commands(app, {**_makes(FILES), **groups})


def verbs_of(file: str) -> Mapping[str, Verb]:
    """Import a module of this package; its commands by name."""
    verbs: tuple[Verb, ...] = import_module(f"{__package__}.{file}").VERBS
    return {verb.name: verb for verb in verbs}


class _OnDemand(UserDict[str, Any]):
    """Commands by name, each built when it is looked up."""

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
