"""The file of signed checkpoints, `checkpoints.jsonl`, outside of the database."""

from contextlib import closing
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dragoman.ledger.checkpoint import BadCheckpoint, Checkpoint, checkpoint_of, read, sign
from dragoman.ledger.tree import Tree
from dragoman.system.files import append_line, lines_from_the_end, read_lines
from dragoman.system.keys import LedgerKey, NoKeys


class CheckpointFile:
    """Appends signed lines, and returns only those whose signature holds."""

    def __init__(self, path: Path, key: LedgerKey | NoKeys) -> None:
        self.path = path
        self._key = key

    @property
    def public(self) -> Ed25519PublicKey:
        """Public key with which anyone can verify the checkpoints."""
        return self._key.public

    @property
    def doubt(self) -> str:
        """Reason why the private key does not prove the public key to be ours; empty when it
        does."""
        if isinstance(self._key, LedgerKey):
            return ""
        return self._key.why.detail if self._key.is_private_there else "only the public key is here"

    def lines(self) -> list[bytes]:
        """All checkpoint lines as they were signed, unverified."""
        return read_lines(self.path)

    def last(self) -> Checkpoint | None:
        """Newest valid checkpoint; BadCheckpoint when there are lines and none is valid.

        Skipping invalid lines at the end is no weakness: an attacker could as well remove them.
        """
        return self._newest()[0]

    def spoiled_at_the_end(self) -> int:
        """Number of invalid lines after the newest valid checkpoint."""
        return self._newest()[1]

    def add(self, ledger: str, tree: Tree, at: int) -> None:
        """Sign the present state of the ledger, durably."""
        checkpoint = checkpoint_of(ledger, tree, at, self._key.public)
        append_line(self.path, sign(checkpoint, self._key.private))

    def _newest(self) -> tuple[Checkpoint | None, int]:
        spoiled: list[str] = []
        with closing(lines_from_the_end(self.path)) as lines:
            for line in lines:
                try:
                    return read(line, self._key.public), len(spoiled)
                except BadCheckpoint as error:
                    spoiled.append(error.detail)
        if spoiled:
            raise BadCheckpoint(
                f"No line of {self.path} is valid; the last one: {spoiled[0]} Restore the file "
                "from a copy. If there is none, move it away: `dragoman tick` signs the ledger "
                "from now on."
            )
        return None, 0
