"""Opens a store together with the keys of its data directory, or its ledger as evidence.

A writer must have the keys of the store. A reader may have none: then nothing can be signed or
submitted, and only checks that need the keys are refused. Hash checks need no more than this
module: neither dialects nor services are imported.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from dragoman.bootstrap.stores import (
    CHECKPOINTS_FILE,
    Environment,
    check_not_lost,
    missing_directory_error,
    read_environment,
)
from dragoman.bootstrap.verify_workers import slice_checker
from dragoman.engine.ports import DurableStore
from dragoman.files.layout import GITIGNORE, IGNORE_ALL
from dragoman.surfaces.cli.data_directory import Evidence
from dragoman.surfaces.cli.store_setting import save_if_unset
from dragoman.system.checkpoint_file import CheckpointFile
from dragoman.system.keys import (
    LedgerKey,
    UnusableKeys,
    has_keys,
    load_keys,
    load_keys_to_read,
    load_or_create_keys,
)
from dragoman.system.private_file import BadKey
from dragoman.text.digest import keyed_digest

# --- the secret of a store --------------------------------------------------------------------

_SECRET_CHECK = b"store"
"""Input of the digest that stores compare: they learn nothing else about the secret."""


def check_secret(store: DurableStore, data: Path, key: LedgerKey, *, replace: bool = False) -> None:
    """Check that all hubs of a store have the same secret: idempotency keys depend on it."""
    problem = find_secret_problem(store, data, key, replace=replace)
    if problem is not None:
        store.close()
        raise problem


def find_secret_problem(
    store: DurableStore, data: Path, key: LedgerKey, *, replace: bool = False
) -> BadKey | None:
    """Error if the secret here is not that of the store; else None."""
    mark = keyed_digest(key.secret, _SECRET_CHECK).hex()
    if store.secret_fingerprint(mark, overwrite=replace) == mark:
        return None
    keys = data.absolute() / "keys"
    return BadKey(
        f"the secret in {keys} is not the one that the hubs of this store have (ledger "
        f"{store.ledger_id()}): "
        "requests that are repeated here would be refused as key_reused, or done twice. Copy the "
        "folder keys from the data directory of a hub that works on this store, in the place of "
        f"{keys}, or take it out of a backup (docs/backup.md). If nobody has it any more, run "
        "`dragoman init --new-keys`: then what was asked before is no longer known when it is "
        "repeated, and other hubs need these keys"
    )


# --- store and keys ---------------------------------------------------------------------------


class KeyedStore(Struct, frozen=True):
    """The store, keys and environment of a data directory."""

    environment: Environment
    key: LedgerKey | UnusableKeys
    store: DurableStore


def open_keyed(
    data: Path, store: str, now: int | None, *, create: bool = False, new_keys: bool = False
) -> KeyedStore:
    """Open the store of an existing data directory; its keys must fit."""
    environment = read_environment(data, store, now)

    def open_it() -> DurableStore:
        check_not_lost(environment.url, data)
        return environment.open_store(create=create)

    key, opened = open_keyed_store(data, store, open_it, create=create, new_keys=new_keys)
    return KeyedStore(environment, key, opened)


def open_keyed_store(
    data: Path,
    named_url: str,
    opener: Callable[[], DurableStore],
    *,
    create: bool,
    new_keys: bool = False,
) -> tuple[LedgerKey, DurableStore]:
    """Open the keys and the store of a directory, which must fit each other. With `create`, a
    directory in which nothing was signed yet may get keys, and remembers the store that was named
    for it.
    """
    is_new = create and not (data / CHECKPOINTS_FILE).exists()
    # Lost keys are not made anew: then nobody could tell old checkpoints from forged ones.
    existing = None if is_new and not has_keys(data) else load_keys(data)
    store = opener()
    try:
        # Only for a store that exists: a wrong URL leaves no keys behind.
        key = existing or _create_keys(data)
        check_secret(store, data, key, replace=new_keys)
        if is_new:
            save_if_unset(data, named_url)
    except BaseException:
        store.close()
        raise
    return key, store


def _create_keys(data: Path) -> LedgerKey:
    """Create the keys; a .gitignore keeps them and the ledger out of a repository."""
    # Written before there is a secret. The root of a repository also holds files of others.
    if not (data / ".git").exists():
        # An existing file stays. A missing permission is reported by the next step.
        with suppress(OSError), (data / GITIGNORE).open("xb") as file:
            file.write(IGNORE_ALL)
    return load_or_create_keys(data)


def open_keyed_readonly(data: Path, store: str, now: int | None) -> KeyedStore:
    """Open the store of an existing data directory, whatever became of its keys."""
    environment = read_environment(data, store, now)
    check_not_lost(environment.url, data)
    opened, key = environment.open_store(create=False), load_keys_to_read(data)
    if isinstance(key, LedgerKey) and (problem := find_secret_problem(opened, data, key)):
        key = UnusableKeys(problem)
    return KeyedStore(environment, key, opened)


def open_evidence(data: Path, store: str, now: int | None) -> Evidence:
    """Open an existing data directory to verify its ledger."""
    if not data.is_dir():
        raise missing_directory_error(data)
    keyed = open_keyed_readonly(data, store, now)
    checkpoints = CheckpointFile(data / CHECKPOINTS_FILE, keyed.key)
    return Evidence(
        keyed.store, checkpoints, slice_checker(keyed.store, keyed.environment.url, data)
    )
