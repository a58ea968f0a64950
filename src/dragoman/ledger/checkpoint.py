"""The Merkle tree over the ledger, and checkpoints: signed statements of how far it reached.

A checkpoint is one JSON line. Its signature covers a domain tag and the canonical JSON of all other
fields, so it cannot be mistaken for a signature over anything else.
"""

from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from operator import add
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct
from msgspec.structs import asdict

from dragoman.core.errors import DragomanError
from dragoman.core.timestamps import to_rfc3339
from dragoman.text.error_messages import shape_fault

# --- tree -------------------------------------------------------------------------------------

_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"
_HASH_BYTES: Final = 32


class Tree(Struct, frozen=True):
    """The part of a tree that is needed to extend it: the roots of its complete subtrees, left to
    right.

    One peak stands for each one-bit of the size, the largest subtree first.
    """

    size: int
    peaks: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"A tree cannot have {self.size} leaves.")
        peak_count = self.size.bit_count()
        if len(self.peaks) != peak_count:
            raise ValueError(
                f"A tree of {self.size} leaves has {peak_count} peaks, not {len(self.peaks)}."
            )
        if any(len(peak) != _HASH_BYTES for peak in self.peaks):
            raise ValueError(f"Each peak of a tree is a hash of {_HASH_BYTES} bytes.")


EMPTY_TREE: Final = Tree(0, ())


def extend_tree(tree: Tree, leaves: Iterable[bytes]) -> Tree:
    """The tree with these leaves added in order."""
    row = _hash_each(_LEAF, leaves)
    size, left_size = tree.size + len(row), tree.size
    peaks, unpaired = list(tree.peaks), list[bytes]()
    # Level by level, as far up as new nodes reach: all nodes of a level at once.
    while row:
        if left_size & 1:
            row.insert(0, peaks.pop())
        if len(row) & 1:
            unpaired.append(row.pop())
        row = _hash_each(_NODE, map(add, row[::2], row[1::2]))
        left_size >>= 1
    return Tree(size, (*peaks, *reversed(unpaired)))


def _hash_each(tag: bytes, parts: Iterable[bytes]) -> list[bytes]:
    """The hash of each part after the tag."""
    # Copying a started hash is faster than starting a new one.
    copy_prefix, hashes = sha256(tag).copy, list[bytes]()
    for part in parts:
        hashed = copy_prefix()
        hashed.update(part)
        hashes.append(hashed.digest())
    return hashes


def tree_root(tree: Tree) -> bytes:
    """The hash that fixes every leaf and its index; the empty tree has the hash of nothing."""
    return _join_peaks(tree.peaks) if tree.peaks else sha256(b"").digest()


def _join_peaks(peaks: tuple[bytes, ...]) -> bytes:
    *left, node = peaks
    for peak in reversed(left):
        node = sha256(_NODE + peak + node).digest()
    return node


def subtree_at(size: int, index: int) -> tuple[int, int]:
    """First leaf and number of leaves of the complete subtree that has this leaf."""
    first = 0
    for bit in reversed(range(size.bit_length())):
        count = size & 1 << bit
        if index < first + count:
            return first, count
        first += count
    raise ValueError(f"A tree of {size} leaves has none with the index {index}.")


def inclusion_path(tree: Tree, index: int, leaves: Iterable[bytes]) -> tuple[bytes, ...]:
    """The hashes that lead from a leaf to the root (RFC 9162, 2.1.3), from the leaves of its
    complete subtree."""
    first, _ = subtree_at(tree.size, index)
    row, at, path = _hash_each(_LEAF, leaves), index - first, list[bytes]()
    while len(row) > 1:
        path.append(row[at ^ 1])
        row, at = _hash_each(_NODE, map(add, row[::2], row[1::2])), at >> 1
    number = first.bit_count()
    if right := tree.peaks[number + 1 :]:
        path.append(_join_peaks(right))
    return (*path, *reversed(tree.peaks[:number]))


def path_root(leaf: bytes, index: int, size: int, path: Iterable[bytes]) -> bytes:
    """The root to which a path leads from a leaf."""
    node, last = sha256(_LEAF + leaf).digest(), size - 1
    for other in path:
        # Where nothing stands at the right, the levels above are passed without a hash.
        while index == last and index and not index & 1:
            index, last = index >> 1, last >> 1
        pair = other + node if index & 1 else node + other
        node = sha256(_NODE + pair).digest()
        index, last = index >> 1, last >> 1
    return node


# --- checkpoint -------------------------------------------------------------------------------

_DOMAIN: Final = b"dragoman checkpoint v1\n"
_KEY_ID_LENGTH: Final = 16


class BadCheckpoint(DragomanError, ValueError):
    """A checkpoint that is not valid; the detail says why."""

    code = "bad_checkpoint"


class Checkpoint(Struct, frozen=True, forbid_unknown_fields=True):
    """The ledger at one size: `size` is the number of entries and so the last position."""

    ledger: str
    size: int
    root: str
    peaks: tuple[str, ...]
    at: str
    key: str


