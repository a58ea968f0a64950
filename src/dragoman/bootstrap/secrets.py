"""The secret of the hubs of one store: all of them have the same, or are told so at the door."""

from pathlib import Path

from dragoman.engine.ports import KeptStore
from dragoman.system.keys import LedgerKey
from dragoman.system.private_file import BadKey
from dragoman.text.digest import keyed_digest

_MARK = b"store"
"""Input of the digest that stores compare: they learn nothing else about the secret."""


def check_secret(kept: KeptStore, data: Path, key: LedgerKey, *, anew: bool = False) -> None:
    """Check that all hubs of a store have the same secret: idempotency keys depend on it."""
    wrong = wrong_secret(kept, data, key, anew=anew)
    if wrong is not None:
        kept.close()
        raise wrong


def wrong_secret(
    kept: KeptStore, data: Path, key: LedgerKey, *, anew: bool = False
) -> BadKey | None:
    """Error if the secret here is not that of the store; else None."""
    mine = keyed_digest(key.secret, _MARK).hex()
    if kept.secret_mark(mine, anew=anew) == mine:
        return None
    keys = data.absolute() / "keys"
    return BadKey(
        f"the secret in {keys} is not the one that the hubs of this store have (ledger "
        f"{kept.ledger_id()}): "
        "requests that are repeated here would be refused as key_reused, or done twice. Copy the "
        "folder keys from the data directory of a hub that works on this store, in the place of "
        f"{keys}, or take it out of a backup (docs/backup.md). If nobody has it any more, run "
        "`dragoman init --new-keys`: then what was asked before is no longer known when it is "
        "repeated, and other hubs need these keys"
    )
