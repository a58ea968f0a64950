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
    """What a check found, and what to do about it."""

    state: Literal["ok", "warning", "bad"]
    found: str
    advice: str = ""


Check = Callable[["Patient"], Diagnosis | None]
"""None: there is nothing to look at, because of what another check has found."""


def ok(found: str) -> Diagnosis:
    """As it should be."""
    return Diagnosis("ok", found)


def warning(found: str, advice: str) -> Diagnosis:
    """It works, but somebody should know."""
    return Diagnosis("warning", found, advice)


def bad(found: str, advice: str = "") -> Diagnosis:
    """It does not work, or not for long."""
    return Diagnosis("bad", found, advice)


class Patient:
    """A data directory and, once a check has opened it, its store."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.data = call.data
        self.keys = call.data / "keys"
        self.place: Place | None = None
        self.wrong: set[str] = set()
        """The checks so far that found something bad."""

    @property
    def is_writable(self) -> bool:
        """Whether the directory can be written, as the check of it has found."""
        return "directory" not in self.wrong

    def once_writable(self, advice: str) -> str:
        """What to do, and when, if it writes to the directory."""
        return advice if self.is_writable else f"once the directory can be written, {advice}"

    @cached_property
    def works(self) -> "Works | None":
        """What the hub that runs works on, by its own word; None: none runs, or it says nothing."""
        from dragoman.system.hub_lock import holder

        running = holder(self.data)
        return running.works if running and running.works.ledger else None

    @property
    def settings_file(self) -> Path:
        """Where the settings stand that count."""
        named = self.works.settings if self.works else ""
        return Path(named) if named else self.data / "dragoman.toml"

    @cached_property
    def settings(self) -> Settings:
        """The settings; SettingsError when they cannot be understood."""
        if self.works is None:
            return load_settings(self.data, environment())
        named = self.settings_file if self.works.settings else None
        return load_settings(self.data, self.works.variables, named)

    @property
    def is_understood(self) -> bool:
        """Whether the settings can be read, though no hub may run with them."""
        try:
            return bool(self.settings)
        except SettingsError:
            return False

    def check_settings(self) -> None:
        """Raise SettingsError for what `up` would not start with."""
        self._call.house.check_settings(self.settings, self.data)

    @property
    def url(self) -> str:
        """The store that is used; empty: the file in the data directory."""
        at_work = self.works.store if self.works else ""
        return self._call.shared.store or at_work or self.settings.store.url

    @property
    def database(self) -> Path | None:
        """The file of the store; None when it is not SQLite's."""
        return sqlite_file(self.url, self.data)

    def open(self) -> Place:
        """Open the store as any command would; the caller knows that it is there."""
        shared = self._call.shared
        self.place = self._call.house.open_place(self.data, shared.store, shared.now, create=False)
        return self.place

    def close(self) -> None:
        """Let go of the store."""
        if self.place is not None:
            self.place.hub.close()
            self.place = None
