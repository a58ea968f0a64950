"""The file of signed checkpoints, `checkpoints.jsonl`, outside of the database.

The ledger's store keeps how far each file had come: how many lines, how many bytes, and the digest
of the last line. A file that is shorter, another one, or gone was not left so by the hub.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Struct

from dragoman.ledger.checkpoint import (
    BadCheckpoint,
    Checkpoint,
    SignedCheckpoint,
    Tree,
    find_checkpoint_of,
    make_checkpoint,
    read_checkpoint,
    read_signed_checkpoint,
    sign_checkpoint,
)
from dragoman.system.keys import LedgerKey
from dragoman.system.safe_fs import (
    append_line,
    count_lines,
    find_lines,
    read_lines,
    read_lines_reversed,
)

_DIGEST_CHARS: Final = 32

_REMEDY: Final = (
    "Nothing more is signed; everything else goes on. Bring the file back from a copy. If you know "
    "why it is so, `dragoman checkpoints accept` signs from now on; if you do not, somebody may "
    "have rewritten the ledger: compare it with a backup first"
)


class IssuedCheckpoints(Struct, frozen=True):
    """Extent of a file of checkpoints, as the store keeps it."""

    count: int
    size: int
    """Bytes up to the end of the last line."""
    last: str
    """Digest of the last line."""

    def __str__(self) -> str:
        return f"{self.count} {self.size} {self.last}"


_NO_LINES: Final = IssuedCheckpoints(0, 0, "")


def _read_extent(text: str) -> IssuedCheckpoints:
    count, size, last = text.split(" ")
    return IssuedCheckpoints(int(count), int(size), last)


def _digest(line: bytes) -> str:
    return sha256(line).hexdigest()[:_DIGEST_CHARS]


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

    def newest(self) -> Iterator[SignedCheckpoint | None]:
        """Read the lines, the newest first; None for one that does not hold."""
        with closing(read_lines_reversed(self.path)) as lines:
            for line in lines:
                try:
                    yield read_signed_checkpoint(line, self._key.public)
                except BadCheckpoint:
                    yield None

    def find_checkpoint_of(self, position: int) -> SignedCheckpoint | None:
        """Find the first valid checkpoint that signs the entry at this position."""
        return find_checkpoint_of(self.lines(), self._key.public, position)

    def invalid_lines_at_end(self) -> int:
        """Number of invalid lines after the newest valid checkpoint."""
        return self._find_newest()[1]

    def add(self, ledger: str, tree: Tree, at: int) -> None:
        """Sign the present state of the ledger, durably."""
        checkpoint = make_checkpoint(ledger, tree, at, self._key.public)
        append_line(self.path, sign_checkpoint(checkpoint, self._key.private))

    def find_removal(self, issued: Mapping[str, str]) -> str:
        """Find out whether this is another file than the store knows, or no longer all of it: a
        sentence about it, empty when the file is whole.

        `issued` is what the store had kept before.
        """
        if not issued:
            return ""
        lines = find_lines(self.path)
        if lines is None:
            count = max(_read_extent(text).count for text in issued.values())
            return f"{self.path} has no line, but {count} checkpoints were issued. {_REMEDY}"
        file = _digest(lines.first)
        if file not in issued:
            return f"{self.path} is not a file that was issued for this ledger. {_REMEDY}"
        known = _read_extent(issued[file])
        found = find_lines(self.path, known.size)
        if found is None or (found.size, _digest(found.last)) != (known.size, known.last):
            return (
                f"{self.path} has lost lines, or others stand in their place: {known.count} "
                f"checkpoints were issued. {_REMEDY}"
            )
        return ""

    def measure(self, issued: Mapping[str, str]) -> tuple[str, str]:
        """Measure the file, which has a line, for the store to keep: the digest of its first line,
        and how far it has come."""
        lines = find_lines(self.path)
        assert lines is not None, "a line was written"
        file = _digest(lines.first)
        known = _read_extent(issued[file]) if file in issued else _NO_LINES
        # A file that has lost lines was accepted: it is counted anew.
        if known.size and self.find_removal(issued):
            known = _NO_LINES
        count = known.count + count_lines(self.path, known.size, lines.size)
        return file, f"{IssuedCheckpoints(count, lines.size, _digest(lines.last))}"

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
                "from a copy. If there is none, move it away: `dragoman checkpoints accept` signs "
                "the ledger from now on."
            )
        return None, 0
