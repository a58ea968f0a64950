"""URLs of stores: the kinds, and the checks."""

from pathlib import Path
from typing import Final

from dragoman.core.errors import SettingsError

SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://")


def is_postgres(url: str) -> bool:
    """Check whether a URL is that of a PostgreSQL database."""
    return url.startswith(_POSTGRES)


def resolve_url(folder: Path, url: str) -> str:
    """URL whose relative path begins at this folder."""
    path = url.removeprefix(SQLITE)
    return f"{SQLITE}{(folder / path).absolute()}" if path and path != url else url


def absolute_url(url: str) -> str:
    """URL with an absolute path, for processes that run elsewhere."""
    return resolve_url(Path(), url)


def sqlite_path(url: str, data: Path) -> Path | None:
    """Database file of a store; None for PostgreSQL. Without a URL it is in the data directory."""
    if is_postgres(url):
        return None
    return Path((url or default_url(data)).removeprefix(SQLITE)).absolute()


def default_url(data: Path) -> str:
    """URL of the store of a data directory for which none was named."""
    return absolute_url(f"{SQLITE}{data / 'dragoman.db'}")


def location_hint(url: str, data: Path) -> str:
    """Hint where the location of a store comes from, for error messages; empty: it is the
    default."""
    if not url:
        return ""
    return (
        " (so says --store, or [store] url in the settings, where a relative path begins at "
        f"{data.absolute()})"
    )


def check_store_url(url: str) -> None:
    """Refuse an invalid URL of a store, before anything is made."""
    if not url or is_postgres(url):
        return
    if url.startswith("sqlite:") and not url.startswith(SQLITE):
        raise SettingsError(
            f"{url} has no path: a SQLite store is a file, on no host; use "
            "sqlite:///path/to/file.db, or sqlite:////path/to/file.db from the root on"
        )
    if not url.startswith(SQLITE):
        raise SettingsError(
            f"{url.partition(':')[0]}: is not a kind of store; "
            "use sqlite:///path/to/file.db or postgresql://user@host/database"
        )
    if url == SQLITE:
        raise SettingsError("sqlite:/// names no file; use sqlite:///path/to/file.db")
    if "?" in url:
        raise SettingsError(
            f"{url.partition('?')[2]}: a file takes no options; use sqlite:///path/to/file.db"
        )
    resolved = absolute_url(url)
    try:
        resolved.encode()
    except UnicodeEncodeError:
        raise SettingsError(
            f"{resolved!a}: its name, or that of a folder above it, is not UTF-8, and SQLite can "
            "name no such file; use another one"
        ) from None
