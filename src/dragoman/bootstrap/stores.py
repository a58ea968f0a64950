"""Which store a URL means, and the directory that it may lie in."""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from dragoman.config.store_url import SQLITE, beginning_at, check_url, is_postgres, why_there
from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import KeptStore
from dragoman.system.ids import new_id
from dragoman.text.fault_words import in_words

CHECKPOINTS = "checkpoints.jsonl"


def open_store(
    url: str, data: Path, *, create: bool = True, new_ledger_id: Callable[[], str] = new_id
) -> KeptStore:
    """Open the store of a URL; without one, `dragoman.db` in the data directory."""
    if is_postgres(url):
        from dragoman.store.postgres import PostgresStore

        if create and not _is_signed(data):
            return PostgresStore.open(url, new_ledger_id)
        return PostgresStore.find(url) or _none_there(url, data)
    check_url(url)
    from dragoman.store.sqlite import SqliteStore

    path = _file(url, data)
    if not create and _is_empty(path):
        check_not_lost(url, data)
        raise StoreUnavailable(
            f"there is no database at {path}{why_there(url, data)}: run `dragoman init`"
        )
    return (SqliteStore.open if create else SqliteStore.open_to_read)(path, new_ledger_id)


def open_or_make(url: str, data: Path) -> KeptStore:
    """Open the store of a hub; create one that never existed."""
    check_not_lost(url, data)
    return open_store(url, data)


def check_not_lost(url: str, data: Path) -> None:
    """Refuse to recreate a store that is gone although checkpoints signed it: its loss would go
    unnoticed.

    On a server this shows only when it is opened.
    """
    if is_postgres(url) or not _is_empty(_file(url, data)) or not _is_signed(data):
        return
    what = "is empty" if _file(url, data).exists() else "is gone"
    raise _lost(f"the database at {_file(url, data)}{why_there(url, data)} {what}", data)


def _none_there(url: str, data: Path) -> NoReturn:
    """Raise the error for a schema without a ledger."""
    from dragoman.store.postgres.connect import parse_url

    found = f"there is no ledger in {parse_url(url)}, where --store or [store] url leads"
    if _is_signed(data):
        raise _lost(found, data)
    raise StoreUnavailable(f"{found}: run `dragoman init`, or correct the URL")


def _lost(found: str, data: Path) -> StoreUnavailable:
    return StoreUnavailable(
        f"{found}; {data / CHECKPOINTS} has signed what it held. Put it back, or make a new "
        "directory out of a backup: `dragoman restore FILE --data NEW`. Nothing was made in its "
        "place"
    )


def _is_signed(data: Path) -> bool:
    return (data / CHECKPOINTS).exists()


def _is_empty(file: Path) -> bool:
    """Check whether there is no database; an empty file is none."""
    return not file.exists() or file.stat().st_size == 0


def own_url(data: Path) -> str:
    """URL of the data directory's own store."""
    return f"{SQLITE}{data / 'dragoman.db'}"


def _file(url: str, data: Path) -> Path:
    return Path((url or own_url(data)).removeprefix(SQLITE)).absolute()


def is_behind(url: str, data: Path) -> bool:
    """Check whether an existing store has an older schema version, and would be migrated."""
    if is_postgres(url):
        from dragoman.store.postgres.migrate import MIGRATIONS as NEWEST
        from dragoman.store.postgres.staging import version_at

        return 0 < version_at(url) < len(NEWEST)
    from dragoman.store.sqlite.migrate import MIGRATIONS
    from dragoman.store.sqlite.snapshot import schema_version

    path = _file(url, data)
    return path.exists() and schema_version(path) < len(MIGRATIONS)


def lasting(url: str) -> str:
    """URL with an absolute path, for processes that run elsewhere."""
    return beginning_at(Path(), url)


def make_directory(data: Path) -> None:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise StoreUnavailable(
            f"the data directory {data} cannot be made: {error.filename} is there, and is no "
            "directory. Move it away, or name another place with --data or DRAGOMAN_DATA"
        ) from error
    except OSError as error:
        raise StoreUnavailable(
            f"the data directory {data} cannot be made: {in_words(error)}. Give this user the "
            "right to make it, or name another place with --data or DRAGOMAN_DATA"
        ) from error
