"""One stream of the ledger in a file that proves itself, without the ledger it was taken from.

The file is JSON lines: a header, the stream's entries as they are stored, and an anchor: the newest
signed checkpoint that covers one of them, with the path that leads from that entry to its root.
Each entry's hash covers all before it in its stream, so one path proves the chain up to there.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Meta, Struct

from dragoman.core.errors import LedgerError
from dragoman.engine.ports import Store
from dragoman.engine.queries.streams import all_entries, stream_entries
from dragoman.ledger.checkpoint import BadCheckpoint, Checkpoint, read_checkpoint
from dragoman.ledger.entry import CODEC, GENESIS, Entry, link_hash, read_line
from dragoman.ledger.stream_state import State, fold
from dragoman.ledger.tree import inclusion_path, root_from_path
from dragoman.text.error_messages import shape_fault

FORMAT: Final = "dragoman-chain-1"

HexHash = Annotated[
    str,
    Meta(pattern=r"\A[0-9a-f]{64}\Z", extra={"reason": "64 lower-case hexadecimal digits"}),
]


class _ChainLine(Struct, frozen=True, tag_field="part", forbid_unknown_fields=True):
    """A line of the file. It has no field that the proof does not cover."""


class ChainHeader(_ChainLine, frozen=True, tag="head"):
    """The first line: format, ledger, stream and number of entries."""

    format: str
    ledger: str
    stream: str
    entries: int


class ChainEntry(_ChainLine, frozen=True, tag="entry"):
    """One entry: its line is what was hashed, after the hash before it.

    Its position in the ledger is left out: the path proves only that of the anchored entry.
    """

    hash: HexHash
    line: str


class ChainAnchor(_ChainLine, frozen=True, tag="anchor"):
    """The link between the chain and a checkpoint that the hub has signed."""

    entry: int
    """The number of the anchored entry, from 1; all before it are covered too."""
    position: int
    """Its position in the ledger."""
    path: tuple[HexHash, ...]
    checkpoint: str
    """The signed line, as it stands in checkpoints.jsonl."""
    key: HexHash
    """The public half of the key that it is signed with."""


_Part = ChainHeader | ChainEntry | ChainAnchor
_decode = msgspec.json.Decoder(_Part).decode
_encode = msgspec.json.Encoder().encode


class ChainProof(Struct, frozen=True):
    """The result of checking such a file."""

    stream: str
    ledger: str
    entries: int
    """Number of entries that were read."""
    anchored: int
    """Number of entries that a signed checkpoint covers."""
    key: str
    """The key id of the checkpoint's signature; empty: there is none."""
    signed_at: str
    problems: tuple[str, ...]
    """Problems; empty: the proof holds."""
    state: State | None = None
    """The state that the entries fold into."""


def write_chain(
    store: Store, stream: str, signed: Sequence[bytes], public: Ed25519PublicKey
) -> Iterator[bytes]:
    """Write the lines of a stream's file; `signed` are the hub's signed checkpoints."""
    found = list(stream_entries(store, stream))
    yield _encode(ChainHeader(FORMAT, store.ledger_id(), stream, len(found)))
    for entry in found:
        yield _encode(ChainEntry(entry.hash.hex(), entry.line.decode()))
    anchored = _last_covered(found, signed, public)
    if anchored is not None:
        entry, checkpoint, line = anchored
        leaves = [one.hash for one in all_entries(store, until=checkpoint.size)]
        path = inclusion_path(leaves, entry.position - 1)
        raw = public.public_bytes_raw().hex()
        hashes = tuple(node.hex() for node in path)
        yield _encode(ChainAnchor(entry.version, entry.position, hashes, line.decode(), raw))


def _last_covered(
    found: Sequence[Entry], signed: Sequence[bytes], public: Ed25519PublicKey
) -> tuple[Entry, Checkpoint, bytes] | None:
    """The last entry that a checkpoint covers, and the newest one that does."""
    for line in reversed(signed):
        checkpoint = read_checkpoint(line, public)
        covered = [entry for entry in found if entry.position <= checkpoint.size]
        if covered:
            return covered[-1], checkpoint, line
    return None


