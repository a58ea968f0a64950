"""The Merkle tree of RFC 9162 over the ledger's entries, kept as the peaks of its left edge."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from msgspec import Struct

_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"
_HASH_BYTES: Final = 32


class Tree(Struct, frozen=True):
    """As much of a tree as is needed to go on: the roots of its complete subtrees, left to right.

    One peak stands for each one-bit of the size, the largest subtree first.
    """

    size: int
    peaks: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"A tree cannot have {self.size} leaves.")
        wanted = self.size.bit_count()
        if len(self.peaks) != wanted:
            raise ValueError(
                f"A tree of {self.size} leaves has {wanted} peaks, not {len(self.peaks)}."
            )
        if any(len(peak) != _HASH_BYTES for peak in self.peaks):
            raise ValueError(f"Each peak of a tree is a hash of {_HASH_BYTES} bytes.")


EMPTY: Final = Tree(0, ())


def append(tree: Tree, leaf_data: bytes) -> Tree:
    """The tree with one leaf more."""
    return extend(tree, (leaf_data,))


def extend(tree: Tree, leaves: Iterable[bytes]) -> Tree:
    """The tree with these leaves added in order."""
    peaks = list(tree.peaks)
    size = tree.size
    for leaf_data in leaves:
        node = sha256(_LEAF + leaf_data).digest()
        # Each trailing one-bit of the size is a complete subtree that the new leaf completes.
        carry = size
        while carry & 1:
            node = sha256(_NODE + peaks.pop() + node).digest()
            carry >>= 1
        peaks.append(node)
        size += 1
    return Tree(size, tuple(peaks))


def root(tree: Tree) -> bytes:
    """The hash that fixes every leaf and its place; the empty tree has the hash of nothing."""
    if not tree.peaks:
        return sha256(b"").digest()
    *left, node = tree.peaks
    for peak in reversed(left):
        node = sha256(_NODE + peak + node).digest()
    return node
