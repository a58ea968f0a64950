"""Reload of the settings: the hub takes over the sections of agents while it runs.

Everything else (addresses, the store, limits) is read once, at the start: a reload names the
sections that wait for a restart. Settings with which no hub would start change nothing.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from dragoman.bootstrap.known_secrets import settings_secrets
from dragoman.bootstrap.preflight import check_settings
from dragoman.config import AgentSettings, RunningAgents, Settings, environment, load_settings
from dragoman.engine.schemas.settings import ReloadedSettings
from dragoman.surfaces.cli.data_directory import DataDirectory

if TYPE_CHECKING:
    from dragoman.services.dispatch.agent_slots import AgentSpec
    from dragoman.services.dispatch.dispatcher import Dispatcher

BuildAgents = Callable[[Mapping[str, AgentSettings]], "Sequence[AgentSpec]"]
"""Builds what the dispatcher needs to start these agents; SettingsError if it cannot."""


class SettingsReloader:
    """Reloads the settings of a running hub."""

    def __init__(
        self,
        directory: DataDirectory,
        config: Path | None,
        loaded: Settings,
        dispatcher: "Dispatcher",
        build_agents: BuildAgents,
    ) -> None:
        """`loaded` is what the file and the environment said at the start."""
        self._data = directory.path
        self._config = config
        self._loaded = loaded
        self._running = directory.settings.agents
        self._redactor = directory.hub.redaction.redactor
        self._dispatcher = dispatcher
        self._build_agents = build_agents
        self._turn = asyncio.Lock()

    async def reload(self) -> ReloadedSettings:
        """Read the settings again; SettingsError if no hub would start with them."""
        async with self._turn:
            settings = await asyncio.to_thread(self._read)
            specs = await asyncio.to_thread(self._build_agents, settings.agents)
            before, after = dict(self._running), settings.agents
            # Before an agent is started that may print one of them.
            self._redactor.learn(*settings_secrets(settings))
            await self._dispatcher.replace_agents(specs)
            assert isinstance(self._running, RunningAgents), "a hub that runs has them"
            self._running.replace(after)
        old, new = asdict(self._loaded), asdict(settings)
        return ReloadedSettings(
            added=tuple(name for name in after if name not in before),
            changed=tuple(name for name in after if before.get(name, after[name]) != after[name]),
            removed=tuple(name for name in before if name not in after),
            needs_restart=tuple(
                name for name in new if name != "agents" and new[name] != old[name]
            ),
        )

    def _read(self) -> Settings:
        settings = load_settings(self._data, environment(), self._config)
        check_settings(settings, self._data)
        return settings
