"""Whether a hub can run with these settings: `up` asks before it opens anything, `doctor` too.

Each part knows what it needs, and is asked for that here; nothing is opened, started or made.
"""

from pathlib import Path
from typing import Final

from dragoman.bootstrap.notices import notify_targets
from dragoman.bootstrap.redaction import variable_secrets
from dragoman.bootstrap.requests import is_ccos_agent, load_function
from dragoman.bootstrap.speaking import build_dialects
from dragoman.config import AgentSettings, Settings
from dragoman.config.store_url import check_store_url
from dragoman.core.errors import SettingsError
from dragoman.system.fetch import SafeHttpClient

_KEYS_BY_KIND: Final = {
    "command": (
        *("prompt", "environment", "repository", "base"),
        *("output_bytes", "trace_lines", "output_per_day"),
    ),
    "url": ("allow_hosts",),
}
"""Kind of agent -> settings that have an effect on it only."""
_DEFAULTS: Final = AgentSettings()


def check_settings(settings: Settings, data: Path) -> None:
    """Raise SettingsError for the first setting with which no hub would run."""
    from dragoman.surfaces.http.exposure import check_certificate, check_host_settings
    from dragoman.surfaces.mcp.profiles import Profiles
    from dragoman.surfaces.mcp.tools import build_tools

    check_store_url(settings.store.url)
    check_host_settings(settings.http)
    check_certificate(settings.http)
    for name, agent in settings.agents.items():
        check_agent_settings(name, agent)
    Profiles(build_tools(build_dialects(settings)), settings.profiles)
    tuple(variable_secrets(settings))
    notify_targets(settings, data)
    if settings.workq.url:
        SafeHttpClient(settings.workq.url, "workq.url")


def check_agent_settings(name: str, settings: AgentSettings) -> None:
    """Check that an agent has exactly one valid way to start; a function is called in CCOS only."""
    from dragoman.agents.program import check_command

    kinds = [way for way in ("command", "url", "function") if getattr(settings, way)]
    if len(kinds) > 1:
        raise SettingsError(f"agents.{name} has a {' and a '.join(kinds)}: keep one of them")
    if not kinds:
        raise SettingsError(
            f"agents.{name} needs a command, a url, or (asked in CCOS) a function; an agent that "
            "asks for its work itself needs no section"
        )
    _check_unused_settings(name, settings, kinds[0])
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
        SafeHttpClient(settings.url, f"agents.{name}.url")
    if settings.function:
        if not is_ccos_agent(settings):
            raise SettingsError(f'agents.{name} has a function: add speaks = ["ccos"]')
        load_function(name, settings.function)


def _check_unused_settings(name: str, settings: AgentSettings, kind: str) -> None:
    """Refuse settings that have no effect on this kind of agent."""
    unused = [
        (key, other) for other, keys in _KEYS_BY_KIND.items() if other != kind for key in keys
    ]
    for key, other in unused:
        if getattr(settings, key) != getattr(_DEFAULTS, key):
            raise SettingsError(
                f"agents.{name}.{key} is for an agent with a {other}, and does nothing for one "
                f"with a {kind}: remove it"
            )
