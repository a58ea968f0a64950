"""`dragoman top`: the fleet in a terminal, live, with keys to act."""

import asyncio
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dragoman.config import environment
from dragoman.core.errors import SettingsError
from dragoman.surfaces.cli.command import CliCommand
from dragoman.surfaces.cli.context import CommandContext, raise_usage_error
from dragoman.surfaces.cli.remote_hub import TOKEN, URL, load_trust
from dragoman.system.hub_lock import HubAddress, find_hub

if TYPE_CHECKING:
    from dragoman.surfaces.cli.live_view.hub_api import HubLocation


def top(context: CommandContext) -> None:
    """Watch the fleet in a terminal, live, and act.

    What needs you, who works on what, the board, the ledger as it grows and the story of each task,
    with a key for each thing that you can do. It goes through the hub, here or elsewhere (--url),
    as the bearer of the token, and needs the extra `top`.

    \b
    Examples:
      dragoman top
      dragoman top --url https://hub.example:4747 --token-file hub.token
    """
    if find_spec("textual") is None:
        raise_usage_error(
            "top needs the package textual, which is not installed: "
            "`pip install 'dragoman[top]'`, or in a clone `uv run --extra top dragoman top`"
        )
    if context.shared.speaker:
        raise_usage_error("top acts for the bearer of its token: leave out --as")
    if context.shared.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise_usage_error("top needs a terminal: `dragoman status --json` has what it shows")
    locate = _hub_locator(context)
    from dragoman.surfaces.cli.live_view.fleet_app import FleetApp
    from dragoman.surfaces.cli.live_view.hub_api import HubApi

    fault = asyncio.run(FleetApp(HubApi(locate)).run_async())
    if fault is not None:
        raise fault


def _hub_locator(context: CommandContext) -> "Callable[[], HubLocation]":
    """Function that finds the hub: the one elsewhere, or the one that runs here at that moment."""
    from dragoman.surfaces.cli.live_view.hub_api import HubLocation
    from dragoman.system.tls import unverified_context

    url, token = environment().get(URL, ""), environment().get(TOKEN, "")
    if url and token:
        elsewhere = HubLocation(url.rstrip("/"), token, load_trust())
        return lambda: elsewhere
    if url and context.shared.data is None:
        raise SettingsError(
            f"{URL} names a hub, and {TOKEN}, which says who speaks there, is not set"
        )
    last, tls = _find_here(context), unverified_context()

    def locate() -> HubLocation:
        nonlocal last
        last = find_hub(context.data) or last
        return HubLocation(last.url, last.token, tls)

    return locate


def _find_here(context: CommandContext) -> HubAddress:
    return find_hub(context.data) or raise_usage_error(
        f"no hub runs for {context.data}: `{context.next_command('up')}` starts one; "
        "`dragoman status` needs none"
    )


COMMANDS = (CliCommand("top", top, takes_as=False, takes_now=False),)
