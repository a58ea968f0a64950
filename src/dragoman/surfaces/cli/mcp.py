"""`dragoman mcp`: the hub as tools of a coding agent, on standard input and output."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

import dragoman
from dragoman.config import environment
from dragoman.core.actors import Actor
from dragoman.core.errors import Refusal, Refused, SettingsError
from dragoman.surfaces.cli.call import Call, wrong_usage
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.verb import Verb
from dragoman.text.fault_words import in_words

if TYPE_CHECKING:
    from dragoman.surfaces.mcp.desk import Desk
    from dragoman.surfaces.mcp.far import Trust

_URL, _TOKEN, _CERT = "DRAGOMAN_URL", "DRAGOMAN_TOKEN", "DRAGOMAN_CERT"


def mcp(
    call: Call,
    profile: Annotated[
        str,
        typer.Option(
            "--profile",
            metavar="NAME",
            show_default=False,
            help="Show the tools of [profiles.NAME]; else all that fit the agent.",
        ),
    ] = "",
) -> None:
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

    url, token = environment().get(_URL, ""), environment().get(_TOKEN, "")
    if url and token and not call.speaker():
        asyncio.run(_pass_on(url, token, profile))
        return
    if url and not call.speaker() and call.shared.data is None:
        # The data directory here is not what was meant, so it is not used as its owner.
        raise SettingsError(
            f"{_URL} names a hub, and {_TOKEN}, which says who speaks there, is not set: set both "
            "(`dragoman agent add NAME` prints a token), or name a data directory with --data"
        )
    from dragoman.surfaces.mcp.profiles import Profiles
    from dragoman.surfaces.mcp.tools import table

    # Faults that every request would meet are reported at the start, before the SDK is loaded.
    with _open_desk(call, token, reads=False) as desk:
        tools = table(desk.interpreter.dialects)
        profiles = Profiles(tools, desk.settings.profiles)
    if profile and profile not in profiles.names:
        known = ", ".join(profiles.names) or "none"
        wrong_usage(f"there is no profile {profile!a} in the settings; known: {known}")
    from dragoman.surfaces.mcp.resources import SHELVES
    from dragoman.surfaces.mcp.server import Caller, Tables, build_server
    from dragoman.surfaces.mcp.stdio import OwnRoom, serve

    room = OwnRoom(partial(_open_desk, call, token))
    tables, caller = Tables(tools, SHELVES, profiles), Caller(profile=profile)
    asyncio.run(serve(build_server(room, tables, lambda _: caller, dragoman.__version__)))


async def _pass_on(url: str, token: str, profile: str) -> None:
    from dragoman.surfaces.mcp.far import reached

    async with reached(url, token, profile, _trust()) as (http, address):
        from dragoman.surfaces.mcp.relay import relay

        await relay(http, address, dragoman.__version__)


def _trust() -> "Trust":
    from dragoman.system.trust import only

    certificate = environment().get(_CERT, "")
    try:
        return only(certificate) if certificate else True
    except OSError as error:
        raise SettingsError(
            f"{_CERT}: {certificate} is no certificate that can be read: {in_words(error)}"
        ) from None


@contextmanager
def _open_desk(call: Call, token: str, *, reads: bool) -> Generator["Desk"]:
    from dragoman.surfaces.mcp.desk import Desk

    with call.reading() if reads else call.writing() as place:
        yield Desk(place.hub, place.interpreter, place.settings, _actor(call, place, token))


def _actor(call: Call, place: Place, token: str) -> Actor:
    """Actor of the process; a token is checked each time, because it may be revoked."""
    from msgspec.structs import replace

    from dragoman.surfaces.mcp.desk import VIA

    speaker = call.speaker()
    if speaker or not token:
        actor = call.actor(place, speaker)
        return replace(actor, via=actor.via.replace("cli", VIA, 1))
    principal = place.identify(token, VIA)
    if isinstance(principal, Refusal):
        raise Refused(Refusal(principal.code, f"{_TOKEN}: {principal.detail}"))
    return principal.actor


VERBS = (Verb("mcp", mcp),)
