"""Which tools an agent sees: by a profile of the settings, or by what it is and speaks."""

from collections.abc import Collection, Mapping, Sequence

from dragoman.config import ProfileSettings
from dragoman.core.errors import SettingsError
from dragoman.core.events import Role
from dragoman.core.states.agent import AgentRecord
from dragoman.surfaces.mcp.tool import Tool

CORE_GROUP = "core"

ToolsByName = Mapping[str, Tool]


class Profiles:
    """The profiles of the settings; every word in them is the name of a tool or of a group."""

    def __init__(self, tools: ToolsByName, profiles: Mapping[str, ProfileSettings]) -> None:
        self._tools = tools
        groups = {tool.group for tool in tools.values()}
        for name, profile in profiles.items():
            for word in profile.tools:
                if word not in tools and word not in groups:
                    known = ", ".join((*sorted(groups), *tools))
                    raise SettingsError(
                        f"profiles.{name}.tools: there is no tool or group {word!a}; known: {known}"
                    )
        self._chosen = {name: _select(tools, profile.tools) for name, profile in profiles.items()}

    @property
    def names(self) -> Collection[str]:
        """The names of the profiles."""
        return self._chosen.keys()

    def visible_to(
        self, name: str, role: Role, agent: AgentRecord | None, profile: str
    ) -> ToolsByName:
        """Return the tools of the requested profile or of that with the caller's name; else by its
        role and dialects."""
        chosen = self._chosen.get(profile or name)
        if chosen is not None:
            return chosen
        if role == "observer":
            return {name: tool for name, tool in self._tools.items() if tool.is_read_only}
        if agent is None or not agent.speaks:
            return self._tools
        return _select(self._tools, (CORE_GROUP, *agent.speaks))


def _select(tools: ToolsByName, words: Sequence[str]) -> ToolsByName:
    chosen = frozenset(words)
    return {name: tool for name, tool in tools.items() if name in chosen or tool.group in chosen}
