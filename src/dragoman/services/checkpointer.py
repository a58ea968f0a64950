"""The checkpointer: signs the Merkle tree of the ledger, outside of the database and any commit."""

from collections.abc import Mapping
from typing import Protocol

from dragoman.core.errors import CheckpointsMissing, LedgerError
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.verify import check_tail
from dragoman.ledger.checkpoint import EMPTY_TREE, Checkpoint, Tree, checkpoint_tree, extend_tree


class CheckpointLog(Protocol):
    """Stores signed checkpoints outside of the database."""

    def last(self) -> Checkpoint | None:
        """The newest checkpoint."""
        ...

    def add(self, ledger: str, tree: Tree, at: int) -> None:
        """Sign the tree of the ledger and store the checkpoint, durably."""
        ...

    def find_removal(self, issued: Mapping[str, str]) -> str:
        """Find out whether checkpoints that were issued are missing: a sentence, empty if not."""
        ...

    def measure(self, issued: Mapping[str, str]) -> tuple[str, str]:
        """Name and extent of the log, which is not empty, for the store to keep."""
        ...


class Checkpointer:
    """Adds a checkpoint when the ledger has grown."""

    name = "checkpoint"

    def __init__(self, hub: Hub, log: CheckpointLog) -> None:
        self._hub = hub
        self._log = log

    def run_once(self, now: int) -> int:
        """Sign what was added since the last checkpoint; the number of entries."""
        before = self.check_last_checkpoint()
        removal = self._log.find_removal(self._hub.store.issued_checkpoints())
        if removal:
            raise CheckpointsMissing(removal)
        return self._sign(before, now)

    def accept(self, now: int) -> int:
        """Sign from the log as it is now, whatever the store knows of it; the number of entries."""
        return self._sign(self.check_last_checkpoint(), now)

    def _sign(self, before: Tree, now: int) -> int:
        store = self._hub.store
        tree = extend_tree(before, (entry.hash for entry in all_entries(store, before.size)))
        if tree.size > before.size:
            self._log.add(store.ledger_id(), tree, now)
        if tree.size:
            self._keep_extent(store)
        return tree.size - before.size

    def _keep_extent(self, store: Store) -> None:
        issued = store.issued_checkpoints()
        file, extent = self._log.measure(issued)
        if issued.get(file) != extent:
            store.keep_issued_checkpoints(file, extent)

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
