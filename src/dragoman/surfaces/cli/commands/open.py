"""`dragoman open`: the dashboard of a running hub, signed in by a one-time link."""

import sys
import webbrowser
from http import HTTPStatus
from http.client import HTTPException
from typing import Annotated

import msgspec
from msgspec import Struct

from dragoman.config import environment
from dragoman.core.errors import StoreUnavailable
from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult, raise_usage_error
from dragoman.system.hub_client import call_hub, parse_problem, unexpected_answer
from dragoman.system.hub_lock import HubAddress, find_hub
from dragoman.text.error_messages import describe_exception

_SECONDS = 10.0


class _Link(Struct, frozen=True, rename="camel"):
    """A one-time link, as the hub answers."""

    path: str
    expires_at: str


def open_dashboard(
    context: CommandContext,
    *,
    print_only: Annotated[
        bool, option("--print", "", "Print the link, and open no browser.")
    ] = False,
) -> CommandResult:
    """Open the dashboard in a browser, signed in.

    The link works once, for a minute; the browser stays signed in for twelve hours.

    \b
    Examples:
      dragoman open
      dragoman open --print
    """
    hub = _find_hub(context)
    link = _add_link(hub)
    url = hub.url + link.path
    is_opened = not print_only and _has_display() and webbrowser.open(url)
    data = {"url": url, "expires_at": link.expires_at, "opened": is_opened}
    return CommandResult(data, lambda screen: screen.line(url))


def _find_hub(context: CommandContext) -> HubAddress:
    hub = find_hub(context.data)
    return hub or raise_usage_error(
        f"no hub runs for {context.data}: `{context.next_command('up')}` starts one; to the "
        "dashboard of a hub elsewhere you sign in with your token"
    )


def _add_link(hub: HubAddress) -> _Link:
    try:
        status, answer = call_hub(hub, "POST", "/v1/sign-in/links", _SECONDS)
    except (OSError, HTTPException) as error:
        raise StoreUnavailable(
            f"the hub at {hub.url} cannot be asked ({describe_exception(error)})"
        ) from error
    if status != HTTPStatus.CREATED:
        raise unexpected_answer(hub.url, status, parse_problem(answer))
    return msgspec.json.decode(answer, type=_Link)


def _has_display() -> bool:
    """Return whether a browser would open a window of its own, and not take over this terminal."""
    displays = (environment().get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return sys.platform == "darwin" or any(displays)


COMMANDS = (CliCommand("open", open_dashboard, takes_as=False, takes_now=False),)
