"""JSON shape of what a reload of the settings has changed."""

from msgspec import Struct


class ReloadedSettings(Struct, frozen=True):
    """The agents that a reload has added, changed and removed."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    """Their next runs go by the new settings; those that run go on as they began."""
    removed: tuple[str, ...]
    """Nothing more is started for them; what they work on goes on."""
    needs_restart: tuple[str, ...]
    """Other sections that differ from those at the start of the hub; they changed nothing."""
