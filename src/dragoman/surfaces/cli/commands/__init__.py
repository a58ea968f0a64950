"""Index of commands: loads only the module of the command that is called.

A call is for one of eighty commands, and loading them all takes longer than most of them run.
"""

from collections.abc import Mapping
from importlib import import_module

from msgspec import Struct

from dragoman.surfaces.cli.caller import bearer, require_own_process
from dragoman.surfaces.cli.command import CliCommand

# --- index ------------------------------------------------------------------------------------

ModuleCommands = Mapping[str, tuple[str, ...]]
"""Module of this package -> its commands, in the order in which help lists them."""

TOP_LEVEL: ModuleCommands = {
    "init": ("init",),
    "demo": ("demo",),
    "up": ("up",),
    "open": ("open",),
    "reload": ("reload",),
    "status": ("status",),
    "top": ("top",),
    "mcp": ("mcp",),
    "connect": ("connect",),
    "hook": ("hook",),
    "send": ("send", "call", "session-end"),
    "intent": ("delegate", "why"),
    "lint": ("lint", "schema"),
    "translation": ("translate",),
    "tick": ("tick",),
    "events": ("events",),
    "watch": ("watch",),
    "task_folders": ("logs",),
    "story": ("story",),
    "report": ("report",),
    "redact": ("redact",),
    "rewind": ("rewind",),
    "verify": ("verify",),
    "archive": ("rebuild-files", "export", "import", "backup", "restore"),
    "doctor": ("doctor",),
}
"""Top-level commands; the groups follow."""


class CommandGroup(Struct, frozen=True):
    """A group of commands behind a common word."""

    help: str
    modules: ModuleCommands


GROUPS: Mapping[str, CommandGroup] = {
    "task": CommandGroup(
        "Make, take, move and read tasks.",
        {
            "task": ("create", "claim", "heartbeat"),
            "task_actions": (
                "complete",
                "fail",
                "block",
                "release",
                "limit",
                "update",
                "ask",
                "answer",
                "approve",
                "send-back",
                "retry",
                "reopen",
                "move",
                "assign",
                "edit",
                "link",
                "withdraw",
            ),
            "task_branch": ("diff", "merge"),
            "task_read": ("list", "search", "show", "log"),
            "task_tree": ("tree",),
            "task_folders": ("path",),
        },
    ),
    "agent": CommandGroup(
        "Register agents and people, and see them.",
        {
            "agent": ("add", "token", "revoke", "list", "show", "pause", "resume"),
            "intent": ("rank",),
        },
    ),
    "intent": CommandGroup(
        "See what was delegated, and why.",
        {
            "intent": ("show", "list", "cancel"),
        },
    ),
    "mail": CommandGroup(
        "Send and read letters.",
        {
            "mail": ("send", "inbox", "show", "thread", "search", "summarize", "ack", "read"),
        },
    ),
    "handoff": CommandGroup(
        "Hand work over, and see where it is stuck.",
        {
            "handoff": (
                "initiate",
                "accept",
                "reject",
                "activate",
                "complete",
                "close",
                "withdraw",
                "extend",
                "reassign",
                "approve",
                "deny",
                "list",
                "show",
                "diagnose",
            ),
        },
    ),
    "wave": CommandGroup(
        "Run beads together, and see how far they are.",
        {
            "wave": ("start", "status", "list"),
        },
    ),
    "reserve": CommandGroup(
        "Reserve files, and see who has them.",
        {
            "reserve": ("take", "release", "list"),
        },
    ),
    "checkpoints": CommandGroup(
        "Say that changed checkpoints are right.",
        {
            "checkpoints": ("accept",),
        },
    ),
    "guard": CommandGroup(
        "Keep reserved files out of git commits.",
        {
            "guard": ("install", "check"),
        },
    ),
}


RUN_IN_HUB = frozenset(
    (
        "agent",
        "handoff",
        "hook",
        "intent",
        "mail",
        "reserve",
        "send",
        "status",
        "task",
        "task_actions",
        "task_branch",
        "task_read",
        "task_tree",
        "wave",
    )
)
"""Modules whose commands a running hub runs for its callers, because it has loaded all that they
need. The others work on files, follow the ledger, or are needed when there is no hub."""

RUN_FROM_ELSEWHERE = RUN_IN_HUB | {"events", "reload", "report", "story", "watch"}
"""Modules whose commands a hub runs for the bearer of a token, wherever that is."""


# --- loading ----------------------------------------------------------------------------------


def load_commands(module: str) -> Mapping[str, CliCommand]:
    """Import a module of this package; its commands by name."""
    commands: tuple[CliCommand, ...] = import_module(f"{__package__}.{module}").COMMANDS
    return {verb.name: verb for verb in commands}


def modules_by_command(modules: ModuleCommands) -> Mapping[str, str]:
    """Module of each command."""
    return {name: file for file, names in modules.items() for name in names}


def check_runs_here(module: str) -> None:
    """End a command that a running hub cannot run: for a caller beside it, or for the bearer of a
    token."""
    if module not in (RUN_IN_HUB if bearer() is None else RUN_FROM_ELSEWHERE):
        require_own_process()
