"""The file of signed checkpoints, `checkpoints.jsonl`, outside of the database."""

from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dragoman.ledger.checkpoint import Checkpoint, checkpoint_of, read, sign
from dragoman.ledger.tree import Tree
from dragoman.system.files import append_line, last_line, read_lines
from dragoman.system.keys import LedgerKey, NoKeys


class CheckpointFile:
    """Adds signed lines, and gives back only those whose signature holds."""

    def __init__(self, path: Path, key: LedgerKey | NoKeys) -> None:
        self.path = path
        self._key = key

    def all(self) -> Iterator[Checkpoint]:
        """Every checkpoint; BadCheckpoint at the first that does not hold."""
        return (read(line, self._key.public) for line in read_lines(self.path))

    @property
    def public(self) -> Ed25519PublicKey:
        """The half of the key with which anyone can check them."""
        return self._key.public

    @property
    def is_proven(self) -> bool:
        """Whether the private half is here too, which shows that the public one is ours."""
        return isinstance(self._key, LedgerKey)

    def lines(self) -> list[bytes]:
        """Every checkpoint as it was signed, unchecked."""
        return read_lines(self.path)

    def last(self) -> Checkpoint | None:
        """The newest checkpoint."""
        line = last_line(self.path)
        return read(line, self._key.public) if line is not None else None

    def add(self, ledger: str, tree: Tree, at: int) -> None:
        """Sign the ledger as it stands, durably."""
        checkpoint = checkpoint_of(ledger, tree, at, self._key.public)
        append_line(self.path, sign(checkpoint, self._key.private))
