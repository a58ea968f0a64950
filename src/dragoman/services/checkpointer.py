"""The checkpointer: signs the Merkle tree of the ledger, outside of the database and any commit."""

from typing import Protocol

from dragoman.core.errors import LedgerError
from dragoman.engine.hub import Hub
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.verify import check_tail
from dragoman.ledger.checkpoint import Checkpoint, checkpoint_tree
from dragoman.ledger.tree import EMPTY_TREE, Tree, extend_tree


class CheckpointLog(Protocol):
    """Stores signed checkpoints outside of the database."""

    def last(self) -> Checkpoint | None:
        """The newest checkpoint."""
        ...

    def add(self, ledger: str, tree: Tree, at: int) -> None:
        """Sign the tree of the ledger and store the checkpoint, durably."""
        ...


class Checkpointer:
    """Adds a checkpoint when the ledger has grown."""

    name = "checkpoint"

    def __init__(self, hub: Hub, log: CheckpointLog) -> None:
        self._hub = hub
        self._log = log

    def run_once(self, now: int) -> int:
        """Sign what was added since the last checkpoint; the number of entries."""
        before, store = self.check_last_checkpoint(), self._hub.store
        tree = extend_tree(before, (entry.hash for entry in all_entries(store, before.size)))
        if tree.size > before.size:
            self._log.add(store.ledger_id(), tree, now)
        return tree.size - before.size

    def check_last_checkpoint(self) -> Tree:
        """Check the last checkpoint and return its tree; LedgerError if the ledger cannot have
        grown from it.
        """
        store, last = self._hub.store, self._log.last()
        if last is None:
            return EMPTY_TREE
        if last.ledger != store.ledger_id():
            raise LedgerError(
                f"the checkpoints are of ledger {last.ledger}, not of {store.ledger_id()}: "
                "this data directory belongs to another store"
            )
        if (head := store.head()) < last.size:
            raise LedgerError(
                f"the ledger ends at {head}, but {last.size} entries were signed: "
                "it was truncated; run `dragoman verify`"
            )
        for finding in check_tail(store, last):
            raise LedgerError(f"entry {finding.position}: {finding.problem}; run `dragoman verify`")
        return checkpoint_tree(last)
