"""Which tools an agent sees: by a profile of the settings, or by what it is and speaks."""

from collections.abc import Collection, Mapping, Sequence

from dragoman.config import ProfileSettings
from dragoman.core.errors import SettingsError
from dragoman.core.events import Role
from dragoman.core.states.agent import AgentRecord
from dragoman.surfaces.mcp.tool import Tool

CORE = "core"

Tools = Mapping[str, Tool]


class Profiles:
    """The profiles of the settings; every word in them is the name of a tool or of a group."""

    def __init__(self, tools: Tools, profiles: Mapping[str, ProfileSettings]) -> None:
        self._tools = tools
        groups = {tool.group for tool in tools.values()}
        for name, profile in profiles.items():
            for word in profile.tools:
                if word not in tools and word not in groups:
                    known = ", ".join((*sorted(groups), *tools))
                    raise SettingsError(
                        f"profiles.{name}.tools: there is no tool or group {word!a}; known: {known}"
                    )
        self._chosen = {name: _named(tools, profile.tools) for name, profile in profiles.items()}

    @property
    def names(self) -> Collection[str]:
        """The names of the profiles."""
        return self._chosen.keys()

    def seen_by(self, name: str, role: Role, known: AgentRecord | None, profile: str) -> Tools:
        """Return the tools of the requested profile or of that with the caller's name; else by its
        role and dialects."""
        chosen = self._chosen.get(profile or name)
        if chosen is not None:
            return chosen
        if role == "observer":
            return {name: tool for name, tool in self._tools.items() if tool.reads}
        if known is None or not known.speaks:
            return self._tools
        return _named(self._tools, (CORE, *known.speaks))


def _named(tools: Tools, words: Sequence[str]) -> Tools:
    wanted = frozenset(words)
    return {name: tool for name, tool in tools.items() if name in wanted or tool.group in wanted}
