"""What `doctor` looks at: a directory that may be broken, opened only if that harms nothing."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dragoman.config import Settings, environment, load_settings
from dragoman.core.errors import SettingsError
from dragoman.surfaces.cli.call import CommandContext
from dragoman.surfaces.cli.place import DataDirectory
from dragoman.surfaces.cli.store_url import sqlite_path

if TYPE_CHECKING:
    from dragoman.system.hub_lock import HubConfig


class CheckResult(Struct, frozen=True):
    """Result of a check: its state, the finding, and what to do about it."""

    state: Literal["ok", "warning", "bad"]
    finding: str
    advice: str = ""


Check = Callable[["Installation"], CheckResult | None]
"""A check; None: it was skipped because of the result of another check."""


def ok(finding: str) -> CheckResult:
    return CheckResult("ok", finding)


def warning(finding: str, advice: str) -> CheckResult:
    return CheckResult("warning", finding, advice)


def bad(finding: str, advice: str = "") -> CheckResult:
    return CheckResult("bad", finding, advice)


class Installation:
    """A data directory that may be broken; its store is opened by a check, if that does no harm."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self.data = context.data
        self.keys = context.data / "keys"
        self.directory: DataDirectory | None = None
        self.failed_checks: set[str] = set()
        """Names of the checks so far with a bad result."""

    @property
    def is_writable(self) -> bool:
        """Tell whether the check of the directory found it writable."""
        return "directory" not in self.failed_checks

    def when_writable(self, advice: str) -> str:
        """Advice that writes to the directory, deferred until it is writable."""
        return advice if self.is_writable else f"once the directory can be written, {advice}"

    @cached_property
    def running_hub(self) -> "HubConfig | None":
        """Store and settings that the running hub reports; None: none runs, or it does not say."""
        from dragoman.system.hub_lock import find_lock_holder

        holder_record = find_lock_holder(self.data)
        return holder_record.works if holder_record and holder_record.works.ledger else None

    @property
    def settings_file(self) -> Path:
        """Path of the settings in effect."""
        named = self.running_hub.settings if self.running_hub else ""
        return Path(named) if named else self.data / "dragoman.toml"

    @cached_property
    def settings(self) -> Settings:
        """The settings; raises SettingsError when they cannot be parsed."""
        if self.running_hub is None:
            return load_settings(self.data, environment())
        named = self.settings_file if self.running_hub.settings else None
        return load_settings(self.data, self.running_hub.variables, named)

    @property
    def has_readable_settings(self) -> bool:
        """Tell whether the settings can be parsed, even if no hub may run with them."""
        try:
            return bool(self.settings)
        except SettingsError:
            return False

    def check_settings(self) -> None:
        """Raise SettingsError for settings that `up` would not start with."""
        self._context.wiring.check_settings(self.settings, self.data)

    @property
    def store_url(self) -> str:
        """URL of the store in use; empty: the file in the data directory."""
        hub_store = self.running_hub.store if self.running_hub else ""
        return self._context.shared.store or hub_store or self.settings.store.url

    @property
    def database_file(self) -> Path | None:
        """Database file of the store; None when it is not SQLite."""
        return sqlite_path(self.store_url, self.data)

    def open(self) -> DataDirectory:
        """Open the data directory as any command would; the caller knows that the store exists."""
        shared = self._context.shared
        self.directory = self._context.wiring.open_directory(
            self.data, shared.store, shared.now, create=False
        )
        return self.directory

    def close(self) -> None:
        """Close the store."""
        if self.directory is not None:
            self.directory.hub.close()
            self.directory = None