def check_chain_file(
    data: bytes, trusted: Ed25519PublicKey | None = None, *, allow_tail: bool = False
) -> ChainProof:
    """Check a file under a trusted key, or else under the one that it names.

    Under a trusted key each entry has to be covered by what that key has signed; with `allow_tail`
    the last ones, which came after the signature, need not.
    """
    try:
        parts: list[Any] = [_decode(line) for line in data.splitlines() if line.strip()]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _not_a_chain_file(str(shape_fault(error, _Part)))
    head = parts[0] if parts else None
    if not isinstance(head, ChainHeader) or head.format != FORMAT:
        return _not_a_chain_file(f"it does not begin with {FORMAT}")
    anchor = parts[-1] if isinstance(parts[-1], ChainAnchor) else None
    links = parts[1:] if anchor is None else parts[1:-1]
    if not all(isinstance(part, ChainEntry) for part in links):
        return _not_a_chain_file("it needs a head, entries, and at most one anchor")
    proof = _ChainChecker(head, links).proof(anchor, trusted)
    return (
        proof
        if trusted is None or proof.problems
        else _require_coverage(proof, allow_tail=allow_tail)
    )


def _require_coverage(proof: ChainProof, *, allow_tail: bool) -> ChainProof:
    """Add a problem if entries are not covered: without a signature anybody could have written
    them."""
    if proof.anchored == proof.entries or (proof.anchored and allow_tail):
        return proof
    uncovered = proof.entries - proof.anchored
    why = f"no checkpoint of the key covers {uncovered} of {proof.entries} entries"
    return msgspec.structs.replace(proof, problems=(why,))


def _not_a_chain_file(why: str) -> ChainProof:
    return ChainProof("", "", 0, 0, "", "", (f"it is not a chain file: {why}",))


class _ChainChecker:
    """Checks the chain from its beginning."""

    def __init__(self, head: ChainHeader, links: Sequence[ChainEntry]) -> None:
        self._head = head
        self._problems: list[str] = []
        self._state: State | None = None
        self._hashes = self._check_entries(links)

    def proof(self, anchor: ChainAnchor | None, trusted: Ed25519PublicKey | None) -> ChainProof:
        """The complete result."""
        count = len(self._hashes)
        if count != self._head.entries:
            self._problems.append(
                f"its head names {self._head.entries} entries, but it has {count}"
            )
        signed = None if anchor is None else self._check_anchor(anchor, trusted)
        return ChainProof(
            self._head.stream,
            self._head.ledger,
            count,
            anchor.entry if anchor and signed else 0,
            signed.key if signed else "",
            signed.at if signed else "",
            tuple(self._problems),
            self._state,
        )

    def _check_entries(self, links: Sequence[ChainEntry]) -> list[bytes]:
        """Check the entries: their hashes as they have to be."""
        found: list[bytes] = []
        previous = GENESIS
        for version, link in enumerate(links, start=1):
            data = link.line.encode()
            expected = link_hash(previous, data)
            try:
                line = read_line(data)
                event = CODEC.decode(line.event, line.v, line.body)
                self._state = fold(self._state, event, line.at)
            except LedgerError as error:
                self._problems.append(f"entry {version}: {error.detail}")
                break
            if expected.hex() != link.hash:
                self._problems.append(f"entry {version}: its hash does not match its line")
            if (line.stream, line.version) != (self._head.stream, version):
                self._problems.append(
                    f"entry {version}: it is entry {line.version} of {line.stream[:80]!a}"
                )
            found.append(expected)
            previous = expected
        return found

    def _check_anchor(
        self, anchor: ChainAnchor, trusted: Ed25519PublicKey | None
    ) -> Checkpoint | None:
        """The checkpoint, if it is valid and its path leads to an entry of the chain."""
        public = trusted or Ed25519PublicKey.from_public_bytes(bytes.fromhex(anchor.key))
        try:
            checkpoint = read_checkpoint(anchor.checkpoint.encode(), public)
        except BadCheckpoint as error:
            self._problems.append(f"the checkpoint is invalid: {error.detail}")
            return None
        if checkpoint.ledger != self._head.ledger:
            self._problems.append(f"the checkpoint is of another ledger, {checkpoint.ledger}")
            return None
        is_here = 0 < anchor.entry <= len(self._hashes)
        leaf = self._hashes[anchor.entry - 1] if is_here else b""
        path = [bytes.fromhex(node) for node in anchor.path]
        root = root_from_path(leaf, anchor.position - 1, checkpoint.size, path)
        if root is None or root.hex() != checkpoint.root:
            self._problems.append(
                "the chain does not match the signed checkpoint: an entry was changed, or is of "
                "another ledger"
            )
            return None
        return checkpoint
