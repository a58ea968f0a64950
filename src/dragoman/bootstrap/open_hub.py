"""Builds a hub that can run: HTTP server, scheduler and dispatcher of one data directory."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.bootstrap.cli_wiring import open_for_commands
from dragoman.bootstrap.data_directory import EngineParts, open_keyed_store, open_on_store
from dragoman.bootstrap.preflight import check_settings
from dragoman.bootstrap.runners import open_dispatcher
from dragoman.bootstrap.settings_reloader import SettingsReloader
from dragoman.bootstrap.stores import make_directory, open_or_create
from dragoman.config import RunningAgents, Settings, environment, load_settings, setting_variables
from dragoman.config.store_url import absolute_url
from dragoman.engine.ports import Store
from dragoman.engine.service_health import HealthProblem
from dragoman.files.task_branches import TaskBranches
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.system.clock import SystemClock

if TYPE_CHECKING:
    from dragoman.engine.auth import Principal
    from dragoman.engine.forwarding import CommandRun, ForwardedCall
    from dragoman.services.scheduler import Scheduler
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
    from dragoman.surfaces.cli.hub_lifecycle import HubProcess
    from dragoman.surfaces.http import HttpDeps, HttpServer, build_app
    from dragoman.surfaces.http.sessions import Sessions
    from dragoman.surfaces.mcp.mount import PATH as MCP_PATH
    from dragoman.system.bearer_tokens import load_or_create_token
    from dragoman.system.hub_lock import HubLock

    make_directory(data)
    with ExitStack() as undo:  # a start that fails leaves nothing open and nothing locked
        lock = HubLock.acquire(data, "dragoman up")
        undo.callback(lock.release)
        loaded = load_settings(data, environment(), config)
        settings = _with_address(loaded, host, port)
        check_settings(settings, data)
        url = absolute_url(store or settings.store.url)
        make_store = partial(open_or_create, url, data)
        key, opened_store = open_keyed_store(data, store, make_store, create=True)
        undo.callback(opened_store.close)
        lock.announce_config(_describe_hub(opened_store, url, config))
        # The command line overrides the settings, and its URL may hold a password to be masked.
        settings = replace(
            settings, store=replace(settings.store, url=url), agents=RunningAgents(loaded.agents)
        )
        parts = EngineParts(opened_store, SystemClock(), key)
        directory = open_on_store(data, settings, parts, create=True)
        hub = directory.hub
        undo.callback(hub.close)
        directory.register_owner()
        owner_token = load_or_create_token(data)
        identity = Authenticator(
            hub.store,
            key.secret,
            owner_token,
            hub.clock,
            owner=settings.owner.name,
            attempt_grace_ms=settings.dispatch.exit_grace_ms,
        )
        directory.hints.subscribe(identity.invalidate)
        scheduler = _open_scheduler(directory)

        def health() -> Mapping[str, HealthProblem]:
            dispatch = (
                HealthProblem(_STOPPING_MESSAGE) if dispatcher.is_stopping else dispatcher.problem
            )
            return {**scheduler.health(), "dispatch": dispatch}

        sessions = Sessions(key.secret, hub.clock)
        # The dispatcher and what reloads its agents are made below: they need the server's URL.
        deps = HttpDeps(
            hub,
            directory.router,
            identity,
            settings,
            directory.hints,
            sessions,
            lambda: reloader.reload(),  # noqa: PLW0108
            health,
            agent_states=lambda: dispatcher.agent_states(),  # noqa: PLW0108
            start_command=_command_starter(directory, parts, settings),
            is_stopping=lambda: dispatcher.is_stopping,
            task_branches=TaskBranches(data, settings, hub),
            checkpoints=directory.checkpoints,
        )
        app = build_app(deps, {MCP_PATH: _mcp_app(directory, deps.timeouts)})
        bound = (server := HttpServer(app, settings.http)).bind()
        undo.callback(bound.close)
        dispatcher, build_agents = open_dispatcher(directory, identity, server.url, config)
        reloader = SettingsReloader(directory, config, loaded, dispatcher, build_agents)
        undo.pop_all()
        return directory, HubProcess(
            hub,
            server,
            bound,
            dispatcher,
            scheduler,
            lock=lock,
            add_sign_in_link=lambda: sessions.add_link(owner_token.decode()).path,
            reload=reloader.reload,
        )


def _open_scheduler(directory: DataDirectory) -> "Scheduler":
    """Open the scheduler of all services, which every commit wakes."""
    from dragoman.services.scheduler import GroupWorker, Scheduler

    groups = directory.parts.service_groups
    scheduler = Scheduler([GroupWorker(group, directory.hub.clock.now) for group in groups])
    directory.hints.subscribe(scheduler.hint)
    return scheduler


def _command_starter(
    directory: "DataDirectory", parts: EngineParts, settings: Settings
) -> "Callable[[ForwardedCall, Principal], CommandRun]":
    """Starter of commands for thin clients; none for processes beside the hub, where only those may
    know a secret that has to be masked.
    """
    from dragoman.bootstrap.known_secrets import needs_variables_of_callers
    from dragoman.surfaces.cli.hub_commands import HubCommands

    return HubCommands(
        partial(open_for_commands, directory, parts),
        serves_local_callers=lambda: not needs_variables_of_callers(settings),
    ).start


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

        branches = TaskBranches(directory.path, settings, directory.hub)
        provider = HubContextProvider(directory.hub, directory.router, settings, branches)
        tools = build_tools(directory.router.dialects)
        server = build_server(provider, tools, find_http_principal, dragoman.__version__)
        return McpApp(server, settings.http.max_body, timeouts, provider.keep_leases)

    return LazyApp(load)


def _with_address(settings: Settings, host: str, port: int | None) -> Settings:
    """Settings with the address from the command line."""
    http = settings.http
    http = replace(http, host=host or http.host, port=http.port if port is None else port)
    return replace(settings, http=http)
