"""Proof that a leaf stands at its place in a tree, by its neighbours alone (RFC 9162, 2.1.3)."""

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
        beside = index ^ 1
        if beside < len(level):  # the last node of an odd level has no sibling
            path.append(level[beside])
        pairs = zip(level[::2], level[1::2], strict=False)
        above = [sha256(_NODE + left + right).digest() for left, right in pairs]
        level = above + level[2 * len(above) :]
        index //= 2
    return tuple(path)


def root_by_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root of a tree of this size with the leaf at this index; None: the path does not fit."""
    if not 0 <= index < size:
        return None
    place, last = index, size - 1
    node = sha256(_LEAF + leaf).digest()
    for beside in path:
        if last == 0:
            return None
        if place & 1 or place == last:
            node = sha256(_NODE + beside + node).digest()
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            node = sha256(_NODE + node + beside).digest()
        place, last = place >> 1, last >> 1
    return node if last == 0 else None
