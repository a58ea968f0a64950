"""The file of signed checkpoints, `checkpoints.jsonl`, outside of the database."""

from contextlib import closing
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dragoman.ledger.checkpoint import (
    BadCheckpoint,
    Checkpoint,
    make_checkpoint,
    read_checkpoint,
    sign_checkpoint,
)
from dragoman.ledger.tree import Tree
from dragoman.system.keys import LedgerKey
from dragoman.system.safe_fs import append_line, read_lines, read_lines_reversed


class CheckpointFile:
    """Appends signed lines, and returns only those whose signature holds."""

    def __init__(self, path: Path, key: LedgerKey) -> None:
        self.path = path
        self._key = key

    @property
    def public(self) -> Ed25519PublicKey:
        """Public key with which anyone can verify the checkpoints."""
        return self._key.public

    def lines(self) -> list[bytes]:
        """All checkpoint lines as they were signed, unverified."""
        return read_lines(self.path)

    def last(self) -> Checkpoint | None:
        """Newest valid checkpoint; BadCheckpoint when there are lines and none is valid.

        Skipping invalid lines at the end is no weakness: an attacker could as well remove them.
        """
        return self._find_newest()[0]

    def invalid_lines_at_end(self) -> int:
        """Number of invalid lines after the newest valid checkpoint."""
        return self._find_newest()[1]

    def add(self, ledger: str, tree: Tree, at: int) -> None:
        """Sign the present state of the ledger, durably."""
        checkpoint = make_checkpoint(ledger, tree, at, self._key.public)
        append_line(self.path, sign_checkpoint(checkpoint, self._key.private))

    def _find_newest(self) -> tuple[Checkpoint | None, int]:
        problems: list[str] = []
        with closing(read_lines_reversed(self.path)) as lines:
            for line in lines:
                try:
                    return read_checkpoint(line, self._key.public), len(problems)
                except BadCheckpoint as error:
                    problems.append(error.detail)
        if problems:
            raise BadCheckpoint(
                f"No line of {self.path} is valid; the last one: {problems[0]} Restore the file "
                "from a copy. If there is none, move it away: `dragoman tick` signs the ledger "
                "from now on."
            )
        return None, 0
