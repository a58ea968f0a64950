"""Loads the settings: a TOML file overlaid by environment variables, once, at the start."""

import os
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.config.checks import (
    VariableError,
    check_keys,
    check_names,
    check_policy,
    check_ranges,
    check_variables,
    explain_validation_error,
    variable_name,
)
from dragoman.config.sections import Settings, section_keys
from dragoman.config.store_url import resolve_url
from dragoman.core.errors import SettingsError


def environment() -> Mapping[str, str]:
    """Environment variables of this process; read once, at the start."""
    return os.environ


def setting_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that are settings."""
    names = (
        variable_name(section, key) for section, keys in section_keys().items() for key in keys
    )
    return {name: environ[name] for name in names if name in environ}


def load_settings(data: Path, environ: Mapping[str, str], file: Path | None = None) -> Settings:
    """Load the settings of a data directory, or of another file; without a file, the defaults.

    Relative paths in them begin at the data directory.
    """
    settings = _load_file(data, environ, file)
    url = resolve_url(data, settings.store.url)
    return replace(settings, store=replace(settings.store, url=url))


def _load_file(data: Path, environ: Mapping[str, str], file: Path | None) -> Settings:
    path = file or _settings_path(data)
    try:
        text = read_settings_text(path)
    except FileNotFoundError as error:
        if file is not None:
            raise SettingsError(f"there is no file {file}") from error
        text = ""
    try:
        return _with_secret_file(parse_settings(text, environ), data)
    except VariableError:
        raise
    except SettingsError as error:
        raise SettingsError(f"{path}: {error.detail}") from error


def parse_settings(text: str, environ: Mapping[str, str]) -> Settings:
    """Parse settings from TOML, overlaid by variables named DRAGOMAN_<SECTION>_<KEY>.

    In a variable the words of a list are separated by commas.
    """
    values, known = parse_toml(text), section_keys()
    check_keys(values)
    _convert(values)
    from_environment = set[tuple[str, str]]()
    for section, keys in known.items():
        for key, kind in keys.items():
            value = environ.get(variable_name(section, key))
            if value is not None:
                part = values
                for name in section.split("."):
                    part = part.setdefault(name, {})
                part[key] = _split_list(value) if kind is tuple else value
                from_environment.add((section, key))
    # Variables are text, which is converted to the type of the setting.
    settings = _convert(values, from_environment, strict=False)
    check_variables(environ, known, settings)
    check_ranges(settings, from_environment)
    check_names(settings)
    check_policy(settings)
    return settings


def _convert(
    values: Mapping[str, Any],
    from_environment: Collection[tuple[str, str]] = (),
    *,
    strict: bool = True,
) -> Settings:
    try:
        return msgspec.convert(values, Settings, strict=strict)
    except msgspec.ValidationError as error:
        raise explain_validation_error(error, from_environment) from error


def _settings_path(data: Path) -> Path:
    """Path of a directory's settings, which need not exist."""
    path = data / "dragoman.toml"
    if path.is_symlink() and not path.exists():
        raise SettingsError(
            f"{path} is a link to {path.readlink()}, where there is nothing: put the file back, or "
            "remove the link"
        )
    return path


def _split_list(value: str) -> list[str]:
    return [word.strip() for word in value.split(",") if word.strip()]


def _with_secret_file(settings: Settings, data: Path) -> Settings:
    """Settings with the secret that a file holds, if they name one."""
    notify = settings.notify
    if not notify.webhook_secret_file:
        return settings
    if notify.webhook_secret:
        raise SettingsError("notify has webhook_secret and webhook_secret_file: keep one of them")
    path = data / notify.webhook_secret_file
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"notify.webhook_secret_file {path} cannot be read: {why}") from None
    return replace(settings, notify=replace(notify, webhook_secret=secret))


# --- TOML ---------------------------------------------------------------------------------------


def read_settings_text(path: Path) -> str:
    """Read the file; FileNotFoundError where there is none."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror}; look at its rights and at the disk"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}, line {line} is not UTF-8: save the file as UTF-8") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; SettingsError with the line if it is invalid, without the line itself, which may
    hold a secret."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"this is not valid TOML: {error}") from None