class SignedCheckpoint(Checkpoint, frozen=True, forbid_unknown_fields=True):
    """A checkpoint with its Ed25519 signature, in hexadecimal."""

    signature: str


_encoder: Final = msgspec.json.Encoder(order="sorted")
_decoder: Final = msgspec.json.Decoder(SignedCheckpoint)


def key_id(public: Ed25519PublicKey) -> str:
    """The key id: the first 16 hex digits of the SHA-256 of the raw public key."""
    return sha256(public.public_bytes_raw()).hexdigest()[:_KEY_ID_LENGTH]


def make_checkpoint(ledger: str, tree: Tree, at: int, public: Ed25519PublicKey) -> Checkpoint:
    """The checkpoint of this tree at this time, ready to be signed with the private key."""
    return Checkpoint(
        ledger=ledger,
        size=tree.size,
        root=tree_root(tree).hex(),
        peaks=tuple(peak.hex() for peak in tree.peaks),
        at=to_rfc3339(at),
        key=key_id(public),
    )


def sign_checkpoint(checkpoint: Checkpoint, private: Ed25519PrivateKey) -> bytes:
    """The checkpoint as one signed JSON line, without the newline."""
    _check_key(checkpoint, private.public_key())
    return _encode_line(checkpoint, private.sign(_signed_bytes(checkpoint)))


def read_checkpoint(line: bytes, public: Ed25519PublicKey) -> Checkpoint:
    """The checkpoint of a line, with its key, signature and tree verified."""
    checkpoint, signature = _parse_line(line)
    _check_key(checkpoint, public)
    try:
        public.verify(signature, _signed_bytes(checkpoint))
    except InvalidSignature:
        raise BadCheckpoint("The signature of the checkpoint is wrong.") from None
    # Signed fields in another spelling would be a second line for one checkpoint.
    if line != _encode_line(checkpoint, signature):
        raise BadCheckpoint("The checkpoint is not in its canonical form.")
    checkpoint_tree(checkpoint)
    return checkpoint


def read_signed_checkpoint(line: bytes, public: Ed25519PublicKey) -> SignedCheckpoint:
    """The same with its signature."""
    read_checkpoint(line, public)
    return _decoder.decode(line)


def find_checkpoint_of(
    lines: Iterable[bytes], public: Ed25519PublicKey, position: int
) -> SignedCheckpoint | None:
    """The first valid checkpoint that signs the entry at this position."""
    for line in lines:
        # Signatures are verified last: that takes fifty times as long as reading a size.
        with suppress(BadCheckpoint):
            if _parse_line(line)[0].size >= position:
                return read_signed_checkpoint(line, public)
    return None


class BadLine(Struct, frozen=True):
    """A line that is not a valid checkpoint."""

    line: int
    """Counted from 1."""
    reason: str


def read_checkpoint_lines(
    lines: Iterable[bytes], public: Ed25519PublicKey
) -> tuple[list[Checkpoint], list[BadLine]]:
    """The valid checkpoints: each line stands for itself, whatever the others are."""
    valid: list[Checkpoint] = []
    bad_lines: list[BadLine] = []
    for number, line in enumerate(lines, 1):
        try:
            valid.append(read_checkpoint(line, public))
        except BadCheckpoint as error:
            bad_lines.append(BadLine(number, error.detail))
    return valid, bad_lines


def checkpoint_tree(checkpoint: Checkpoint) -> Tree:
    """The tree from which the ledger can be verified onward."""
    try:
        tree = Tree(checkpoint.size, tuple(bytes.fromhex(peak) for peak in checkpoint.peaks))
    except ValueError as error:
        raise BadCheckpoint(f"The peaks of the checkpoint do not fit its size: {error}") from None
    if tree_root(tree).hex() != checkpoint.root:
        raise BadCheckpoint("The peaks of the checkpoint do not give its root.")
    return tree


def _parse_line(line: bytes) -> tuple[Checkpoint, bytes]:
    try:
        fields = asdict(_decoder.decode(line))
    except msgspec.ValidationError as error:
        fault = shape_fault(error, SignedCheckpoint)
        raise BadCheckpoint(f"The checkpoint does not have the right fields: {fault}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not line.strip():
            raise BadCheckpoint("There is no checkpoint in the line: it is empty.") from None
        raise BadCheckpoint(f"The checkpoint is not JSON: {error}.") from None
    try:
        signature = bytes.fromhex(fields.pop("signature"))
    except ValueError:
        raise BadCheckpoint("The signature of the checkpoint is not hexadecimal.") from None
    return Checkpoint(**fields), signature


def _check_key(checkpoint: Checkpoint, public: Ed25519PublicKey) -> None:
    expected = key_id(public)
    if checkpoint.key != expected:
        raise BadCheckpoint(
            f"The checkpoint names the key {checkpoint.key}, but the ledger's key is {expected}."
        )


def _signed_bytes(checkpoint: Checkpoint) -> bytes:
    return _DOMAIN + _encoder.encode(checkpoint)


def _encode_line(checkpoint: Checkpoint, signature: bytes) -> bytes:
    return _encoder.encode({**asdict(checkpoint), "signature": signature.hex()})
