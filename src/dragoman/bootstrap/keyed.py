"""A data directory with its store and its keys, which belong together; and what its ledger proves.

Who needs keys is decided here. Whoever writes must have those of the store. Whoever only reads may
have none: then nothing can be signed or asked for, and only what they alone can tell is refused.

Whoever only checks hashes needs no more than this: neither dialects nor duties are loaded.
"""

from pathlib import Path

from msgspec import Struct

from dragoman.bootstrap.looks import Around, look_around, no_directory
from dragoman.bootstrap.secrets import check_secret, wrong_secret
from dragoman.bootstrap.stores import CHECKPOINTS, check_not_lost
from dragoman.bootstrap.verifying import slices_of
from dragoman.engine.ports import KeptStore
from dragoman.surfaces.cli.place import Evidence
from dragoman.surfaces.cli.store_url import remember_first
from dragoman.system.checkpoints import CheckpointFile
from dragoman.system.keys import LedgerKey, NoKeys, are_made, load, load_or_create, load_to_read


class Keyed(Struct, frozen=True):
    """What was found in a data directory."""

    around: Around
    key: LedgerKey | NoKeys
    store: KeptStore


def open_keyed(
    data: Path, store: str, now: int | None, *, create: bool = False, new_keys: bool = False
) -> Keyed:
    """Open the store of a data directory that exists; its keys must fit."""
    around = look_around(data, store, now)
    # Keys that are lost are not made anew: nobody could then tell old checkpoints from forged ones.
    is_first = create and not (data / CHECKPOINTS).exists() and not are_made(data)
    known = None if is_first else load(data)
    check_not_lost(around.url, data)
    kept = around.open_store(create=create)
    # Only for a store that is there: a wrong address leaves no keys behind.
    try:
        key = known or load_or_create(data)
    except BaseException:
        kept.close()
        raise
    check_secret(kept, data, key, anew=new_keys)
    if is_first:
        remember_first(data, store)
    return Keyed(around, key, kept)


def open_to_read(data: Path, store: str, now: int | None) -> Keyed:
    """Open the store of a data directory that exists, whatever became of its keys."""
    around = look_around(data, store, now)
    check_not_lost(around.url, data)
    kept, key = around.open_store(create=False), load_to_read(data)
    if isinstance(key, LedgerKey) and (wrong := wrong_secret(kept, data, key)):
        key = NoKeys(wrong)
    return Keyed(around, key, kept)


def open_evidence(data: Path, store: str, now: int | None) -> Evidence:
    """Open a data directory to check its ledger; it must exist."""
    if not data.is_dir():
        raise no_directory(data)
    keyed = open_to_read(data, store, now)
    checkpoints = CheckpointFile(data / CHECKPOINTS, keyed.key)
    return Evidence(keyed.store, checkpoints, slices_of(keyed.store, keyed.around.url, data))
