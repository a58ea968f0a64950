"""Settings: one `dragoman.toml` plus the environment, read once and passed down as values."""

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from dragoman.core.commands import DEFAULT_ATTEMPTS, DEFAULT_TTL_MS
from dragoman.core.deadlines import Backoff
from dragoman.core.errors import SettingsError


class StoreSettings(Struct, frozen=True):
    """[store]"""

    url: str = ""
    """sqlite:///path or postgresql://user@host/db; empty: dragoman.db in the data directory."""


class TaskSettings(Struct, frozen=True):
    """[tasks]"""

    max_attempts: int = DEFAULT_ATTEMPTS
    """Failures in a row after which a task goes to the deadletter."""
    review_required: bool = True
    """Whether finished work waits for a review unless its task says otherwise."""


class LeaseSettings(Struct, frozen=True):
    """[leases]"""

    ttl_ms: int = DEFAULT_TTL_MS
    """How long a holder may be silent."""


class Settings(Struct, frozen=True):
    """Everything that can be set."""

    store: StoreSettings = StoreSettings()
    tasks: TaskSettings = TaskSettings()
    leases: LeaseSettings = LeaseSettings()
    retry: Backoff = Backoff()


def environment() -> Mapping[str, str]:
    """The variables of this process; asked for once, at the start."""
    return os.environ


def load_settings(data: Path, environ: Mapping[str, str]) -> Settings:
    """The settings of a data directory; without a file, the defaults."""
    path = data / "dragoman.toml"
    try:
        return parse(path.read_text(encoding="utf-8"), environ)
    except FileNotFoundError:
        return parse("", environ)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    except SettingsError as error:
        raise SettingsError(f"{path}: {error.detail}") from error


def parse(text: str, environ: Mapping[str, str]) -> Settings:
    """Settings from TOML text, overlaid by variables named DRAGOMAN_<SECTION>_<KEY>."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"this is not valid TOML: {error}") from error
    _check_keys(given, known := _sections())
    for section, keys in known.items():
        for key in keys:
            value = environ.get(f"DRAGOMAN_{section}_{key}".upper())
            if value is not None:
                given.setdefault(section, {})[key] = value
    try:
        # Not strict, because the environment knows only text.
        return msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{error}") from error


def _sections() -> dict[str, tuple[str, ...]]:
    return {
        section.name: tuple(key.name for key in msgspec.structs.fields(section.type))
        for section in msgspec.structs.fields(Settings)
    }


def _check_keys(given: Mapping[str, Any], known: Mapping[str, Iterable[str]]) -> None:
    for section, values in given.items():
        _check_known(f"[{section}]", section, known)
        if not isinstance(values, dict):
            raise SettingsError(f"{section} is a section: write [{section}] on a line of its own")
        for key in cast(dict[str, Any], values):
            _check_known(f"{section}.{key}", key, known[section])


def _check_known(shown: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=1, cutoff=0)
    raise SettingsError(
        f"{shown} is not a setting; did you mean {near[0]}? known: {', '.join(names)}"
    )
