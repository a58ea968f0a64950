"""Whether a hub can run with these settings: `up` asks before it opens anything, `doctor` too.

Each part knows what it needs, and is asked for that here; nothing is opened, started or made.
"""

from pathlib import Path
from typing import Final

from dragoman.bootstrap.notices import targets_of
from dragoman.bootstrap.redaction import secrets_of_variables
from dragoman.bootstrap.requests import find_function, is_asked_so
from dragoman.bootstrap.speaking import dialects
from dragoman.config import AgentSettings, Settings
from dragoman.config.store_url import check_url
from dragoman.core.errors import SettingsError
from dragoman.system.fetch import Endpoint

_ABOUT: Final = {
    "command": (
        *("prompt", "environment", "repository", "base"),
        *("output_bytes", "trace_lines", "output_per_day"),
    ),
    "url": ("allow_hosts",),
}
"""Kind of agent -> settings that have an effect on it only."""
_UNSET: Final = AgentSettings()


def check_usable(settings: Settings, data: Path) -> None:
    """Raise SettingsError for the first setting with which no hub would run."""
    from dragoman.surfaces.http.exposure import check_certificate, check_exposure
    from dragoman.surfaces.mcp.profiles import Profiles
    from dragoman.surfaces.mcp.tools import table

    check_url(settings.store.url)
    check_exposure(settings.http)
    check_certificate(settings.http)
    for name, agent in settings.agents.items():
        check_agent(name, agent)
    Profiles(table(dialects(settings)), settings.profiles)
    tuple(secrets_of_variables(settings))
    targets_of(settings, data)
    if settings.workq.url:
        Endpoint(settings.workq.url, "workq.url")


def check_agent(name: str, settings: AgentSettings) -> None:
    """Check that an agent has exactly one valid way to start; a function is called in CCOS only."""
    from dragoman.agents.program import check_command

    ways = [way for way in ("command", "url", "function") if getattr(settings, way)]
    if len(ways) > 1:
        raise SettingsError(f"agents.{name} has a {' and a '.join(ways)}: keep one of them")
    if not ways:
        raise SettingsError(
            f"agents.{name} needs a command, a url, or (asked in CCOS) a function; an agent that "
            "asks for its work itself needs no section"
        )
    _refuse_idle(name, settings, ways[0])
    if settings.command:
        check_command(name, settings.command)
    for variable in settings.environment:
        if not variable or "=" in variable:
            raise SettingsError(
                f"agents.{name}.environment: {variable!a} is no name of a variable; name it alone, "
                "its value is the one that it has where the hub is started"
            )
    if settings.base and not settings.repository:
        raise SettingsError(f"agents.{name} has a base: name the repository that it is of")
    if settings.url:
        Endpoint(settings.url, f"agents.{name}.url")
    if settings.function:
        if not is_asked_so(settings):
            raise SettingsError(f'agents.{name} has a function: add speaks = ["ccos"]')
        find_function(name, settings.function)


def _refuse_idle(name: str, settings: AgentSettings, way: str) -> None:
    """Refuse settings that have no effect on this kind of agent."""
    idle = [(key, other) for other, keys in _ABOUT.items() if other != way for key in keys]
    for key, other in idle:
        if getattr(settings, key) != getattr(_UNSET, key):
            raise SettingsError(
                f"agents.{name}.{key} is for an agent with a {other}, and does nothing for one "
                f"with a {way}: remove it"
            )
