"""Settings: one `dragoman.toml` plus the environment, read once and passed down as values."""

from dragoman.config.load import environment, load_settings, parse_settings, setting_variables
from dragoman.config.sections import (
    TABLE_SECTIONS,
    AgentSettings,
    AttemptSettings,
    HttpSettings,
    LeaseSettings,
    NotifySettings,
    RunningAgents,
    Settings,
    TeamspaceSettings,
    describe_separation,
    iter_sections,
)

__all__ = [
    "TABLE_SECTIONS",
    "AgentSettings",
    "AttemptSettings",
    "HttpSettings",
    "LeaseSettings",
    "NotifySettings",
    "RunningAgents",
    "Settings",
    "TeamspaceSettings",
    "describe_separation",
    "environment",
    "iter_sections",
    "load_settings",
    "parse_settings",
    "setting_variables",
]
