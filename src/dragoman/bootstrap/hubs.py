"""A hub that can run: the door, the duties and the dispatcher of one place."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.config import Settings, environment, load_settings, setting_variables
from dragoman.engine.ports import Store
from dragoman.engine.trouble import Trouble
from dragoman.surfaces.cli.person import login_name
from dragoman.surfaces.cli.place import Place
from dragoman.system.clock import SystemClock

if TYPE_CHECKING:
    from dragoman.services.desk import AgentState
    from dragoman.surfaces.cli.running import RunningHub
    from dragoman.surfaces.http.door import Patience
    from dragoman.surfaces.mcp.http import McpApp
    from dragoman.surfaces.mcp.mount import LateApp
    from dragoman.system.hub_lock import Works
from dragoman.bootstrap.keyed import keyed_store
from dragoman.bootstrap.places import Engines, opened
from dragoman.bootstrap.starters import open_dispatcher
from dragoman.bootstrap.stores import lasting, make_directory, open_or_make
from dragoman.bootstrap.usable import check_usable

_STOPPING = "the hub is stopping: no more work is given out"


def open_hub(
    data: Path, store: str, host: str, port: int | None, config: Path | None
) -> "tuple[Place, RunningHub]":
    """Build a hub that can run: the only one of its data directory, which it locks."""
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
    with ExitStack() as undo:  # a start that fails leaves nothing open and nothing locked
        lock = HubLock.acquire(data, "dragoman up")
        undo.callback(lock.release)
        settings = _listening(load_settings(data, environment(), config), host, port)
        check_usable(settings, data)
        url = lasting(store or settings.store.url)
        key, kept = keyed_store(data, store, lambda: open_or_make(url, data), create=True)
        undo.callback(kept.close)
        lock.works_on(_works(kept, url, config))
        # The command line overrides the settings, and its URL may hold a password to be masked.
        settings = replace(settings, store=replace(settings.store, url=url))
        place = opened(data, settings, Engines(kept, SystemClock(), key), create=True)
        hub = place.hub
        undo.callback(hub.close)
        identity = Identity(
            hub.store,
            key.secret,
            load_or_create_token(data),
            hub.clock,
            owner=login_name(),
            linger_ms=settings.dispatch.leave_ms,
        )
        place.hints.listen(identity.forget)
        clockwork = Clockwork([Wheel(group, hub.clock.now) for group in place.groups])
        place.hints.listen(clockwork.hint)

        def health() -> Mapping[str, Trouble]:
            dispatch = Trouble(_STOPPING) if dispatcher.is_stopping else dispatcher.trouble
            return {**clockwork.health(), "dispatch": dispatch}

        def fleet() -> "Sequence[AgentState]":
            return dispatcher.states()

        door = Door(
            hub,
            place.interpreter,
            identity,
            settings,
            place.hints,
            health,
            fleet=fleet,
            is_stopping=lambda: dispatcher.is_stopping,
        )
        mounts = {MCP_PATH: _mcp_app(place, door.patience)}
        server = HttpServer(build_app(door, mounts), settings.http)
        bound = server.bind()
        undo.callback(bound.close)
        dispatcher = open_dispatcher(place, identity, server.url)
        undo.pop_all()
        return place, RunningHub(hub, server, bound, dispatcher, clockwork, lock)


def _works(kept: Store, url: str, config: Path | None) -> "Works":
    """Description of the hub, for processes that forward to it."""
    from dragoman.system.hub_lock import Works

    file = f"{config.absolute()}" if config else ""
    return Works(url, kept.ledger_id(), file, setting_variables(environment()))


def _mcp_app(place: Place, patience: "Patience") -> "LateApp":
    """MCP app of a running hub."""
    from dragoman.surfaces.mcp.mount import LateApp
    from dragoman.surfaces.mcp.profiles import Profiles
    from dragoman.surfaces.mcp.tools import table

    settings, tools = place.settings, table(place.interpreter.dialects)
    # Faults of the settings are reported at the start.
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
    """Settings with the address from the command line."""
    http = settings.http
    http = replace(http, host=host or http.host, port=http.port if port is None else port)
    return replace(settings, http=http)
