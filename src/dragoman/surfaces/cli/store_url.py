"""The URL of a store: remembered in dragoman.toml, and shown without its password."""

import json
import re
from pathlib import Path

from dragoman.config import load_settings, parse
from dragoman.config.store_url import SQLITE, beginning_at
from dragoman.core.errors import SettingsError
from dragoman.system.files import write_atomically

_FILE = "dragoman.toml"
_DATABASE = "dragoman.db"
_PASSWORD = re.compile(r"(//[^:/@?]*:)[^@/]*(?=@)|(\bpassword=)[^&]*", re.ASCII)
_HEADER = re.compile(r"^\[store\][ \t]*(#.*)?$", re.ASCII | re.MULTILINE)
_ANY_HEADER = re.compile(r"^[ \t]*\[", re.ASCII | re.MULTILINE)
_URL = re.compile(r"^[ \t]*url[ \t]*=.*$", re.ASCII | re.MULTILINE)
_OURS_ALONE = 0o600


def masked(url: str) -> str:
    """The URL with its password masked."""
    return _PASSWORD.sub(lambda found: f"{found[1] or found[2]}***", url)


def default_url(data: Path) -> str:
    """Store URL of a directory for which none was named."""
    return made_absolute(f"{SQLITE}{data / _DATABASE}")


def made_absolute(url: str) -> str:
    """Make the URL independent of the working directory."""
    return beginning_at(Path(), url)


def sqlite_file(url: str, data: Path) -> Path | None:
    """Database file of a SQLite URL; None for any other store."""
    if not url:
        return data / _DATABASE
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None


def check_other(data: Path, url: str) -> None:
    """Refuse another store than the one that a directory has."""
    known = _known(data)
    if known not in ("", url):
        raise SettingsError(
            f"{data} has another store, {masked(known)}: write {masked(url)} as [store] url into "
            f"{data / _FILE} by hand if you mean it; nothing was changed"
        )


def remember_first(data: Path, url: str) -> None:
    """Save the store URL of a new directory, if one was named and none is saved."""
    if url and not _known(data):
        remember(data, made_absolute(url))


def is_known(data: Path, url: str) -> bool:
    """Tell whether a directory has just this store."""
    return _known(data) == url


def remember(data: Path, url: str) -> None:
    """Save the URL in dragoman.toml, readable by its owner alone, unless it is saved."""
    if is_known(data, url):
        return
    path = data / _FILE
    changed = with_url(path.read_text(encoding="utf-8") if path.exists() else "", url, path)
    write_atomically(path, changed.encode(), mode=_OURS_ALONE)


def _known(data: Path) -> str:
    """Store of a directory: by its settings, or by a database file of its own."""
    named = load_settings(data, {}).store.url
    return named or (default_url(data) if (data / _DATABASE).exists() else "")


def with_url(text: str, url: str, path: Path) -> str:
    """Settings text with this store URL in place of any other."""
    line = f"url = {json.dumps(url, ensure_ascii=False)}"
    changed = _replaced(text, line) or _extended(text, line)
    if not _says(changed, url):
        raise SettingsError(f"{path} cannot be extended: write [store] url = … into it by hand")
    return changed


def _replaced(text: str, line: str) -> str:
    """Replace the URL in the settings; empty when they have none."""
    header = _HEADER.search(text)
    if header is None:
        return ""
    following = _ANY_HEADER.search(text, header.end())
    end = following.start() if following else len(text)
    section, count = _URL.subn(lambda _: line, text[header.end() : end], count=1)
    return f"{text[: header.end()]}{section}{text[end:]}" if count else ""


def _extended(text: str, line: str) -> str:
    if _HEADER.search(text):
        return _HEADER.sub(lambda found: f"{found[0]}\n{line}", text, count=1)
    before = f"{text.rstrip()}\n\n" if text.strip() else ""
    return f"{before}[store]\n{line}\n"


def _says(text: str, url: str) -> bool:
    try:
        return parse(text, {}).store.url == url
    except SettingsError:
        return False
