"""The store URL in dragoman.toml: saved, compared, and shown without its password."""

import json
import re
from pathlib import Path

from dragoman.config import load_settings, parse_settings
from dragoman.config.store_url import SQLITE, resolve_url
from dragoman.core.errors import SettingsError
from dragoman.system.durable_files import write_atomically

_SETTINGS_FILE = "dragoman.toml"
_DATABASE_FILE = "dragoman.db"
_PASSWORD = re.compile(r"(//[^:/@?]*:)[^@/]*(?=@)|(\bpassword=)[^&]*", re.ASCII)
_HEADER = re.compile(r"^\[store\][ \t]*(#.*)?$", re.ASCII | re.MULTILINE)
_ANY_HEADER = re.compile(r"^[ \t]*\[", re.ASCII | re.MULTILINE)
_URL = re.compile(r"^[ \t]*url[ \t]*=.*$", re.ASCII | re.MULTILINE)
_OWNER_ONLY = 0o600


def mask_password(url: str) -> str:
    """The URL with its password masked."""
    return _PASSWORD.sub(lambda found: f"{found[1] or found[2]}***", url)


def default_url(data: Path) -> str:
    """Store URL of a directory for which none was named."""
    return make_absolute(f"{SQLITE}{data / _DATABASE_FILE}")


def make_absolute(url: str) -> str:
    """Make the URL independent of the working directory."""
    return resolve_url(Path(), url)


def sqlite_path(url: str, data: Path) -> Path | None:
    """Database file of a SQLite URL; None for any other store."""
    if not url:
        return data / _DATABASE_FILE
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None


def check_same_store(data: Path, url: str) -> None:
    """Refuse another store than the one that a directory has."""
    saved = _saved_url(data)
    if saved not in ("", url):
        raise SettingsError(
            f"{data} has another store, {mask_password(saved)}: write {mask_password(url)} as "
            "[store] url into "
            f"{data / _SETTINGS_FILE} by hand if you mean it; nothing was changed"
        )


def save_if_unset(data: Path, url: str) -> None:
    """Save the store URL of a new directory, if one was named and none is saved."""
    if url and not _saved_url(data):
        save_url(data, make_absolute(url))


def is_saved(data: Path, url: str) -> bool:
    """Tell whether a directory has just this store."""
    return _saved_url(data) == url


def save_url(data: Path, url: str) -> None:
    """Save the URL in dragoman.toml, readable by its owner alone, unless it is saved."""
    if is_saved(data, url):
        return
    path = data / _SETTINGS_FILE
    changed = set_url(path.read_text(encoding="utf-8") if path.exists() else "", url, path)
    write_atomically(path, changed.encode(), mode=_OWNER_ONLY)


def _saved_url(data: Path) -> str:
    """Store of a directory: by its settings, or by a database file of its own."""
    configured = load_settings(data, {}).store.url
    return configured or (default_url(data) if (data / _DATABASE_FILE).exists() else "")


def set_url(text: str, url: str, path: Path) -> str:
    """Settings text with this store URL in place of any other."""
    line = f"url = {json.dumps(url, ensure_ascii=False)}"
    changed = _replace_url(text, line) or _insert_url(text, line)
    if not _parses_to(changed, url):
        raise SettingsError(f"{path} cannot be extended: write [store] url = … into it by hand")
    return changed


def _replace_url(text: str, line: str) -> str:
    """Replace the URL in the settings; empty when they have none."""
    header = _HEADER.search(text)
    if header is None:
        return ""
    next_header = _ANY_HEADER.search(text, header.end())
    end = next_header.start() if next_header else len(text)
    section, count = _URL.subn(lambda _: line, text[header.end() : end], count=1)
    return f"{text[: header.end()]}{section}{text[end:]}" if count else ""


def _insert_url(text: str, line: str) -> str:
    if _HEADER.search(text):
        return _HEADER.sub(lambda found: f"{found[0]}\n{line}", text, count=1)
    before = f"{text.rstrip()}\n\n" if text.strip() else ""
    return f"{before}[store]\n{line}\n"


def _parses_to(text: str, url: str) -> bool:
    try:
        return parse_settings(text, {}).store.url == url
    except SettingsError:
        return False
