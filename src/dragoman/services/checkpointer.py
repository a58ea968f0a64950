"""Checkpoints: signs how far the ledger has come, outside of the database and of any commit."""

from typing import Protocol

from dragoman.core.errors import LedgerError
from dragoman.engine.ask import entries
from dragoman.engine.hub import Hub
from dragoman.ledger.checkpoint import Checkpoint, tree_of
from dragoman.ledger.tree import EMPTY, Tree, extend


class CheckpointLog(Protocol):
    """Signed checkpoints, kept outside of the database."""

    def last(self) -> Checkpoint | None:
        """The newest checkpoint."""
        ...

    def add(self, ledger: str, tree: Tree, at: int) -> None:
        """Sign the ledger as it stands, durably."""
        ...


class Checkpointer:
    """Adds a checkpoint whenever the ledger has grown."""

    name = "checkpoint"

    def __init__(self, hub: Hub, log: CheckpointLog) -> None:
        self._hub = hub
        self._log = log

    def run_once(self, now: int) -> int:
        """Sign what was added since the last checkpoint; how many entries that were."""
        store, last = self._hub.store, self._log.last()
        before = tree_of(last) if last is not None else EMPTY
        if last is not None and last.ledger != store.ledger_id():
            raise LedgerError(
                f"the checkpoints are of ledger {last.ledger}, but the store holds "
                f"{store.ledger_id()}; keep the file of each ledger apart"
            )
        if last is not None and last.ledger != store.ledger_id():
            raise LedgerError(
                f"the checkpoints are of ledger {last.ledger}, not of {store.ledger_id()}: "
                "this data directory belongs to another store"
            )
        if (head := store.head()) < before.size:
            raise LedgerError(
                f"the ledger ends at {head}, but {before.size} entries were signed: "
                "its tail was cut; run `dragoman verify`"
            )
        tree = extend(before, (entry.hash for entry in entries(store, before.size)))
        if tree.size > before.size:
            self._log.add(store.ledger_id(), tree, now)
        return tree.size - before.size
