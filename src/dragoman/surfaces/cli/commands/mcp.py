"""`dragoman mcp`: the hub as tools of a coding agent, on standard input and output."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import dragoman
from dragoman.config import environment
from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal, Refused, SettingsError
from dragoman.surfaces.cli.command import CliCommand
from dragoman.surfaces.cli.context import CommandContext
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.remote_hub import TOKEN, URL, load_trust

if TYPE_CHECKING:
    from dragoman.surfaces.mcp.context import HubContext
    from dragoman.surfaces.mcp.leases import HeldLeases


def mcp(context: CommandContext) -> None:
    """Offer the hub to a coding agent as MCP tools (stdio).

    It acts for --as NAME, else for the bearer of the token in DRAGOMAN_TOKEN, else for you. It
    works on the data directory, through its hub if one runs. Where DRAGOMAN_URL and DRAGOMAN_TOKEN
    are set, as for agents that a hub has started, it passes everything on to that hub.

    \b
    Examples:
      dragoman mcp --as ada
      claude mcp add dragoman -- dragoman --data /srv/hub/.dragoman mcp --as ada
    """
    import asyncio

    url, token = environment().get(URL, ""), environment().get(TOKEN, "")
    if url and token and not context.acting_agent():
        asyncio.run(_relay_to_hub(url, token))
        return
    if url and not context.acting_agent() and context.shared.data is None:
        # The data directory here is not what was meant, so it is not used as its owner.
        raise SettingsError(
            f"{URL} names a hub, and {TOKEN}, which says who speaks there, is not set: set both "
            "(`dragoman agent add NAME` prints a token), or name a data directory with --data"
        )
    from dragoman.surfaces.mcp.leases import HeldLeases
    from dragoman.surfaces.mcp.tools import build_tools
    from dragoman.system.clock import SystemClock

    leases = HeldLeases(SystemClock())
    open_context = partial(_open_tool_context, context, token, leases)
    # Faults that every request would meet are reported at the start, before the SDK is loaded.
    with open_context(reads=False) as tool_context:
        tools = build_tools(tool_context.router.dialects)
        ttl_ms = tool_context.settings.leases.ttl_ms
    from dragoman.surfaces.mcp.server import build_server
    from dragoman.surfaces.mcp.stdio import DirectoryContextProvider, serve

    provider = DirectoryContextProvider(open_context)
    server = build_server(provider, tools, lambda _: None, dragoman.__version__)
    asyncio.run(serve(server, provider.keep_leases(leases, ttl_ms)))


async def _relay_to_hub(url: str, token: str) -> None:
    from dragoman.surfaces.mcp.remote import connect_remote

    async with connect_remote(url, token, load_trust()) as (http, address):
        from dragoman.surfaces.mcp.remote import relay

        await relay(http, address, dragoman.__version__)


@contextmanager
def _open_tool_context(
    context: CommandContext, token: str, leases: "HeldLeases", *, reads: bool
) -> Generator["HubContext"]:
    from dragoman.files.task_branches import TaskBranches
    from dragoman.surfaces.mcp.context import HubContext

    opened = context.open_for_reading() if reads else context.open_for_writing()
    with opened as directory:
        yield HubContext(
            directory.hub,
            directory.router,
            directory.settings,
            _resolve_actor(context, directory, token),
            leases,
            TaskBranches(directory.path, directory.settings, directory.hub),
        )


def _resolve_actor(context: CommandContext, directory: DataDirectory, token: str) -> Actor:
    """Actor of the process; a token is checked each time, because it may be revoked."""
    from msgspec.structs import replace

    from dragoman.surfaces.mcp.context import VIA

    speaker = context.acting_agent()
    if speaker or not token:
        actor = context.actor(directory, speaker)
        return replace(actor, via=actor.via.replace("cli", VIA, 1))
    principal = directory.authenticate(token, VIA)
    if isinstance(principal, Refusal):
        raise Refused(Refusal(principal.code, f"{TOKEN}: {principal.detail}"))
    return principal.actor


COMMANDS = (CliCommand("mcp", mcp),)
