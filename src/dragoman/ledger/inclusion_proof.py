"""Inclusion proofs: a leaf's place in a Merkle tree, by its siblings alone (RFC 9162, 2.1.3)."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"


def inclusion_path(leaves: Sequence[bytes], index: int) -> tuple[bytes, ...]:
    """The sibling hashes of the leaf at this index, from the bottom to the top."""
    level = [sha256(_LEAF + leaf).digest() for leaf in leaves]
    path: list[bytes] = []
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):  # the last node of an odd level has no sibling
            path.append(level[sibling])
        pairs = zip(level[::2], level[1::2], strict=False)
        above = [sha256(_NODE + left + right).digest() for left, right in pairs]
        level = above + level[2 * len(above) :]
        index //= 2
    return tuple(path)


def root_from_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root of a tree of this size with the leaf at this index; None: the path does not fit."""
    if not 0 <= index < size:
        return None
    node_index, last = index, size - 1
    node = sha256(_LEAF + leaf).digest()
    for sibling in path:
        if last == 0:
            return None
        if node_index & 1 or node_index == last:
            node = sha256(_NODE + sibling + node).digest()
            while node_index and not node_index & 1:
                node_index, last = node_index >> 1, last >> 1
        else:
            node = sha256(_NODE + node + sibling).digest()
        node_index, last = node_index >> 1, last >> 1
    return node if last == 0 else None
