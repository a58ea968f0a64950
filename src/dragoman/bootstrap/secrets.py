"""The secret of the hubs of one store: all of them have the same, or are told so at the door."""

from pathlib import Path

from dragoman.engine.ports import DurableStore
from dragoman.system.keys import LedgerKey
from dragoman.system.private_file import BadKey
from dragoman.text.digest import keyed_digest

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
