"""`dragoman reload`: the running hub takes over the agents of changed settings."""

from collections.abc import Iterator
from typing import Final

import msgspec

from dragoman.core.errors import Refusal, Refused
from dragoman.engine.schemas.settings import ReloadedSettings
from dragoman.surfaces.cli.command import CliCommand
from dragoman.surfaces.cli.context import CommandContext, CommandResult, bound_bearer
from dragoman.surfaces.cli.render import Screen

_PATIENCE_SECONDS: Final = 60.0


def reload(context: CommandContext) -> CommandResult:
    """Let the running hub take over changed agents.

    It reads its settings again. New [agents.NAME] sections start at once, changed ones hold for the
    next run, and removed ones get no more work; what runs goes on. Other sections need a restart,
    and are named. Settings with a fault are refused, with the line, and change nothing.

    \b
    Example:
      dragoman reload
    """
    from dragoman.system.hub_client import ask_hub
    from dragoman.system.hub_lock import find_hub

    bound = bound_bearer()
    if bound is not None:
        raise Refused(
            Refusal("not_authorized", f"{bound.label} may not reload the settings: the owner may")
        )
    # Not by the settings, which may have a fault: the hub says what is wrong with them.
    hub = find_hub(context.data) if context.data.is_dir() else None
    if hub is None:
        start = context.next_command("up")
        raise Refused(
            Refusal(
                "hub_unreachable", f"no hub runs here: `{start}` starts one, with these settings"
            )
        )
    reloaded = ask_hub(hub, "POST", "/v1/reload", ReloadedSettings, _PATIENCE_SECONDS)

    def show(screen: Screen) -> None:
        for line in describe_reload(reloaded):
            screen.line(line)

    return CommandResult(msgspec.to_builtins(reloaded), show)


def describe_reload(reloaded: ReloadedSettings) -> Iterator[str]:
    """Sentences on what a reload has changed."""
    changes = {
        "added": reloaded.added,
        "changed": reloaded.changed,
        "removed": reloaded.removed,
    }
    lines = [f"{change}: {', '.join(names)}" for change, names in changes.items() if names]
    yield from lines or ["no agent was added, changed or removed"]
    if reloaded.needs_restart:
        sections = ", ".join(f"[{name}]" for name in reloaded.needs_restart)
        yield f"changed, and not taken over before the next start of the hub: {sections}"


COMMANDS = (CliCommand("reload", reload, takes_as=False, takes_now=False),)
