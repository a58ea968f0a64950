"""What the hub that runs knows of the agents that it starts: asked, and in words for a person."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote, urlencode

from msgspec import Struct

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.shown.agents import ShownAgent, Started
from dragoman.surfaces.cli.call import Call
from dragoman.surfaces.cli.place import Look
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.words.phrases import counted

T = TypeVar("T")

_TOO_LATE = "it was added to the settings after the hub began: restart the hub"


class _Agent(Struct, frozen=True):
    name: str
    started: Started | None


class _Page(Struct, frozen=True):
    agents: tuple[_Agent, ...]


class Fleet(Struct, frozen=True):
    """Agents that a hub starts, as the running hub describes them."""

    look: Look
    known: Mapping[str, Started | None] | None
    """Status by agent name; None: no hub runs here, or it does not answer."""

    def started(self, name: str) -> Started | None:
        """Status of one agent, if this hub starts it."""
        return (self.known or {}).get(name)

    def is_missed(self, *names: str) -> bool:
        """Tell whether a hub would start one of these agents and none runs."""
        return self.look.hub is None and not self.look.agents.isdisjoint(names)

    def now(self, name: str) -> str:
        """Current work of an agent, or why it takes none; empty: this hub does not start it."""
        return "; ".join(self._lines(name))

    def print(self, agent: ShownAgent, screen: Screen) -> None:
        """Print the current work of an agent and its usage of today."""
        reason = None if agent.paused is None else agent.paused.reason
        for line in self._lines(agent.name, said=reason):
            screen.line(line)
        started = self.started(agent.name)
        if started is not None:
            screen.line(_used(started))

    def _lines(self, name: str, said: str | None = None) -> list[str]:
        """Describe the work of an agent; leaves out a reason for its idleness that is
        `known_reason`."""
        started = self.started(name)
        if started is None:
            is_late = self.known is not None and name in self.look.agents
            return [f"takes no work: {_TOO_LATE}"] if is_late else []
        lines = [f"works on {', '.join(started.running)}"] if started.running else []
        if started.idle is None:
            return lines or ["works on nothing"]
        more = "more " if lines else ""
        return lines if started.idle == said else [*lines, f"takes no {more}work: {started.idle}"]


def ask_of_page(call: Call, look: Look, after: str, limit: int) -> Fleet:
    """Ask the running hub for the agents of a page."""
    query = urlencode({"limit": limit} | ({"after": after} if after else {}))
    page = _asked(call, look, f"/v1/agents?{query}", _Page)
    return Fleet(look, None if page is None else {one.name: one.started for one in page.agents})


def ask_of_one(call: Call, look: Look, name: str) -> Fleet:
    """Ask the running hub for one agent."""
    agent = _asked(call, look, f"/v1/agents/{quote(name, safe='')}", _Agent)
    return Fleet(look, None if agent is None else {name: agent.started})


def _asked(call: Call, look: Look, path: str, shape: type[T]) -> T | None:
    if look.hub is None:
        return None
    # Needed only while a hub runs.
    from dragoman.system.hub_call import read_hub

    try:
        return read_hub(look.hub, path, shape)
    except StoreUnavailable as error:
        call.err.line(
            ("warning: ", "yellow"),
            f"{error.detail}: what agents work on, and why one takes no work, is not shown",
        )
        return None


def _used(started: Started) -> str:
    cost = f", cost {_number(started.cost)}" if started.cost else ""
    return (
        f"today (UTC): {counted(started.attempts, 'attempt')}, {_number(started.minutes)} min, "
        f"{counted(started.output, 'byte')} of output{cost}"
    )


def _number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")
