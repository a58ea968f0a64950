"""Preflight checks of the settings, run by `up` before it opens anything, and by `doctor`.

Each part checks what it needs; nothing is opened, started or made.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.bootstrap.dialects import build_dialects
from dragoman.bootstrap.known_secrets import variable_secrets
from dragoman.bootstrap.projection import notify_targets
from dragoman.bootstrap.separation import check_separation
from dragoman.config import AgentSettings, Settings
from dragoman.config.store_url import check_store_url
from dragoman.core.errors import SettingsError
from dragoman.system.http_client import SafeHttpClient

if TYPE_CHECKING:
    from dragoman.agents.function_runner import AgentFunction


def check_settings(settings: Settings, data: Path) -> None:
    """Raise SettingsError for the first setting with which no hub would run."""
    from dragoman.surfaces.http.auth import check_certificate, check_host_settings

    check_store_url(settings.store.url)
    check_host_settings(settings.http)
    check_certificate(settings.http)
    dialects = [dialect.name for dialect in build_dialects(settings)]
    for name, agent in settings.agents.items():
        check_agent_settings(name, agent)
        check_separation(name, agent, data)
        _check_dialects(name, agent, dialects)
    tuple(variable_secrets(settings))
    notify_targets(settings, data)
    if settings.workq.url:
        SafeHttpClient(settings.workq.url, "workq.url")


def check_agent_settings(name: str, settings: AgentSettings) -> None:
    """Check that an agent has exactly one valid way to start; a function is called in CCOS only."""
    from dragoman.agents.program_runner import check_command

    kinds = [way for way in ("command", "url", "function") if getattr(settings, way)]
    if len(kinds) > 1:
        raise SettingsError(f"agents.{name} has a {' and a '.join(kinds)}: keep one of them")
    if not kinds:
        raise SettingsError(
            f"agents.{name} needs a command, a url, or (asked in CCOS) a function; an agent that "
            "asks for its work itself needs no section"
        )
    if settings.command:
        check_command(name, settings.command)
    for variable in settings.environment:
        if not variable or "=" in variable:
            raise SettingsError(
                f"agents.{name}.environment: {variable!a} is no name of a variable; name it alone, "
                "its value is the one that it has where the hub is started"
            )
    if settings.url:
        SafeHttpClient(settings.url, f"agents.{name}.url")
    if settings.function:
        if not is_ccos_agent(settings):
            raise SettingsError(f'agents.{name} has a function: add speaks = ["ccos"]')
        load_function(name, settings.function)


def _check_dialects(name: str, settings: AgentSettings, known: Sequence[str]) -> None:
    for spoken in settings.speaks:
        if spoken not in known:
            raise SettingsError(
                f"agents.{name}.speaks: {spoken!a} is not a dialect; known: {', '.join(known)}"
            )


# --- agents that are called in CCOS -----------------------------------------------------------

CCOS = "ccos"


def is_ccos_agent(settings: AgentSettings) -> bool:
    """Check whether an agent is called in CCOS."""
    return CCOS in settings.speaks


def load_function(name: str, function: str) -> "AgentFunction":
    """Import the function of an agent; SettingsError if there is none of that name."""
    module, _, attribute = function.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(
            f"agents.{name}.function {function!a} cannot be found: {error}; write MODULE:NAME"
        ) from None
    return found
