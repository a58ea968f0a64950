"""Builds a hub that can run: HTTP server, scheduler and dispatcher of one data directory."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.bootstrap.cli_wiring import open_for_commands
from dragoman.bootstrap.data_directory import EngineParts, open_keyed_store, open_on_store
from dragoman.bootstrap.preflight import check_settings
from dragoman.bootstrap.runners import open_dispatcher
from dragoman.bootstrap.stores import absolute_url, make_directory, open_or_create
from dragoman.config import Settings, environment, load_settings, setting_variables
from dragoman.engine.ports import Store
from dragoman.engine.service_health import HealthProblem
from dragoman.surfaces.cli.data_directory import DataDirectory, login_name
from dragoman.system.clock import SystemClock

if TYPE_CHECKING:
    from dragoman.engine.forwarding import ForwardedCall, ForwardedOutput
    from dragoman.services.dispatch.agent_slots import AgentState
    from dragoman.surfaces.cli.hub_lifecycle import HubProcess
    from dragoman.surfaces.http.deps import Timeouts
    from dragoman.surfaces.mcp.http import McpApp
    from dragoman.surfaces.mcp.mount import LazyApp
    from dragoman.system.hub_lock import HubConfig

_STOPPING_MESSAGE = "the hub is stopping: no more work is given out"


def build_hub(
    data: Path, store: str, host: str, port: int | None, config: Path | None
) -> "tuple[DataDirectory, HubProcess]":
    """Build a hub that can run: the only one of its data directory, which it locks."""
    from dragoman.engine.auth import Authenticator
    from dragoman.services.scheduler import GroupWorker, Scheduler
    from dragoman.surfaces.cli.hub_lifecycle import HubProcess
    from dragoman.surfaces.http.app import build_app
    from dragoman.surfaces.http.deps import HttpDeps
    from dragoman.surfaces.http.server import HttpServer
    from dragoman.surfaces.mcp.mount import PATH as MCP_PATH
    from dragoman.system.bearer_tokens import load_or_create_token
    from dragoman.system.hub_lock import HubLock

    make_directory(data)
    with ExitStack() as undo:  # a start that fails leaves nothing open and nothing locked
        lock = HubLock.acquire(data, "dragoman up")
        undo.callback(lock.release)
        settings = _with_address(load_settings(data, environment(), config), host, port)
        check_settings(settings, data)
        url = absolute_url(store or settings.store.url)
        key, opened_store = open_keyed_store(
            data, store, lambda: open_or_create(url, data), create=True
        )
        undo.callback(opened_store.close)
        lock.announce_config(_describe_hub(opened_store, url, config))
        # The command line overrides the settings, and its URL may hold a password to be masked.
        settings = replace(settings, store=replace(settings.store, url=url))
        parts = EngineParts(opened_store, SystemClock(), key)
        directory = open_on_store(data, settings, parts, create=True)
        hub = directory.hub
        undo.callback(hub.close)
        identity = Authenticator(
            hub.store,
            key.secret,
            load_or_create_token(data),
            hub.clock,
            owner=login_name(),
            attempt_grace_ms=settings.dispatch.exit_grace_ms,
        )
        directory.hints.subscribe(identity.invalidate)
        scheduler = Scheduler(
            [GroupWorker(group, hub.clock.now) for group in directory.parts.service_groups]
        )
        directory.hints.subscribe(scheduler.hint)

        def health() -> Mapping[str, HealthProblem]:
            dispatch = (
                HealthProblem(_STOPPING_MESSAGE) if dispatcher.is_stopping else dispatcher.problem
            )
            return {**scheduler.health(), "dispatch": dispatch}

        def agent_states() -> "Sequence[AgentState]":
            return dispatcher.agent_states()

        deps = HttpDeps(
            hub,
            directory.router,
            identity,
            settings,
            directory.hints,
            health,
            agent_states=agent_states,
            run_command=_command_runner(directory, parts, settings),
            is_stopping=lambda: dispatcher.is_stopping,
        )
        mounts = {MCP_PATH: _mcp_app(directory, deps.timeouts)}
        server = HttpServer(build_app(deps, mounts), settings.http)
        bound = server.bind()
        undo.callback(bound.close)
        dispatcher = open_dispatcher(directory, identity, server.url, config)
        undo.pop_all()
        return directory, HubProcess(hub, server, bound, dispatcher, scheduler, lock)


def _command_runner(
    directory: "DataDirectory", parts: EngineParts, settings: Settings
) -> "Callable[[ForwardedCall], Awaitable[ForwardedOutput]]":
    """Runner of commands for thin clients; none, where only the caller's process may know a secret
    that has to be masked.
    """
    from dragoman.bootstrap.known_secrets import needs_variables_of_callers
    from dragoman.surfaces.cli.hub_commands import HubCommands
    from dragoman.surfaces.http.deps import run_no_command

    if needs_variables_of_callers(settings):
        return run_no_command
    return HubCommands(partial(open_for_commands, directory, parts)).handle


def _describe_hub(store: Store, url: str, config: Path | None) -> "HubConfig":
    """Description of the hub, for processes that forward to it."""
    from dragoman.system.hub_lock import HubConfig

    file = f"{config.absolute()}" if config else ""
    return HubConfig(url, store.ledger_id(), file, setting_variables(environment()))


def _mcp_app(directory: DataDirectory, timeouts: "Timeouts") -> "LazyApp":
    """MCP app of a running hub."""
    from dragoman.surfaces.mcp.mount import LazyApp

    settings = directory.settings

    def load() -> "McpApp":
        import dragoman
        from dragoman.surfaces.mcp.context import HubContextProvider
        from dragoman.surfaces.mcp.http import McpApp, find_http_principal
        from dragoman.surfaces.mcp.server import build_server
        from dragoman.surfaces.mcp.tools import build_tools

        room = HubContextProvider(directory.hub, directory.router, settings)
        tools = build_tools(directory.router.dialects)
        server = build_server(room, tools, find_http_principal, dragoman.__version__)
        return McpApp(server, settings.http.max_body, timeouts)

    return LazyApp(load)


def _with_address(settings: Settings, host: str, port: int | None) -> Settings:
    """Settings with the address from the command line."""
    http = settings.http
    http = replace(http, host=host or http.host, port=http.port if port is None else port)
    return replace(settings, http=http)
