"""The Merkle tree of RFC 9162 over the ledger's entries, kept as the peaks of its left edge."""

from collections.abc import Iterable
from hashlib import sha256
from operator import add
from typing import Final

from msgspec import Struct

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
    if not tree.peaks:
        return sha256(b"").digest()
    *left, node = tree.peaks
    for peak in reversed(left):
        node = sha256(_NODE + peak + node).digest()
    return node
