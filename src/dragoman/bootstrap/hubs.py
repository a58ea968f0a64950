"""A hub that can run: the door, the duties and the dispatcher of one place."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.config import Settings, environment, load_settings
from dragoman.surfaces.cli.person import login_name
from dragoman.surfaces.cli.place import Place
from dragoman.system.clock import SystemClock
from dragoman.system.keys import load, load_or_create

if TYPE_CHECKING:
    from dragoman.surfaces.cli.running import RunningHub
    from dragoman.surfaces.http.door import Patience
    from dragoman.surfaces.mcp.http import McpApp
    from dragoman.surfaces.mcp.mount import LateApp
from dragoman.bootstrap.places import CHECKPOINTS, Engines, opened
from dragoman.bootstrap.starters import open_dispatcher
from dragoman.bootstrap.stores import make_directory, open_store


def open_hub(
    data: Path, store: str, host: str, port: int | None, config: Path | None
) -> "tuple[Place, RunningHub]":
    """A place, and all that runs in it while a hub does: the only one of its data directory."""
    from dragoman.engine.identity import Identity
    from dragoman.services.clockwork import Clockwork, Wheel
    from dragoman.surfaces.cli.running import RunningHub
    from dragoman.surfaces.http.app import build_app
    from dragoman.surfaces.http.door import Door
    from dragoman.surfaces.http.server import HttpServer
    from dragoman.surfaces.mcp.mount import PATH as MCP_PATH
    from dragoman.system.hub_lock import HubLock
    from dragoman.system.token_file import load_or_create_token

    make_directory(data)
    lock = HubLock.acquire(data, "dragoman up")
    try:
        settings = _listening(load_settings(data, environment(), config), host, port)
        key = load_or_create(data) if not (data / CHECKPOINTS).exists() else load(data)
        kept = open_store(store or settings.store.url, data)
        place = opened(data, settings, Engines(kept, SystemClock(), key), create=True)
        hub = place.hub
        token = load_or_create_token(data)
        identity = Identity(hub.store, key.secret, token, hub.clock, owner=login_name())
        place.hints.listen(identity.forget)
        duty = {one.name: one for one in place.duties}
        now = hub.clock.now
        checkpoint, notify, projection = duty["checkpoint"], duty["notify"], duty["projection"]
        clockwork = Clockwork(
            (
                Wheel("time", [duty["recovery"], duty["sla"], duty["promotion"]], now),
                Wheel("files", place.file_duties, now, followers=[projection], rest_seconds=2.0),
                Wheel("checkpoint", [checkpoint], now, followers=[checkpoint]),
                Wheel("notify", [notify], now, followers=[notify]),
            )
        )
        place.hints.listen(clockwork.hint)

        def health() -> Mapping[str, str]:
            return {**clockwork.health(), "dispatch": dispatcher.problem}

        door = Door(hub, place.interpreter, identity, settings, place.hints, health)
        mounts = {MCP_PATH: _mcp_app(place, door.patience)}
        server = HttpServer(build_app(door, mounts), settings.http)
        bound = server.bind()
        dispatcher = open_dispatcher(place, identity, server.url)
        return place, RunningHub(hub, server, bound, dispatcher, clockwork, lock)
    except BaseException:
        lock.release()
        raise


def _mcp_app(place: Place, patience: "Patience") -> "LateApp":
    """MCP for a hub that runs."""
    from dragoman.surfaces.mcp.mount import LateApp
    from dragoman.surfaces.mcp.profiles import Profiles
    from dragoman.surfaces.mcp.tools import table

    settings, tools = place.settings, table(place.interpreter.dialects)
    # What is wrong in the settings is told at the start.
    profiles = Profiles(tools, settings.profiles)

    def load() -> "McpApp":
        import dragoman
        from dragoman.surfaces.mcp.desk import HubRoom
        from dragoman.surfaces.mcp.http import McpApp, caller
        from dragoman.surfaces.mcp.resources import SHELVES
        from dragoman.surfaces.mcp.server import Tables, build_server

        room = HubRoom(place.hub, place.interpreter, settings)
        tables = Tables(tools, SHELVES, profiles)
        server = build_server(room, tables, caller, dragoman.__version__)
        return McpApp(server, profiles.names, settings.http.max_body, patience)

    return LateApp(load)


def _listening(settings: Settings, host: str, port: int | None) -> Settings:
    """The settings, with what the command line says about the address."""
    http = settings.http
    http = replace(http, host=host or http.host, port=http.port if port is None else port)
    return replace(settings, http=http)
