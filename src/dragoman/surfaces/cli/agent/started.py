"""What the hub that runs knows of the agents that it starts: asked, and in words for a person."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote, urlencode

from msgspec import Struct

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.shown.agents import AgentActivity, AgentResource
from dragoman.surfaces.cli.call import CommandContext
from dragoman.surfaces.cli.place import ReadOnlyDirectory
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.words.phrases import pluralize

T = TypeVar("T")

_UNKNOWN_TO_HUB = "it was added to the settings after the hub began: restart the hub"


class _AgentReply(Struct, frozen=True):
    name: str
    started: AgentActivity | None


class _AgentPageReply(Struct, frozen=True):
    agents: tuple[_AgentReply, ...]


class HubAgents(Struct, frozen=True):
    """Agents that a hub starts, as the running hub describes them."""

    directory: ReadOnlyDirectory
    statuses: Mapping[str, AgentActivity | None] | None
    """Status by agent name; None: no hub runs here, or it does not answer."""

    def status_of(self, name: str) -> AgentActivity | None:
        """Status of one agent, if this hub starts it."""
        return (self.statuses or {}).get(name)

    def needs_hub(self, *names: str) -> bool:
        """Tell whether a hub would start one of these agents and none runs."""
        return (
            self.directory.hub_address is None
            and not self.directory.configured_agents.isdisjoint(names)
        )

    def current_work(self, name: str) -> str:
        """Current work of an agent, or why it takes none; empty: this hub does not start it."""
        return "; ".join(self._describe_work(name))

    def print(self, agent: AgentResource, screen: Screen) -> None:
        """Print the current work of an agent and its usage of today."""
        reason = None if agent.paused is None else agent.paused.reason
        for line in self._describe_work(agent.name, known_reason=reason):
            screen.line(line)
        started = self.status_of(agent.name)
        if started is not None:
            screen.line(_format_usage(started))

    def _describe_work(self, name: str, known_reason: str | None = None) -> list[str]:
        """Describe the work of an agent; leaves out a reason for its idleness that is
        `known_reason`."""
        started = self.status_of(name)
        if started is None:
            is_late = self.statuses is not None and name in self.directory.configured_agents
            return [f"takes no work: {_UNKNOWN_TO_HUB}"] if is_late else []
        lines = [f"works on {', '.join(started.running)}"] if started.running else []
        if started.idle is None:
            return lines or ["works on nothing"]
        more = "more " if lines else ""
        return (
            lines
            if started.idle == known_reason
            else [*lines, f"takes no {more}work: {started.idle}"]
        )


def query_page(
    context: CommandContext, directory: ReadOnlyDirectory, after: str, limit: int
) -> HubAgents:
    """Ask the running hub for the agents of a page."""
    query = urlencode({"limit": limit} | ({"after": after} if after else {}))
    page = _query_hub(context, directory, f"/v1/agents?{query}", _AgentPageReply)
    return HubAgents(
        directory, None if page is None else {one.name: one.started for one in page.agents}
    )


def query_agent(context: CommandContext, directory: ReadOnlyDirectory, name: str) -> HubAgents:
    """Ask the running hub for one agent."""
    agent = _query_hub(context, directory, f"/v1/agents/{quote(name, safe='')}", _AgentReply)
    return HubAgents(directory, None if agent is None else {name: agent.started})


def _query_hub(
    context: CommandContext, directory: ReadOnlyDirectory, path: str, shape: type[T]
) -> T | None:
    if directory.hub_address is None:
        return None
    # Needed only while a hub runs.
    from dragoman.system.hub_call import get_from_hub

    try:
        return get_from_hub(directory.hub_address, path, shape)
    except StoreUnavailable as error:
        context.err.line(
            ("warning: ", "yellow"),
            f"{error.detail}: what agents work on, and why one takes no work, is not shown",
        )
        return None


def _format_usage(started: AgentActivity) -> str:
    cost = f", cost {_format_number(started.cost)}" if started.cost else ""
    return (
        f"today (UTC): {pluralize(started.attempts, 'attempt')}, "
        f"{_format_number(started.minutes)} min, "
        f"{pluralize(started.output, 'byte')} of output{cost}"
    )


def _format_number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")
