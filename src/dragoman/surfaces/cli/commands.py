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

from dragoman.surfaces.cli.values import FastGroup
from dragoman.surfaces.cli.verb import CliCommand, print_help_without_subcommand, register_command

ModuleCommands = Mapping[str, tuple[str, ...]]
"""Module of this package -> its commands, in the order in which help lists them."""

TOP_LEVEL: ModuleCommands = {
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


class CommandGroup(Struct, frozen=True):
    """A group of commands behind a common word."""

    help: str
    modules: ModuleCommands
    hidden: bool = False


_AGENT_GROUP = CommandGroup(
    "Register agents and people, and see them.",
    {
        "agent.make": ("add", "token", "revoke"),
        "agent.read": ("list", "show"),
        "agent.pause": ("pause", "resume"),
        "agent.rank": ("rank", "discover"),
    },
)
GROUPS: Mapping[str, CommandGroup] = {
    "task": CommandGroup(
        "Make, take, move and read tasks.",
        {
            "task.make": ("create", "move", "link"),
            "task.read": ("list", "show", "log"),
            "task.hold": ("claim", "heartbeat", "release"),
        },
    ),
    "agent": _AGENT_GROUP,
    "agents": CommandGroup(_AGENT_GROUP.help, _AGENT_GROUP.modules, hidden=True),
    "intent": CommandGroup(
        "See what was delegated, and why.", {"intent.read": ("show", "list", "actions", "cancel")}
    ),
    "mail": CommandGroup(
        "Send and read letters.",
        {
            "mail.send": ("send",),
            "mail.box": ("inbox",),
            "mail.threads": ("show", "thread", "search", "summarize"),
            "mail.mark": ("ack", "read"),
        },
    ),
    "handoff": CommandGroup(
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
    "wave": CommandGroup(
        "Run beads together, and see how far they are.",
        {"wave.run": ("start", "status", "watch", "list", "show")},
    ),
    "reserve": CommandGroup(
        "Reserve files, and see who has them.",
        {"wave.reserve": ("take", "renew", "release", "list")},
    ),
    "guard": CommandGroup(
        "Keep reserved files out of git commits.", {"wave.guard": ("install", "check")}
    ),
}


CommandFactory = Callable[[], Any]


def build_root(app: typer.Typer) -> TyperGroup:
    """Build the root with all commands below it."""
    groups = {name: cache(partial(_build_group, group)) for name, group in GROUPS.items()}
    return _build_typer_group(app, {**_command_factories(TOP_LEVEL), **groups})


def load_commands(module: str) -> Mapping[str, CliCommand]:
    """Import a module of this package; its commands by name."""
    commands: tuple[CliCommand, ...] = import_module(f"{__package__}.{module}").VERBS
    return {verb.name: verb for verb in commands}


class _LazyCommands(UserDict[str, Any]):
    """Commands by name, each built when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return self.data[name]()


def _build_typer_group(app: typer.Typer, factories: Mapping[str, CommandFactory]) -> TyperGroup:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    group.commands = _LazyCommands(factories)
    return group


def _command_factories(modules: ModuleCommands) -> dict[str, CommandFactory]:
    module_of = {name: file for file, names in modules.items() for name in names}
    return {name: cache(partial(_build_command, file, name)) for name, file in module_of.items()}


def _build_command(module: str, name: str) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    register_command(app, load_commands(module)[name])
    return get_command(app)


def _build_group(group: CommandGroup) -> TyperGroup:
    app = typer.Typer(
        help=group.help,
        cls=FastGroup,
        hidden=group.hidden,
        add_completion=False,
        rich_markup_mode=None,
    )
    app.callback(invoke_without_command=True)(print_help_without_subcommand)
    return _build_typer_group(app, _command_factories(group.modules))
