"""What `doctor` looks at: a directory that may be broken, opened only if that harms nothing."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dragoman.config import Settings, environment, load_settings
from dragoman.core.errors import SettingsError
from dragoman.surfaces.cli.call import Call
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.store_url import sqlite_file

if TYPE_CHECKING:
    from dragoman.system.hub_lock import Works


class Diagnosis(Struct, frozen=True):
    """Result of a check: its state, the finding, and what to do about it."""

    state: Literal["ok", "warning", "bad"]
    found: str
    advice: str = ""


Check = Callable[["Patient"], Diagnosis | None]
"""A check; None: it was skipped because of the result of another check."""


def ok(found: str) -> Diagnosis:
    return Diagnosis("ok", found)


def warning(found: str, advice: str) -> Diagnosis:
    return Diagnosis("warning", found, advice)


def bad(found: str, advice: str = "") -> Diagnosis:
    return Diagnosis("bad", found, advice)


class Patient:
    """A data directory that may be broken; its store is opened by a check, if that does no harm."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.data = call.data
        self.keys = call.data / "keys"
        self.place: Place | None = None
        self.wrong: set[str] = set()
        """Names of the checks so far with a bad result."""

    @property
    def is_writable(self) -> bool:
        """Tell whether the check of the directory found it writable."""
        return "directory" not in self.wrong

    def once_writable(self, advice: str) -> str:
        """Advice that writes to the directory, deferred until it is writable."""
        return advice if self.is_writable else f"once the directory can be written, {advice}"

    @cached_property
    def works(self) -> "Works | None":
        """Store and settings that the running hub reports; None: none runs, or it does not say."""
        from dragoman.system.hub_lock import holder

        running = holder(self.data)
        return running.works if running and running.works.ledger else None

    @property
    def settings_file(self) -> Path:
        """Path of the settings in effect."""
        named = self.works.settings if self.works else ""
        return Path(named) if named else self.data / "dragoman.toml"

    @cached_property
    def settings(self) -> Settings:
        """The settings; raises SettingsError when they cannot be parsed."""
        if self.works is None:
            return load_settings(self.data, environment())
        named = self.settings_file if self.works.settings else None
        return load_settings(self.data, self.works.variables, named)

    @property
    def is_understood(self) -> bool:
        """Tell whether the settings can be parsed, even if no hub may run with them."""
        try:
            return bool(self.settings)
        except SettingsError:
            return False

    def check_settings(self) -> None:
        """Raise SettingsError for settings that `up` would not start with."""
        self._call.house.check_settings(self.settings, self.data)

    @property
    def url(self) -> str:
        """URL of the store in use; empty: the file in the data directory."""
        at_work = self.works.store if self.works else ""
        return self._call.shared.store or at_work or self.settings.store.url

    @property
    def database(self) -> Path | None:
        """Database file of the store; None when it is not SQLite."""
        return sqlite_file(self.url, self.data)

    def open(self) -> Place:
        """Open the data directory as any command would; the caller knows that the store exists."""
        shared = self._call.shared
        self.place = self._call.house.open_place(self.data, shared.store, shared.now, create=False)
        return self.place

    def close(self) -> None:
        """Close the store."""
        if self.place is not None:
            self.place.hub.close()
            self.place = None
