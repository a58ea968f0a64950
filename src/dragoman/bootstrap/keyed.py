"""A data directory with its store and its keys, which belong together; and what its ledger proves.

Who needs keys is decided here. Whoever writes must have those of the store. Whoever only reads may
have none: then nothing can be signed or asked for, and only what they alone can tell is refused.

Whoever only checks hashes needs no more than this: neither dialects nor duties are loaded.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from dragoman.bootstrap.looks import Around, look_around, no_directory
from dragoman.bootstrap.secrets import check_secret, wrong_secret
from dragoman.bootstrap.stores import CHECKPOINTS, check_not_lost
from dragoman.bootstrap.verifying import slices_of
from dragoman.engine.ports import KeptStore
from dragoman.files.layout import ALL_OF_IT, GITIGNORE
from dragoman.surfaces.cli.place import Evidence
from dragoman.surfaces.cli.store_url import remember_first
from dragoman.system.checkpoints import CheckpointFile
from dragoman.system.keys import LedgerKey, NoKeys, are_made, load, load_or_create, load_to_read


class Keyed(Struct, frozen=True):
    """The store, keys and environment of a data directory."""

    around: Around
    key: LedgerKey | NoKeys
    store: KeptStore


def open_keyed(
    data: Path, store: str, now: int | None, *, create: bool = False, new_keys: bool = False
) -> Keyed:
    """Open the store of an existing data directory; its keys must fit."""
    around = look_around(data, store, now)

    def open_it() -> KeptStore:
        check_not_lost(around.url, data)
        return around.open_store(create=create)

    key, kept = keyed_store(data, store, open_it, create=create, new_keys=new_keys)
    return Keyed(around, key, kept)


def keyed_store(
    data: Path,
    named: str,
    open_it: Callable[[], KeptStore],
    *,
    create: bool,
    new_keys: bool = False,
) -> tuple[LedgerKey, KeptStore]:
    """Open the keys and the store of a directory, which must fit each other. With `create`, a
    directory in which nothing was signed yet may get keys, and remembers the store that was named
    for it.
    """
    is_new = create and not (data / CHECKPOINTS).exists()
    # Lost keys are not made anew: then nobody could tell old checkpoints from forged ones.
    known = None if is_new and not are_made(data) else load(data)
    kept = open_it()
    try:
        # Only for a store that exists: a wrong URL leaves no keys behind.
        key = known or _make_keys(data)
        check_secret(kept, data, key, anew=new_keys)
        if is_new:
            remember_first(data, named)
    except BaseException:
        kept.close()
        raise
    return key, kept


def _make_keys(data: Path) -> LedgerKey:
    """Create the keys; a .gitignore keeps them and the ledger out of a repository."""
    # Written before there is a secret. The root of a repository also holds files of others.
    if not (data / ".git").exists():
        # An existing file stays. A missing permission is reported by the next step.
        with suppress(OSError), (data / GITIGNORE).open("xb") as file:
            file.write(ALL_OF_IT)
    return load_or_create(data)


def open_to_read(data: Path, store: str, now: int | None) -> Keyed:
    """Open the store of an existing data directory, whatever became of its keys."""
    around = look_around(data, store, now)
    check_not_lost(around.url, data)
    kept, key = around.open_store(create=False), load_to_read(data)
    if isinstance(key, LedgerKey) and (wrong := wrong_secret(kept, data, key)):
        key = NoKeys(wrong)
    return Keyed(around, key, kept)


def open_evidence(data: Path, store: str, now: int | None) -> Evidence:
    """Open an existing data directory to verify its ledger."""
    if not data.is_dir():
        raise no_directory(data)
    keyed = open_to_read(data, store, now)
    checkpoints = CheckpointFile(data / CHECKPOINTS, keyed.key)
    return Evidence(keyed.store, checkpoints, slices_of(keyed.store, keyed.around.url, data))
